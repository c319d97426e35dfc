#include "runtime/streams/side_stream.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "weir/detail/mutex.hpp"

namespace weir::runtime {

namespace {

/// The side streams that were given back. Lives for ever.
class stream_pool {
public:
    static stream_pool& instance() {
        static auto* const one = new stream_pool;  // NOLINT(cppcoreguidelines-owning-memory)
        return *one;
    }
    [[nodiscard]] std::optional<stream> take(std::uint64_t owner, const weir::device& on, int priority) noexcept {
        const std::lock_guard lock(mutex_);
        const auto found = std::find_if(idle_.begin(), idle_.end(), [&](const entry& one) {
            return one.owner == owner && one.joined.device() == on && one.joined.priority() == priority;
        });
        if (found == idle_.end()) {
            return std::nullopt;
        }
        std::optional<stream> taken(std::move(found->joined));
        idle_.erase(found);
        note_count();
        return taken;
    }
    /// Adds a stream; if there are too many, drops the oldest. Dropping a stream never blocks.
    void give(std::uint64_t owner, const stream& joined) noexcept {
        std::optional<stream> oldest;  // destroyed after the lock is released
        const std::lock_guard lock(mutex_);
        try {
            idle_.push_back({owner, joined});
        } catch (const std::bad_alloc&) {
            return;
        }
        if (idle_.size() > most) {
            oldest.emplace(idle_.front().joined);
            idle_.erase(idle_.begin());
        }
        note_count();
    }
    /// Drops the streams of an owner that is gone. Dropping a stream never blocks.
    void forget(std::uint64_t owner) noexcept {
        // Every stream that ends comes here, and most programs have no side streams. If this owner has one here, the count is not 0: what
        // gave it back had a reference to the owner, so that it comes before the owner's end.
        while (count_.load(std::memory_order_relaxed) != 0) {
            std::optional<stream> dropped;  // destroyed after the lock is released
            const std::lock_guard lock(mutex_);
            const auto found =
                std::find_if(idle_.begin(), idle_.end(), [&](const entry& one) { return one.owner == owner; });
            if (found == idle_.end()) {
                return;
            }
            dropped.emplace(found->joined);
            idle_.erase(found);
            note_count();
        }
    }

private:
    void note_count() noexcept { count_.store(idle_.size(), std::memory_order_relaxed); }

    static constexpr std::size_t most = 64;
    struct entry {
        std::uint64_t owner;
        stream joined;
    };
    detail::mutex mutex_;  ///< guards what follows; a leaf in the lock order
    std::vector<entry> idle_;
    std::atomic<std::size_t> count_{0};  ///< the size of `idle_`; written under the lock, read without it
};

// At static initialization, so that no fork finds it half constructed.
[[maybe_unused]] const stream_pool& pool_at_start = stream_pool::instance();

}  // namespace

stream side_streams::take(const stream_ref& owner, const weir::device& on, const char* suffix) {
    const auto pooled = [&] { return stream_pool::instance().take(owner.unique_id(), on, owner.priority()); };
    std::optional<stream> one = pooled();
    while (one && !*one) {  // the program has closed it
        one = pooled();
    }
    if (one) {
        return *std::move(one);
    }
    return stream(on, {.priority = owner.priority(), .name = std::string(owner.name()) + " / " + suffix});
}

void side_streams::give_back(const stream_ref& owner, const stream& one) noexcept {
    if (one) {
        one.set_ordering(std::nullopt);
        stream_pool::instance().give(owner.unique_id(), one);
    }
}

void side_streams::forget(std::uint64_t owner) noexcept { stream_pool::instance().forget(owner); }

side_stream::side_stream(const stream_ref& owner, const weir::device& on, const source_location& where)
    : owner_(owner), where_(where), stream_(side_streams::take(owner, on, "steps")) {
    stream_->set_ordering(owner.ordering());
    stream_->wait(owner, where);
}

side_stream::~side_stream() {
    if (!stream_) {
        return;
    }
    try {
        join();
    } catch (...) {
        try {
            stream_->synchronize(where_);
        } catch (...) {  // NOLINT(bugprone-empty-catch): an operation that uses the results reports the failure
        }
    }
}

void side_stream::join() {
    owner_.wait(*stream_, where_);
    side_streams::give_back(owner_, *stream_);
    stream_.reset();
}

}  // namespace weir::runtime
