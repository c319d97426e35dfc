// The folder order/ decides which waits an operation needs. It is pure: it knows no device, no thread and no lock.
// It includes frontier/ and nothing else of Weir.
#pragma once

#include <memory>

#include "frontier/frontier.hpp"
#include "frontier/kept_memory.hpp"
#include "weir/detail/intrusive.hpp"

namespace weir::order {

using frontiers::epoch;
using frontiers::frontier;
using frontiers::point;
using frontiers::timeline_id;

/// What a point is ordered after on *other* timelines. Immutable and shared, since many accesses of a stream have the
/// same; null stands for the empty frontier, which is all a one-stream program ever has.
/// Each operation that waits needs a new one, and lets go of one as a rule. Begins with a cache line, in which all lies that
/// is asked of every one.
class alignas(64) shared_frontier final : public detail::shared_object,
                                          public detail::keeps_memory<shared_frontier>,
                                          public frontier {
public:
    shared_frontier() = default;
    explicit shared_frontier(const frontier& of) : frontier(of) {}
};
using clock = detail::shared_owner<shared_frontier>;

/// A clock of its own. Throws std::bad_alloc.
[[nodiscard]] inline clock make_clock(const frontier& of) { return clock(std::make_unique<shared_frontier>(of)); }

/// A point together with everything it is ordered after: what an event holds, what a history keeps for each access,
/// what a death frontier consists of. Whoever waits for the point is ordered after the clock, too (rule O2).
struct mark {
    point at;
    clock known;
};

/// A mark that belongs to somebody else, who keeps its clock: what is passed around while one operation is planned, where
/// counting the owners of each clock would cost more than everything else.
struct mark_view {
    point at;
    const shared_frontier* known = nullptr;

    mark_view() = default;
    mark_view(point where, const shared_frontier* its_clock) noexcept : at(where), known(its_clock) {}
    mark_view(const mark& of) noexcept : at(of.at), known(of.known.get()) {}  // NOLINT(google-explicit-constructor)
    mark_view(mark&&) = delete;                                               // its clock would be gone
};

/// Whether whoever is ordered after `m` is thereby ordered after `p`.
[[nodiscard]] inline bool covers(const mark_view& m, point p) noexcept {
    if (m.at.timeline == p.timeline) {
        return p.at <= m.at.at;
    }
    return m.known != nullptr && m.known->covers(p);
}
[[nodiscard]] inline bool covers(const mark& m, point p) noexcept { return covers(mark_view{m.at, m.known.get()}, p); }

/// Tells how far timelines are known to be over (the *completed watermark* of rule O10).
///
/// A class of its own rather than a std::function: it is asked on the hot path, and a test, or the counting of minimal
/// waits, asks `nothing_completes`.
class watermarks {
public:
    watermarks() = default;
    watermarks(const watermarks&) = delete;
    watermarks& operator=(const watermarks&) = delete;

    /// The largest epoch of `timeline` that is over together with all before it. May lag behind, never run ahead.
    [[nodiscard]] virtual epoch completed(timeline_id timeline) const noexcept = 0;

    [[nodiscard]] bool is_complete(point p) const noexcept { return p.at <= completed(p.timeline); }

    /// Whether a stream that waits for `p` waits for nothing that was enqueued after `p`. Blocks for no work and asks no device.
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
