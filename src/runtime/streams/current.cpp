#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/devices/device_state.hpp"
#include "runtime/streams/stream_state.hpp"
#include "weir/detail/current_stream.hpp"
#include "weir/stream.hpp"

namespace weir {

namespace {

struct current_entry {
    runtime::device_state* device;
    detail::owner<runtime::stream_state> stream;  ///< null: the default stream
};

using current_entries = std::vector<current_entry>;

/// The calling thread's current streams, one entry for each device that ever had one. Destroyed at the end of the thread. The main
/// thread then still runs destructors of static objects, which may ask for a current stream; entries made for them are leaked.
current_entries& entries_of_thread() {
    thread_local current_entries* entries = nullptr;
    struct end_of_thread {
        current_entries** of;
        ~end_of_thread() { delete std::exchange(*of, nullptr); }  // NOLINT(cppcoreguidelines-owning-memory)
    };
    if (entries == nullptr) {
        entries = new current_entries;  // NOLINT(cppcoreguidelines-owning-memory)
        [[maybe_unused]] thread_local const end_of_thread end{&entries};
    }
    return *entries;
}

/// The calling thread's current stream on the device.
detail::owner<runtime::stream_state>& current_on(runtime::device_state& device) {
    current_entries& entries = entries_of_thread();
    const auto found =
        std::find_if(entries.begin(), entries.end(), [&](const current_entry& one) { return one.device == &device; });
    if (found != entries.end()) {
        return found->stream;
    }
    entries.push_back({&device, {}});
    return entries.back().stream;
}

}  // namespace

stream_ref detail::current_stream_ref(device on) {
    const owner<runtime::stream_state>& current = current_on(on.state(detail::key));
    return stream_ref(detail::key, current ? *current : on.state(detail::key).default_stream());
}

stream current_stream(device on) {
    return stream(detail::key,
                  detail::owner<runtime::stream_state>(&detail::current_stream_ref(on).state(detail::key)));
}

detail::resumed_use::resumed_use(const stream_ref& current)
    : previous_(std::exchange(current_on(current.state(detail::key).device()),
                              owner<runtime::stream_state>(&current.state(detail::key)))),
      device_(&current.state(detail::key).device()) {}

detail::resumed_use::~resumed_use() { current_on(*device_) = std::move(previous_); }

use::use(const stream& current) : device_(&current.state(detail::key).device()) {
    current.state(detail::key).expect_open();
    previous_ = std::exchange(current_on(*device_), detail::owner<runtime::stream_state>(&current.state(detail::key)));
}

use::~use() { current_on(*device_) = std::move(previous_); }

}  // namespace weir
