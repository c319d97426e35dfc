#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "backend/backend.hpp"
#include "backend/cuda/async_pool.hpp"
#include "backend/cuda/driver.hpp"
#include "memory/device_memory.hpp"
#include "memory/lent_memory.hpp"
#include "runtime/device_state.hpp"
#include "runtime/stream_state.hpp"
#include "weir/detail/site.hpp"
#include "weir/detail/submission.hpp"
#include "weir/detail/task.hpp"
#include "weir/error.hpp"
#include "weir/memory_resource.hpp"

namespace weir::memory {

namespace {

/// Memory of a driver, which gets it back.
class drivers_memory final : public detail::lender {
public:
    drivers_memory(backend::driver& from, std::size_t bytes) noexcept : from_(&from), bytes_(bytes) {}
    ~drivers_memory() override {
        if (piece.address != nullptr) {
            from_->deallocate(piece, bytes_);
        }
    }
    void let_go() override {}

    backend::memory_piece piece;

private:
    backend::driver* from_;
    std::size_t bytes_;
};

/// Memory of a CUDA driver's allocator in stream order, which gets it back: in the stream that used it last, where that
/// is one stream of Weir's.
class stream_ordered_memory final : public detail::lender, public ends_in_order {
public:
    explicit stream_ordered_memory(backend::cuda::async_pool& from) noexcept : from_(&from) {}
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
    backend::cuda::async_pool* from_;
};

/// Asks again after everybody has given back what they only keep. Throws out_of_memory, device_error.
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
    buffer make(std::size_t bytes, const stream_ref& on, const source_location& where) override {
        runtime::device_state& device = on.state().device();
        on.state().expect_open();
        // Where host code stands for the device's, in tests, it must reach the memory.
        if (device.kind() == device_kind::cuda && !device.driver().runs_host_code()) {
            backend::cuda::async_pool& pool = static_cast<backend::cuda::cuda_driver&>(device.driver()).async();
            if (pool.is_there()) {
                return make_in_order(pool, bytes, on, where);
            }
        }
        backend::driver& driver = device.driver();
        auto owner = std::make_unique<drivers_memory>(driver, bytes);
        ask_twice(device, bytes, [&] {
            owner->piece = driver.allocate(bytes);
            return owner->piece.address != nullptr;
        });
        const backend::memory_piece piece = owner->piece;
        return buffer(lend(piece, bytes, device, std::move(owner), &on.state().info(), where));
    }

    static buffer make_in_order(backend::cuda::async_pool& pool, std::size_t bytes, const stream_ref& on,
                                const source_location& where) {
        runtime::device_state& device = on.state().device();
        auto* const stream = static_cast<backend::cuda::stream_handle>(on.state().queue->native_handle());
        auto owner = std::make_unique<stream_ordered_memory>(pool);
        ask_twice(device, bytes, [&] {
            owner->memory = pool.allocate(bytes, stream);
            return owner->memory != nullptr;
        });
        const backend::memory_piece piece{owner->memory, 0};
        ends_in_order* const ends = owner.get();
        buffer made(lend(piece, bytes, device, std::move(owner), &on.state().info(), where, ends));
        // The memory is there from this point of the stream on: other streams have to come after it. It is the stream's
        // first access to the memory, which puts nothing into it.
        const std::array<runtime::access_request, 1> all{
            {{made.resource(), {0, bytes}, order::access_mode::write, true}}};
        const runtime::site from{"allocate", where};
        detail::with_task(detail::native_task{[] {}}, [&](detail::task_ref task) {
            return runtime::submit(on.state(), {all, {}, task, from, runtime::work_kind::device});
        });
        return made;
    }
};

}  // namespace

resource_ptr driver_pool() { return std::make_shared<driver_resource>(); }

}  // namespace weir::memory
