#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "backend/backend.hpp"
#include "backend/capability/stream_memory.hpp"
#include "memory/device_memory.hpp"
#include "memory/lent_memory.hpp"
#include "runtime/devices/device_state.hpp"
#include "runtime/streams/stream_state.hpp"
#include "weir/access.hpp"
#include "weir/detail/site.hpp"
#include "weir/detail/submission.hpp"
#include "weir/detail/task.hpp"
#include "weir/error.hpp"
#include "weir/memory_resource.hpp"

namespace weir::memory {

namespace {

/// Memory of a driver, given back to it at the end.
class drivers_memory final : public detail::lender {
public:
    drivers_memory(backend::driver& from, std::size_t bytes) noexcept : from_(&from), bytes_(bytes) {}
    ~drivers_memory() override {
        if (chunk.address != nullptr) {
            from_->deallocate(chunk, bytes_);
        }
    }
    void let_go() override {}

    backend::memory_chunk chunk;

private:
    backend::driver* from_;
    std::size_t bytes_;
};

/// Memory of a driver's stream-ordered allocator, given back to it at the end: in the stream that used it last, if that is a single
/// stream of Weir's.
class stream_ordered_memory final : public detail::lender, public ends_in_order {
public:
    explicit stream_ordered_memory(backend::capability::stream_memory& from) noexcept : from_(&from) {}
    ~stream_ordered_memory() override {
        if (memory != nullptr) {
            from_->give_back(memory);
        }
    }
    void let_go() override {}
    [[nodiscard]] bool end_behind(frontiers::point last) noexcept override {
        if (!from_->give_back_behind(last, memory)) {
            return false;
        }
        memory = nullptr;
        return true;
    }

    std::byte* memory = nullptr;

private:
    backend::capability::stream_memory* from_;
};

/// Calls `ask` again after all pools and the driver have given back what they only cache. Throws out_of_memory, device_error.
template <class Ask>
void ask_twice(runtime::device_state& device, std::size_t bytes, Ask ask) {
    if (ask()) {
        return;
    }
    give_back_all(device);
    if (ask()) {
        return;
    }
    const std::string why = "out of memory on " + std::string(device.driver().name()) + ": the driver has no " +
                            std::to_string(bytes) +
                            " bytes left. Drop arrays that are no longer needed, or work in smaller parts." +
                            where_memory_is(device, nullptr);
    device.driver().expect_sound();
    throw out_of_memory(why);
}

class driver_resource final : public memory_resource {
    buffer make(std::size_t bytes, std::size_t alignment, const stream_ref& on, const source_location& where) override {
        expect_alignment(alignment);
        runtime::device_state& device = on.state(detail::key).device();
        on.state(detail::key).expect_open();
        // In tests, host code may stand for the device's; it must reach the memory.
        backend::capability::stream_memory* const in_order = device.driver().can().stream_memory;
        if (in_order != nullptr && !device.driver().runs_host_code()) {
            return make_in_order(*in_order, bytes, on, where);
        }
        backend::driver& driver = device.driver();
        auto owner = std::make_unique<drivers_memory>(driver, bytes);
        ask_twice(device, bytes, [&] {
            owner->chunk = driver.allocate(bytes);
            return owner->chunk.address != nullptr;
        });
        const backend::memory_chunk chunk = owner->chunk;
        return buffer(detail::key, lend(chunk, bytes, device, std::move(owner), &on.state(detail::key).info(), where));
    }

    static buffer make_in_order(backend::capability::stream_memory& pool, std::size_t bytes, const stream_ref& on,
                                const source_location& where) {
        runtime::device_state& device = on.state(detail::key).device();
        const detail::queue_handle stream{on.state(detail::key).queue->handle()};
        auto owner = std::make_unique<stream_ordered_memory>(pool);
        ask_twice(device, bytes, [&] {
            owner->memory = pool.allocate(bytes, stream);
            return owner->memory != nullptr;
        });
        const backend::memory_chunk chunk{owner->memory, 0};
        ends_in_order* const ends = owner.get();
        buffer made(detail::key,
                    lend(chunk, bytes, device, std::move(owner), &on.state(detail::key).info(), where, ends));
        // The memory is valid from this point of the stream on, and other streams have to come after it. So this is the stream's first
        // access to the memory; it puts nothing into the stream.
        const std::array<runtime::access_request, 1> all{
            {{made.resource(detail::key), {0, bytes}, order::access_mode::write, true}}};
        const runtime::site from{"allocate", where};
        detail::with_task(detail::native_task{[] {}}, [&](detail::task_ref task) {
            return runtime::submit(on.state(detail::key), {all, {}, task, from, runtime::work_kind::device});
        });
        return made;
    }
};

}  // namespace

resource_ptr driver_pool() { return std::make_shared<driver_resource>(); }

}  // namespace weir::memory
