#include "weir/detail/raw_memory.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "weir/detail/site.hpp"
#include "weir/detail/submission.hpp"
#include "weir/detail/task.hpp"
#include "weir/sharing.hpp"

namespace weir::detail {

raw_memory::~raw_memory() = default;

void* raw_memory::keep(buffer made) {
    void* const memory = made.device_data();
    const std::lock_guard lock(mutex_);
    buffers_.insert_or_assign(memory, std::move(made));
    return memory;
}

buffer raw_memory::take(void* memory) noexcept {
    const std::lock_guard lock(mutex_);
    const auto found = buffers_.find(memory);
    if (found == buffers_.end()) {
        return {};
    }
    buffer taken = std::move(found->second);
    buffers_.erase(found);
    return taken;
}

void* raw_memory::allocate(std::size_t bytes, std::size_t alignment, const stream_ref& on) {
    const std::size_t size = std::max<std::size_t>(bytes, 1);
    const source_location where = source_location::current();
    buffer made = memory_resource::allocate_from(upstream_, size, alignment, on, where);
    // A write of the whole memory that puts nothing into the stream: what follows in the stream comes after the uses of former owners.
    const std::array<runtime::access_request, 1> all{
        {{made.resource(detail::key), {0, size}, order::access_mode::write, true}}};
    const runtime::site from{"allocate", where};
    with_task(native_task{[] {}}, [&](task_ref task) {
        return runtime::submit(on.state(detail::key), {all, {}, task, from, runtime::work_kind::device});
    });
    return keep(std::move(made));
}

void* raw_memory::allocate(std::size_t bytes, std::size_t alignment, native_stream on, const weir::device& of) {
    return allocate(bytes, alignment, stream::adopt(on, of));
}

void* raw_memory::allocate_sync(std::size_t bytes, std::size_t alignment, const weir::device& of) {
    const stream on = current_stream(of);
    const std::size_t size = std::max<std::size_t>(bytes, 1);
    const source_location where = source_location::current();
    buffer made = memory_resource::allocate_from(upstream_, size, alignment, on, where);
    const host_access nothing_pending(detail::key, made, {0, size}, order::access_mode::write, where);
    return keep(std::move(made));
}

void raw_memory::deallocate(void* memory, native_stream by, const weir::device& of) noexcept {
    const buffer taken = take(memory);
    if (!taken) {
        return;
    }
    try {
        used_on(taken, stream::adopt(by, of));
    } catch (...) {
        try {
            of.synchronize();
        } catch (...) {  // NOLINT(bugprone-empty-catch): work of the device failed, and is complete
        }
    }
}

void raw_memory::deallocate_sync(void* memory) noexcept { static_cast<void>(take(memory)); }

}  // namespace weir::detail
