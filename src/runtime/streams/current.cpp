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

/// The calling thread's current streams, one entry for each device that ever had one; null if there are none. Destroyed at the end of
/// the thread, which may still run destructors of other objects then. Entries that these make are leaked.
thread_local current_entries* entries = nullptr;

/// The calling thread's current stream on the device; null if the device never had one. Allocates nothing.
detail::owner<runtime::stream_state>* find_current(const runtime::device_state& device) noexcept {
    if (entries == nullptr) {
        return nullptr;
    }
    const auto found =
        std::find_if(entries->begin(), entries->end(), [&](const current_entry& one) { return one.device == &device; });
    return found == entries->end() ? nullptr : &found->stream;
}

/// The same, with a new entry if there is none.
detail::owner<runtime::stream_state>& current_on(runtime::device_state& device) {
    struct end_of_thread {
        ~end_of_thread() { delete std::exchange(entries, nullptr); }  // NOLINT(cppcoreguidelines-owning-memory)
    };
    if (auto* const known = find_current(device)) {
        return *known;
    }
    if (entries == nullptr) {
        entries = new current_entries;  // NOLINT(cppcoreguidelines-owning-memory)
        [[maybe_unused]] thread_local const end_of_thread end;
    }
    entries->push_back({&device, {}});
    return entries->back().stream;
}

/// Makes a former current stream current again. At the end of a thread its entries may be gone already: then there is nothing to do.
void restore(runtime::device_state& device, detail::owner<runtime::stream_state>&& former) noexcept {
    if (auto* const current = find_current(device)) {
        *current = std::move(former);
    }
}

}  // namespace

stream_ref detail::current_stream_ref(device on) {
    runtime::device_state& of = on.state(detail::key);
    const owner<runtime::stream_state>* const current = find_current(of);
    return stream_ref(detail::key, current != nullptr && *current ? **current : of.default_stream());
}

stream current_stream(device on) {
    return stream(detail::key,
                  detail::owner<runtime::stream_state>(&detail::current_stream_ref(on).state(detail::key)));
}

detail::resumed_use::resumed_use(const stream_ref& current)
    : previous_(std::exchange(current_on(current.state(detail::key).device()),
                              owner<runtime::stream_state>(&current.state(detail::key)))),
      device_(&current.state(detail::key).device()) {}

detail::resumed_use::~resumed_use() { restore(*device_, std::move(previous_)); }

use::use(const stream& current) : device_(&current.state(detail::key).device()) {
    current.state(detail::key).expect_open();
    previous_ = std::exchange(current_on(*device_), detail::owner<runtime::stream_state>(&current.state(detail::key)));
}

use::~use() { restore(*device_, std::move(previous_)); }

}  // namespace weir
