#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "check/program_order.hpp"
#include "frontier/point.hpp"
#include "weir/source_location.hpp"

namespace weir::check {

/// A wait that did not do what its author must have meant: it took the wrong one of the event's records.
struct stale_wait {
    source_location wait;
    std::optional<source_location> taken;  ///< the place of the record that the wait took; none if there was no record
    /// The place of the record that would have ordered the two; none if there is none yet.
    std::optional<source_location> better;
};

/// The records of events, and which of them waits took: tells races that come from a stale event from others. Keeps the latest `most`
/// of each; a race beyond them is still found, but its kind is that of its two accesses.
class event_history {
public:
    void recorded(std::uint64_t event, moment at, frontiers::point holds, const source_location& where);
    /// The wait at `at`, through `event`, took `target`.
    void waited(std::uint64_t event, moment at, frontiers::point target, const program_order& order,
                const source_location& where);
    /// The same if the event is not known: adds a wait for every event that holds the point.
    void waited(moment at, frontiers::point target, const program_order& order, const source_location& where);

    /// Finds a wait through an event that comes before the second of two unordered accesses, and that would order it after `first` if it
    /// had taken another record of the same event: an earlier or later one, or one made at the wait instead of before `first`.
    /// `comes_after(moment)`: whether the second access comes after that moment.
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
        /// The moment of `target`; none for a stream that had done nothing, or an event without a record.
        std::optional<moment> taken;
        frontiers::epoch tail = 0;  ///< how far the stream of `taken` was when the wait was made
        source_location where;
    };
    [[nodiscard]] std::optional<stale_wait> would_order(const wait& one, moment first,
                                                        const program_order& order) const;

    std::deque<record> records_;
    std::deque<wait> waits_;
};

}  // namespace weir::check
