#include "runtime/adopted_streams.hpp"

#include <map>
#include <mutex>

#include "weir/detail/mutex.hpp"

namespace weir::runtime {

namespace {

struct adopted_store {
    detail::mutex mutex;  ///< guards `streams`; before devices in the lock order
    std::map<native_identity, stream_state*> streams;
};

adopted_store& all_adopted() {
    static auto* const one = new adopted_store;  // NOLINT(cppcoreguidelines-owning-memory): lives for ever
    return *one;
}

// So that no fork finds it half made.
[[maybe_unused]] const auto& adopted_at_start = all_adopted();

}  // namespace

detail::owner<stream_state> adopted_streams::find_or_add(const native_identity& native,
                                                         std::unique_ptr<retired_owner>& owner,
                                                         const std::function<detail::owner<stream_state>()>& make) {
    detail::owner<stream_state> closed;  // goes after the lock
    adopted_store& known = all_adopted();
    const std::lock_guard lock(known.mutex);
    stream_state*& found = known.streams[native];
    if (found != nullptr) {
        // Not gone: whoever was its last owner has to come by `remove` first.
        detail::owner<stream_state> one = detail::owner<stream_state>::try_make(*found);
        if (one && !one->closed.load(std::memory_order_acquire)) {
            one->keep_owner(owner);
            return one;
        }
        closed = std::move(one);
    }
    detail::owner<stream_state> made = make();
    made->keep_owner(owner);
    made->is_listed();
    found = made.get();
    return made;
}

void adopted_streams::add(const native_identity& native, stream_state& stream) {
    adopted_store& known = all_adopted();
    const std::lock_guard lock(known.mutex);
    known.streams[native] = &stream;
    stream.is_known_as(native);
    stream.is_listed();
}

void adopted_streams::remove(const stream_state& stream) noexcept {
    adopted_store& known = all_adopted();
    const std::lock_guard lock(known.mutex);
    const auto found = known.streams.find(stream.native_id());
    if (found != known.streams.end() && found->second == &stream) {
        known.streams.erase(found);
    }
}

}  // namespace weir::runtime
