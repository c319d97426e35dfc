#include "backend/native.hpp"

#include <string>

#include "backend/backend.hpp"
#include "weir/detail/task.hpp"
#include "weir/error.hpp"

namespace weir {

namespace backend {

namespace {

[[noreturn]] void refuse(const driver& of) {
    throw argument_error(std::string(of.name()) +
                         " has no queues that are known by a handle: adopt a weir::native_queue instead");
}

}  // namespace

std::unique_ptr<queue> driver::adopt_queue(void* /*handle*/, timeline& /*line*/, queue_events& /*events*/) {
    refuse(*this);
}

void driver::wait_for_event(void* /*event*/, void* /*queue*/) const { refuse(*this); }

std::uint64_t driver::identify(void* /*handle*/) const { refuse(*this); }

}  // namespace backend

void* detail::native_queue_handle() noexcept { return backend::submitting_to::current(); }

}  // namespace weir
