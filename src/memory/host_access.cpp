#include <mutex>
#include <utility>

#include "memory/access.hpp"
#include "runtime/lifetime/resource.hpp"
#include "runtime/submission/host_copies.hpp"
#include "weir/access.hpp"
#include "weir/buffer.hpp"
#include "weir/detail/passkey.hpp"

namespace weir {

namespace {

void leave(runtime::resource& of, const order::footprint& where, order::access_mode mode, bool copies) noexcept {
    bool was_copying = false;
    {
        const std::lock_guard lock(of.mutex);
        was_copying = of.end_view(where, mode, copies);
    }
    if (was_copying) {
        runtime::host_copies::ended();
    }
}

}  // namespace

host_access::host_access(detail::passkey /*key*/, const buffer& of, const order::footprint& where,
                         order::access_mode mode, source_location from, bool copies)
    : keep_(of), where_(where), mode_(mode), copies_(copies) {
    runtime::resource* const target = keep_.resource(detail::key);
    if (target == nullptr) {
        return;
    }
    {
        const std::lock_guard lock(target->mutex);
        target->view(where_, mode_);
    }
    try {
        memory::wait_for_conflicts(*target, where_, mode_, from, copies_);
        keep_.await_idle_device(detail::key, from);
    } catch (...) {
        leave(*target, where_, mode_, copies_);
        throw;
    }
}

host_access::host_access(host_access&& other) noexcept
    : keep_(std::move(other.keep_)),
      where_(std::exchange(other.where_, {})),
      mode_(other.mode_),
      copies_(other.copies_) {}

host_access::~host_access() {
    if (runtime::resource* const target = keep_.resource(detail::key)) {
        leave(*target, where_, mode_, copies_);
    }
}

}  // namespace weir
