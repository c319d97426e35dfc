#include "runtime/streams/adopted_streams.hpp"

#include <map>
#include <mutex>
#include <utility>

#include "weir/detail/mutex.hpp"

namespace weir::runtime {

namespace {

struct adopted_store {
    detail::mutex mutex;  ///< guards `streams`; before devices in the lock order
    std::map<native_identity, stream_state*> streams;

    /// The open stream of the queue; null if there is none. A closed one is moved to `closed`, to be dropped after the lock.
    [[nodiscard]] detail::owner<stream_state> find_open(const native_identity& native,
                                                        detail::owner<stream_state>& closed) const {
        const auto found = streams.find(native);
        if (found == streams.end()) {
            return {};
        }
        // Not destroyed yet: a stream that ends first removes itself from `streams`.
        detail::owner<stream_state> one = detail::owner<stream_state>::try_make(*found->second);
        if (one && one->closed.load(std::memory_order_acquire)) {
            closed = std::move(one);
            return {};
        }
        return one;
    }
};

adopted_store& all_adopted() {
    static auto* const one = new adopted_store;  // NOLINT(cppcoreguidelines-owning-memory): lives for ever
    return *one;
}

// At static initialization, so that no fork finds it half constructed.
[[maybe_unused]] const auto& adopted_at_start = all_adopted();

}  // namespace

detail::owner<stream_state> adopted_streams::find_or_add(const native_identity& native,
                                                         std::unique_ptr<retired_owner>& owner,
                                                         const std::function<detail::owner<stream_state>()>& make) {
    adopted_store& known = all_adopted();
    // Destroyed after the lock is released: a stream that ends takes the lock.
    detail::owner<stream_state> made;
    detail::owner<stream_state> closed;
    std::unique_lock lock(known.mutex);
    if (detail::owner<stream_state> one = known.find_open(native, closed)) {
        one->keep_owner(owner);
        return one;
    }
    lock.unlock();
    closed = {};
    made = make();
    lock.lock();
    if (detail::owner<stream_state> one = known.find_open(native, closed)) {
        one->keep_owner(owner);  // another thread has added its stream first
        return one;
    }
    made->enter();
    known.streams.insert_or_assign(native, made.get());
    made->keep_owner(owner);
    made->is_listed();
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
