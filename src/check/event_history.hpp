#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "check/program_order.hpp"
#include "frontier/point.hpp"
#include "weir/source_location.hpp"

namespace weir::check {

/// A wait that did not do what its author must have meant: of the event's records, it took the wrong one.
struct stale_wait {
    source_location wait;
    std::optional<source_location> taken;   ///< where the record stands that the wait took; none if there was no record
    std::optional<source_location> better;  ///< where the record stands that would have ordered the two; none yet
};

/// Which records events had, and which of them waits took: tells races that come from a stale event from others. Keeps
/// the latest `most` of each; a race beyond them is still found, and named after its two accesses only.
class event_history {
public:
    void recorded(std::uint64_t event, moment at, frontiers::point holds, const source_location& where);
    /// The wait at `at` took `target`.
    void waited(std::uint64_t event, moment at, frontiers::point target, const program_order& order,
                const source_location& where);
    /// The same where it is not known by which event: by all those that hold the point.
    void waited(moment at, frontiers::point target, const program_order& order, const source_location& where);

    /// A wait through an event that stands before the second of two unordered accesses, and with another record of the
    /// same event would order it after `first`: an earlier or later one, or one made where the wait is instead of before
    /// `first`. `comes_after(moment)`: whether the second access comes after that moment.
    template <class ComesAfter>
    [[nodiscard]] std::optional<stale_wait> find(moment first, const program_order& order,
                                                 ComesAfter&& comes_after) const {
        for (auto one = waits_.rbegin(); one != waits_.rend(); ++one) {
            if (comes_after(one->at)) {
                if (auto found = would_order(*one, first, order)) {
                    return found;
                }
            }
        }
        return std::nullopt;
    }

private:
    static constexpr std::size_t most = 1024;

    struct record {
        std::uint64_t event = 0;
        moment at;
        frontiers::point holds;
        source_location where;
    };
    struct wait {
        std::uint64_t event = 0;
        moment at;
        frontiers::point target;
        std::optional<moment>
            taken;                  ///< the same; none for a stream that had done nothing, or an event without a record
        frontiers::epoch tail = 0;  ///< what the stream of `taken` had reached when the wait was made
        source_location where;
    };
    [[nodiscard]] std::optional<stale_wait> would_order(const wait& one, moment first,
                                                        const program_order& order) const;

    std::deque<record> records_;
    std::deque<wait> waits_;
};

}  // namespace weir::check
