#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "backend/cuda/event_pool.hpp"
#include "backend/ring.hpp"
#include "backend/timeline.hpp"
#include "weir/detail/rare.hpp"

namespace weir::backend::cuda {

/// The events that were recorded in one stream and are not known to be over, in the order of the epochs that they stand behind.
/// Not synchronised: the lane's lock guards it. In the steady state nothing is allocated, and no event comes from the pool:
/// what is dropped leaves its event in its place, for the one that gets the place next.
///
///     over  over | 12  13  (15)  16 | over  over
///                 first     |        end: used again next
///                           in the list, and recorded presently by the thread that has it in hand: nobody gets it yet
class lane_events {
public:
    /// So many have room, marks aside: at first, and at most. The fewer there are, the fewer cache lines of Weir's and the driver's
    /// go round.
    static constexpr std::size_t few = 8;
    /// Twice as many operations as the driver's queue takes (1024): so half of them are over where there is no room left.
    static constexpr std::size_t most = 2048;
    /// Up to so many the list grows without a question to the driver whether some are over: that pays for what it saves later.
    static constexpr std::size_t unasked = 64;

    struct alignas(32) recorded {  // of a size by which the processor need not divide
        epoch at = 0;              ///< the event is over once this is, and not before
        event_ref event;
        bool is_mark = false;  ///< what comes later may wait for anything (rule O7): nobody gets that event instead
    };

    /// The last one; without an event if there is none.
    [[nodiscard]] recorded last() const noexcept { return ring_.empty() ? recorded() : if_recorded(ring_.end() - 1); }

    /// Behind what the last one stands, which may be recorded presently; 0 if there is none.
    [[nodiscard]] epoch last_epoch() const noexcept { return ring_.empty() ? 0 : ring_[ring_.end() - 1].at; }

    /// The first that stands behind `at` or a later epoch; null if there is none. Until the next change.
    [[nodiscard]] const recorded* behind(epoch at) const noexcept {
        return ring_.empty() || ring_[ring_.end() - 1].at < at ? nullptr : find_behind(at);
    }
    /// The one in the middle of all that do; without an event if there is none.
    [[nodiscard]] recorded middle_of_those_behind(epoch at) const noexcept;
    /// Whether there is one for `at`. If so, and `is_mark`, the last one is a mark from now on.
    [[nodiscard]] bool cover(epoch at, bool is_mark) noexcept;

    /// Adds one for `at`, which is not before any other's, and answers its event, which the caller records then: `was_recorded` or
    /// `forget` follows, under no lock and under it. Fewer events are quicker found and sooner used again: where there is no room,
    /// half of them are left out, but never a mark; who waits for the epoch of one gets the next later one. Null if there is no
    /// event to use again: nothing was added then.
    [[nodiscard, gnu::always_inline]] pooled_event* next(epoch at, bool is_mark) noexcept {
        if (!has_room() && !leave_some_out()) [[unlikely]] {
            detail::rare();
            return nullptr;
        }
        recorded& place = ring_[ring_.end()];
        if (!is_free(place)) [[unlikely]] {
            detail::rare();
            return nullptr;
        }
        return use_again(place, at, is_mark);
    }
    /// The same for who waits for `at`, where none stands behind that yet and there is room; else null. Whether there is none left.
    [[nodiscard, gnu::always_inline]] pooled_event* next_behind_all(epoch at, bool& is_full) noexcept {
        if (!has_room() || (!ring_.empty() && ring_[ring_.end() - 1].at >= at)) {
            return nullptr;
        }
        recorded& place = ring_[ring_.end()];
        if (!is_free(place)) {
            return nullptr;
        }
        is_full = !ring_.has_room_for(2);
        return use_again(place, at, false);
    }
    [[nodiscard]] bool has_room() const noexcept { return ring_.has_room_for(1); }
    [[nodiscard]] bool has_room_for(std::size_t more) const noexcept { return ring_.has_room_for(more); }
    /// The first one stays, so that progress is seen, and so do the last ones. Whether there is room now.
    bool leave_some_out() noexcept;
    static void was_recorded(pooled_event& one) noexcept { one.is_recorded.store(true, std::memory_order_release); }
    /// Takes out one that `next` answered and that was not recorded.
    void forget(const pooled_event& one) noexcept;

    /// Adds one that is recorded, where `next` has none. Throws std::bad_alloc; nothing has changed then.
    void add(recorded&& added);
    /// Has room for twice as many from now on, up to `most`, if there is memory.
    void keep_more() noexcept;
    /// The same where there is room for few. Whether that is so.
    bool keep_more_if_few() noexcept {
        const bool is_few = ring_.capacity() < unasked;
        if (is_few) {
            keep_more();
        }
        return is_few;
    }
    /// The event that stands behind `at` is known to be over: drops those before it, and keeps it for waits for any of these epochs.
    void are_over(epoch at) noexcept {
        over_ = at;
        drop_until(at - 1);
    }
    /// Whether that was said of `at`, or of a later one.
    [[nodiscard]] bool is_over(epoch at) const noexcept { return at <= over_; }
    /// Drops those that stand behind `over` or an earlier epoch.
    void drop_until(epoch over) noexcept;
    /// Whether some thread has yet to record one that stands behind `upto` or an earlier epoch.
    [[nodiscard]] bool has_unrecorded(epoch upto) const noexcept;
    [[nodiscard]] bool empty() const noexcept { return ring_.empty(); }

private:
    [[nodiscard]] const recorded* find_behind(epoch at) const noexcept;
    /// Looked for from behind, since most wait for what came last.
    [[nodiscard]] std::uint64_t place_behind(epoch at) const noexcept {
        std::uint64_t found = ring_.end();
        while (found != ring_.first() && ring_[found - 1].at >= at) {
            --found;
        }
        return found;
    }
    [[nodiscard]] recorded if_recorded(std::uint64_t place) const noexcept {
        return ring_[place].event.is_recorded() ? ring_[place] : recorded();
    }
    /// Whether the event that lies where the next one will is there and nobody else has it.
    [[nodiscard, gnu::always_inline]] static bool is_free(const recorded& place) noexcept {
        const pooled_event* const again = place.event.get();
        return again != nullptr && again->users.load(std::memory_order_acquire) == 1 &&
               again->is_recorded.load(std::memory_order_acquire);
    }
    [[gnu::always_inline]] pooled_event* use_again(recorded& place, epoch at, bool is_mark) noexcept {
        pooled_event* const again = place.event.get();
        again->is_recorded.store(false, std::memory_order_relaxed);
        place.at = at;
        place.is_mark = is_mark;
        static_cast<void>(ring_.push());
        return again;
    }
    void move(std::uint64_t from, std::uint64_t to) noexcept;
    void take_out(std::uint64_t place) noexcept;

    ring<recorded> ring_;
    epoch over_ = 0;
};

}  // namespace weir::backend::cuda
