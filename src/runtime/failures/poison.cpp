#include "runtime/failures/poison.hpp"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <utility>
#include <vector>

#include "backend/backend.hpp"
#include "order/box.hpp"
#include "runtime/streams/reserved_map.hpp"
#include "weir/detail/mutex.hpp"

namespace weir::runtime {

namespace {

using pending_failures = backend::queue_events;

/// A footprint of more runs of bytes than this is treated as a whole: too much is poisoned, too little healed.
constexpr std::uint64_t most_runs = 65536;

struct range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    failure_ptr why;
};

bool by_runs(const order::footprint& where) noexcept {
    return !where.shape || (where.shape->exact() && where.shape->runs() <= most_runs);
}

/// The poisoned bytes of one resource.
class poisoned {
public:
    void add(const liveness_token& of, const order::footprint& where, const failure_ptr& why) noexcept {
        of_ = &of;
        try {
            std::vector<range> added;
            if (by_runs(where)) {
                order::for_each_run(where, [&](std::uint64_t first, std::uint64_t count) {
                    added.push_back({first, first + count, why});
                    return true;
                });
            } else {
                added.push_back({where.begin, where.end, why});
            }
            cut(where);
            std::vector<range> both;
            both.reserve(ranges_.size() + added.size() + 1);
            std::merge(ranges_.begin(), ranges_.end(), added.begin(), added.end(), std::back_inserter(both),
                       [](const range& a, const range& b) { return a.begin < b.begin; });
            ranges_ = std::move(both);
        } catch (const std::bad_alloc&) {
            const order::footprint all = order::hull({rough_.begin, rough_.end}, where);
            rough_ = {all.begin, all.end, rough_.why ? rough_.why : why};
        }
    }

    void heal(const order::footprint& where) noexcept {
        try {
            cut(where);
        } catch (const std::bad_alloc&) {
            // The bytes stay poisoned: their reader gets a failure that is already mended, which is better than the reverse.
        }
        if (order::covers(where, {rough_.begin, rough_.end})) {
            rough_ = {};
        }
    }

    [[nodiscard]] failure_ptr find(const order::footprint& where) const noexcept {
        auto at = std::partition_point(ranges_.begin(), ranges_.end(),
                                       [&](const range& one) { return one.end <= where.begin; });
        for (; at != ranges_.end() && at->begin < where.end; ++at) {
            if (order::overlap(where, {at->begin, at->end})) {
                return at->why;
            }
        }
        return order::overlap(where, {rough_.begin, rough_.end}) ? rough_.why : nullptr;
    }

    [[nodiscard]] bool empty() const noexcept { return ranges_.empty() && rough_.begin == rough_.end; }
    [[nodiscard]] const liveness_token* of() const noexcept { return of_; }

private:
    /// Removes the bytes of `where`. Throws std::bad_alloc; nothing has changed then.
    void cut(const order::footprint& where) {
        if (ranges_.empty()) {
            return;
        }
        std::vector<range> rest;
        rest.reserve(ranges_.size() + 1);
        if (by_runs(where)) {
            std::size_t next = 0;
            range chunk;
            const auto take = [&] {
                chunk = next < ranges_.size() ? ranges_[next] : range{};
                ++next;
            };
            take();
            order::for_each_run(where, [&](std::uint64_t first, std::uint64_t count) {
                const std::uint64_t last = first + count;
                while (chunk.why && chunk.begin < last) {
                    if (chunk.begin < first) {
                        rest.push_back({chunk.begin, std::min(chunk.end, first), chunk.why});
                    }
                    if (chunk.end > last) {
                        chunk.begin = last;
                        break;
                    }
                    take();
                }
                return chunk.why != nullptr;
            });
            for (; chunk.why; take()) {
                rest.push_back(chunk);
            }
        } else {
            std::copy_if(ranges_.begin(), ranges_.end(), std::back_inserter(rest), [&](const range& one) {
                return !order::covers(where, {one.begin, one.end});
            });
        }
        ranges_ = std::move(rest);
    }

    std::vector<range> ranges_;           ///< sorted and disjoint
    range rough_;                         ///< covers everything that could not be added to `ranges_` for lack of memory
    const liveness_token* of_ = nullptr;  ///< the resource's
};
using resources = reserved_map<std::uint64_t, poisoned>::map;

struct poison_store {
    detail::mutex mutex;  ///< guards what follows; a leaf in the lock order
    reserved_map<std::uint64_t, poisoned> list;
    /// Set if not even the reserve sufficed to record which resource: then all count as poisoned, for good. A result that is not
    /// valid must not pass for a valid one.
    failure_ptr everything;
};

poison_store& all_poison() {
    static auto* const one = new poison_store;  // NOLINT(cppcoreguidelines-owning-memory): lives for ever
    return *one;
}

// At static initialization, so that no fork finds it half constructed.
[[maybe_unused]] const auto& poison_at_start = all_poison();

void drop(poison_store& from, resources::iterator which) noexcept {
    from.list.entries().erase(which);
    pending_failures::remove_pending_failure();
}

}  // namespace

void poison::arm() { static_cast<void>(all_poison()); }

void poison::add(const liveness_token& of, std::uint64_t resource, const order::footprint& where,
                 const failure_ptr& why) noexcept {
    if (where.empty()) {
        return;
    }
    poison_store& kept = all_poison();
    const std::lock_guard lock(kept.mutex);
    if (poisoned* const entry = kept.list.find_or_add(resource)) {
        if (entry->empty()) {
            pending_failures::add_pending_failure();
        }
        entry->add(of, where, why);
    } else if (!kept.everything) {
        pending_failures::add_pending_failure();
        kept.everything = why;
    }
}

void poison::heal(std::uint64_t resource, const order::footprint& where) noexcept {
    if (where.empty()) {
        return;
    }
    poison_store& kept = all_poison();
    const std::lock_guard lock(kept.mutex);
    const auto found = kept.list.entries().find(resource);
    if (found == kept.list.entries().end()) {
        return;
    }
    found->second.heal(where);
    if (found->second.empty()) {
        drop(kept, found);
    }
}

failure_ptr poison::find(std::uint64_t resource, const order::footprint& where) noexcept {
    poison_store& kept = all_poison();
    const std::lock_guard lock(kept.mutex);
    const auto found = kept.list.entries().find(resource);
    failure_ptr why = found == kept.list.entries().end() ? nullptr : found->second.find(where);
    return why || where.empty() ? why : kept.everything;
}

poison::numbers poison::without_owner() {
    poison_store& kept = all_poison();
    numbers found;
    const std::lock_guard lock(kept.mutex);
    for (const auto& [resource, what] : kept.list.entries()) {
        if (what.of()->owner.load(std::memory_order_relaxed) != resource) {
            found.insert(resource);
        }
    }
    return found;
}

void poison::forget(const numbers& resources) noexcept {
    poison_store& kept = all_poison();
    const std::lock_guard lock(kept.mutex);
    for (const std::uint64_t resource : resources) {
        const auto found = kept.list.entries().find(resource);
        if (found != kept.list.entries().end()) {
            drop(kept, found);
        }
    }
}

}  // namespace weir::runtime
