#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/device_state.hpp"
#include "runtime/stream_state.hpp"
#include "weir/stream.hpp"

namespace weir {

namespace {

struct current_entry {
    runtime::device_state* device;
    detail::owner<runtime::stream_state> stream;  ///< null: the default stream
};

/// The calling thread's current streams, one entry for each device that ever had one.
detail::owner<runtime::stream_state>& current_on(runtime::device_state& device) {
    thread_local std::vector<current_entry> entries;
    const auto found =
        std::find_if(entries.begin(), entries.end(), [&](const current_entry& one) { return one.device == &device; });
    if (found != entries.end()) {
        return found->stream;
    }
    entries.push_back({&device, {}});
    return entries.back().stream;
}

}  // namespace

stream current_stream(device on) {
    const detail::owner<runtime::stream_state>& current = current_on(on.state());
    return stream(current ? current : detail::owner<runtime::stream_state>(&on.state().default_stream()));
}

use::use(const stream& current) : device_(&current.state().device()) {
    current.state().expect_open();
    previous_ = std::exchange(current_on(*device_), detail::owner<runtime::stream_state>(&current.state()));
}

use::~use() { current_on(*device_) = std::move(previous_); }

}  // namespace weir
