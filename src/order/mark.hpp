// The folder order/ decides which waits an operation needs. It is pure: it knows no device, no thread and no lock.
// It includes frontier/ and nothing else of Weir.
#pragma once

#include <memory>
#include <new>
#include <utility>

#include "frontier/frontier.hpp"
#include "frontier/kept_memory.hpp"
#include "weir/detail/intrusive.hpp"

namespace weir::order {

using frontiers::epoch;
using frontiers::frontier;
using frontiers::frontier_base;
using frontiers::point;
using frontiers::timeline_id;

/// What a point is ordered after on *other* timelines. Immutable and shared, because many accesses of a stream have the same clock; null
/// stands for the empty frontier, the only one that a one-stream program has.
/// Each operation that waits needs a new one and usually drops one, and each idle array may keep one. So its size depends on its highest
/// timeline: the first cache line has places for the first four timelines, each further line for eight more.
class alignas(64) shared_frontier final : public detail::shared_object,
                                          private detail::keeps_memory<shared_frontier, 9>,
                                          public frontier_base {
    using memory = detail::keeps_memory<shared_frontier, 9>;

public:
    /// A clock without points, with room for at least `strides` strides of the first timelines. Throws std::bad_alloc.
    [[nodiscard]] static std::unique_ptr<shared_frontier> with_room_for(timeline_id strides) {
        const timeline_id lines = strides / 2 + 1;
        return std::unique_ptr<shared_frontier>(::new (memory::take(lines - 1)) shared_frontier(2 * lines - 1));
    }
    /// A clock with these points. Throws std::bad_alloc.
    template <class Frontier>
    [[nodiscard]] static std::unique_ptr<shared_frontier> of(Frontier&& points) {
        std::unique_ptr<shared_frontier> made = with_room_for(points.strides());
        made->assign(std::forward<Frontier>(points));
        return made;
    }

    static void operator delete(shared_frontier* one, std::destroying_delete_t) noexcept {
        const timeline_id lines = (one->room() + 1) / 2;
        one->~shared_frontier();
        memory::give(one, lines - 1);
    }

    ~shared_frontier() override = default;

private:
    explicit shared_frontier(timeline_id room) noexcept : frontier_base(room) {}
};
static_assert(sizeof(shared_frontier) == 64);
using clock = detail::shared_owner<shared_frontier>;

/// A new clock. Throws std::bad_alloc.
template <class Frontier>
[[nodiscard]] clock make_clock(Frontier&& of) {
    return clock(shared_frontier::of(std::forward<Frontier>(of)));
}

/// A point together with everything it is ordered after: the content of an event, of an access in a history, and of a death frontier. A
/// stream that waits for the point is ordered after the clock, too (rule O2).
struct mark {
    point at;
    clock known;
};

/// A reference to a mark whose owner keeps the clock. Used while one operation is planned, where counting the owners of each clock would
/// cost more than everything else.
struct mark_view {
    point at;
    const shared_frontier* known = nullptr;

    mark_view() = default;
    mark_view(point where, const shared_frontier* its_clock) noexcept : at(where), known(its_clock) {}
    mark_view(const mark& of) noexcept : at(of.at), known(of.known.get()) {}  // NOLINT(google-explicit-constructor)
    mark_view(mark&&) = delete;                                               // the clock would be destroyed
};

/// Whether everything that is ordered after `m` is thereby ordered after `p`.
[[nodiscard]] inline bool covers(const mark_view& m, point p) noexcept {
    if (m.at.timeline == p.timeline) {
        return p.at <= m.at.at;
    }
    return m.known != nullptr && m.known->covers(p);
}
[[nodiscard]] inline bool covers(const mark& m, point p) noexcept { return covers(mark_view{m.at, m.known.get()}, p); }

/// How far timelines are known to be complete (the *completed watermark* of rule O10).
///
/// A class and not a std::function: it is used on the hot path, and a test, or the counting of minimal waits, replaces it by
/// `nothing_completes`.
class watermarks {
public:
    watermarks() = default;
    watermarks(const watermarks&) = delete;
    watermarks& operator=(const watermarks&) = delete;

    /// The largest epoch of `timeline` that is complete together with all before it. May lag behind, but must never run ahead.
    [[nodiscard]] virtual epoch completed(timeline_id timeline) const noexcept = 0;

    [[nodiscard]] bool is_complete(point p) const noexcept { return p.at <= completed(p.timeline); }

    /// Whether a stream that waits for `p` waits for nothing that was enqueued after `p`. Does not block on work and calls no device.
    [[nodiscard]] virtual bool has_own_end(point /*p*/) const noexcept { return true; }

protected:
    ~watermarks() = default;
};

/// Watermarks under which no point is ever complete: completion-based elision switched off.
class nothing_completes final : public watermarks {
public:
    [[nodiscard]] epoch completed(timeline_id /*timeline*/) const noexcept override { return 0; }
};

}  // namespace weir::order
