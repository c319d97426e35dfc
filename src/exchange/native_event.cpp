#include "weir/native_event.hpp"
#include "weir/detail/site.hpp"

#include <string>
#include <utility>

#include "runtime/devices/device_state.hpp"
#include "weir/detail/task.hpp"
#include "weir/error.hpp"
#include "weir/launch.hpp"
#include "weir/sharing.hpp"
#include "weir/stream.hpp"

namespace weir::exchange {

void used_up_to(const buffer& memory, void* native_event, device of, package_use use, std::shared_ptr<void> owner,
                source_location where) {
    if (of.kind() != device_kind::cuda) {
        throw exchange_error("an event of another package is for " + std::string(of.name()) +
                             ", whose driver has no events: pass a stream or an event of Weir's");
    }
    // A stream of its own: operations that Weir enqueues elsewhere on other memory do not wait for the event.
    const stream after(of);
    backend::driver& by = of.state(weir::detail::key).driver();
    weir::detail::submit_work(on(after, where).label("event of another package"), runtime::work_kind::device,
                              weir::detail::foreign_task([&by, native_event, keep = memory, owner = std::move(owner)] {
                                  by.wait_for_event(native_event, weir::detail::native_queue_handle());
                              }));
    weir::used_on(memory, after, use, where);
}

}  // namespace weir::exchange
