#include "weir/parallel.hpp"

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "order/mark.hpp"
#include "runtime/stream_state.hpp"
#include "weir/completion.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/ordering.hpp"

namespace weir {

namespace {

/// Streams that were joined, for the next fork of the same launching stream: that is after all they did anyway, so nothing is
/// ordered that need not be. Lives for ever.
class stream_pool {
public:
    static stream_pool& instance() {
        static auto* const one = new stream_pool;  // NOLINT(cppcoreguidelines-owning-memory)
        return *one;
    }
    [[nodiscard]] std::optional<stream> take(std::uint64_t launching, int priority) noexcept {
        const std::lock_guard lock(mutex_);
        const auto found = std::find_if(idle_.begin(), idle_.end(), [&](const entry& one) {
            return one.launching == launching && one.joined.priority() == priority;
        });
        if (found == idle_.end()) {
            return std::nullopt;
        }
        std::optional<stream> taken(std::move(found->joined));
        idle_.erase(found);
        return taken;
    }
    /// The oldest go where there are too many: dropping a stream never blocks.
    void give(std::uint64_t launching, const stream& joined) noexcept {
        std::optional<stream> oldest;  // ends under no lock
        const std::lock_guard lock(mutex_);
        try {
            idle_.push_back({launching, joined});
        } catch (const std::bad_alloc&) {
            return;
        }
        if (idle_.size() > most) {
            oldest.emplace(idle_.front().joined);
            idle_.erase(idle_.begin());
        }
    }

private:
    static constexpr std::size_t most = 64;
    struct entry {
        std::uint64_t launching;
        stream joined;
    };
    detail::mutex mutex_;  ///< guards what follows; a leaf in the lock order
    std::vector<entry> idle_;
};

// So that no fork finds it half made.
[[maybe_unused]] const stream_pool& pool_at_start = stream_pool::instance();

stream made_or_pooled(const stream_ref& from, std::size_t number) {
    std::optional<stream> pooled = stream_pool::instance().take(from.unique_id(), from.priority());
    while (pooled && !*pooled) {  // somebody closed it
        pooled = stream_pool::instance().take(from.unique_id(), from.priority());
    }
    if (pooled) {
        return *std::move(pooled);
    }
    return stream(from.device(),
                  {.priority = from.priority(), .name = std::string(from.name()) + " / " + std::to_string(number + 1)});
}

}  // namespace

parallel::parallel(std::size_t count, const stream_ref& from, source_location where)
    : from_(detail::owner<runtime::stream_state>(&from.state())), where_(where) {
    from.state().expect_open();
    streams_.reserve(count);
    try {
        for (std::size_t i = 0; i < count; ++i) {
            streams_.push_back(made_or_pooled(from, i));
            streams_.back().wait(from, where);
        }
    } catch (...) {
        give_back();  // they have no work
        throw;
    }
}

parallel::~parallel() {
    try {
        join(where_);
    } catch (...) {
        for (const stream& one : streams_) {
            try {
                one.synchronize(where_);
            } catch (...) {  // NOLINT(bugprone-empty-catch): whoever uses what failed is told
            }
        }
    }
}

void parallel::join(source_location where) {
    for (const stream& one : streams_) {
        // Not by the stream itself, which may have been closed.
        const order::mark tail = one.state().now(where);
        from_.wait(completion(tail.at.timeline, tail.at.at, tail.known), where);
    }
    give_back();
}

void parallel::give_back() noexcept {
    for (const stream& one : streams_) {
        if (one) {
            one.set_ordering(std::nullopt);
            stream_pool::instance().give(from_.unique_id(), one);
        }
    }
    streams_.clear();
}

}  // namespace weir
