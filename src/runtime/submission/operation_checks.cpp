#include "runtime/submission/operation_checks.hpp"

#include <algorithm>
#include <string>

#include "runtime/devices/device_state.hpp"
#include "weir/device.hpp"
#include "weir/error.hpp"

namespace weir::runtime {

namespace {

std::string label_of(const detail::operation& what) {
    return what.from.label == nullptr ? "operation" : what.from.label;
}

[[noreturn]] void refuse_memory(const stream_state& stream, const submission& what, const device_state& memory) {
    const std::string own(stream.info().device);
    const std::string other(memory.driver().name());
    throw argument_error("the operation \"" + label_of(what) + "\" of the stream \"" + std::string(stream.info().name) +
                         "\" runs on " + own + " and declares memory of " + other + ", which " + own +
                         " cannot reach: copy it to an array on " + own +
                         " with weir::copy(stream, to, from), or enqueue the operation on a stream of " + other);
}

/// Whether the stream's device is one of several that reach the memory.
bool is_reached_by(const stream_state& stream, const resource& memory) noexcept {
    switch (memory.reach()) {
        case memory_reach::host_too:
            return stream.memory_space() == &cpu_device().memory_space();
        case memory_reach::cuda_devices_too:
            return stream.device().kind() == device_kind::cuda;
        default:
            return false;
    }
}

}  // namespace

void expect_runnable(const stream_state& stream, const detail::operation& what) {
    const bool is_host_code = what.work.type != nullptr && what.work.type->nature == weir::detail::task_nature::work;
    if (!is_host_code || what.kind != work_kind::device || stream.device().driver().runs_host_code()) {
        return;
    }
    const std::string own(stream.info().device);
    throw argument_error("the operation \"" + label_of(what) + "\" is code for the host, and " + own +
                         " runs none: launch a weir::kernel, compile the program with nvcc (parallel_for with a "
                         "__host__ __device__ lambda), declare work of others with weir::access, or enqueue it as a "
                         "host_task");
}

void expect_reachable(const stream_state& stream, const submission& what, const resource& memory) {
    memory.memory_of()->expect_usable();
    if (what.kind == work_kind::host_task || is_reached_by(stream, memory)) {
        return;
    }
    // One side of a copy is in the stream's own memory; a side that the copy does not declare is memory of the host.
    const device_state* const own = stream.memory_space();
    const bool any_own = std::any_of(what.accesses.begin(), what.accesses.end(), [&](const access_request& access) {
        return access.target != nullptr && access.target->memory_of() == own;
    });
    const bool from_host = what.accesses.size() == 1 && own == &cpu_device().memory_space();
    if (what.kind != work_kind::copy || !(any_own || from_host)) {
        refuse_memory(stream, what, *memory.memory_of());
    }
}

}  // namespace weir::runtime
