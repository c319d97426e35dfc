#include <mutex>
#include <utility>

#include "memory/access.hpp"
#include "runtime/resource.hpp"
#include "weir/buffer.hpp"

namespace weir {

namespace {

void leave(runtime::resource& of, const order::footprint& where, order::access_mode mode) noexcept {
    const std::lock_guard lock(of.mutex);
    of.end_view(where, mode);
}

}  // namespace

host_access::host_access(const buffer& of, const order::footprint& where, order::access_mode mode, source_location from)
    : keep_(of), where_(where), mode_(mode) {
    runtime::resource* const target = keep_.resource();
    if (target == nullptr) {
        return;
    }
    {
        const std::lock_guard lock(target->mutex);
        target->view(where_, mode_);
    }
    try {
        memory::wait_for_conflicts(*target, where_, mode_, from);
        keep_.await_idle_device(from);
    } catch (...) {
        leave(*target, where_, mode_);
        throw;
    }
}

host_access::host_access(host_access&& other) noexcept
    : keep_(std::move(other.keep_)), where_(std::exchange(other.where_, {})), mode_(other.mode_) {}

host_access::~host_access() {
    if (runtime::resource* const target = keep_.resource()) {
        leave(*target, where_, mode_);
    }
}

}  // namespace weir
