#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "backend/cuda/streams/event_pool.hpp"
#include "backend/ring.hpp"
#include "backend/timeline.hpp"
#include "weir/detail/rare.hpp"

namespace weir::backend::cuda {

/// The events that were recorded in one stream and are not known to be complete, ordered by the epochs that they cover.
/// Not synchronised: the lock of the driver stream guards it. In the steady state it allocates nothing and takes no event from the
/// pool: a dropped element leaves its event in its slot, for the element that gets the slot next.
///
///     free  free | 12  13  (15)  16 | free  free
///                 first     |        end: used again next
///                           in the list, but the thread that took it has yet to record it: no wait gets it until then
class driver_stream_events {
public:
    /// Initial and largest capacity, pinned events aside. The fewer events there are, the fewer cache lines of Weir and the driver
    /// are touched in turn.
    static constexpr std::size_t few = 8;
    /// Twice as many operations as the driver's queue takes (1024): when the list is full, half of the operations are complete.
    static constexpr std::size_t most = 2048;
    /// Up to this capacity the list grows without a query to the driver whether some events are complete; the query would cost more.
    static constexpr std::size_t unasked = 64;

    struct alignas(32) recorded {  // a size that the processor can index by without a division
        epoch at = 0;              ///< the event is complete once this epoch is, and not before
        event_ref event;
        /// Later work may wait for anything (rule O7), so that no later event may stand in for this one.
        bool is_pinned = false;
    };

    /// The last one; without an event if there is none, or if it has yet to be recorded.
    [[nodiscard]] recorded last() const noexcept { return ring_.empty() ? recorded() : if_recorded(ring_.end() - 1); }

    /// The epoch that the last one covers, which may have yet to be recorded; 0 if there is none.
    [[nodiscard]] epoch last_epoch() const noexcept { return ring_.empty() ? 0 : ring_[ring_.end() - 1].at; }

    /// The first that covers `at` or a later epoch; null if there is none. The pointer is valid until the next change.
    [[nodiscard]] const recorded* behind(epoch at) const noexcept {
        return ring_.empty() || ring_[ring_.end() - 1].at < at ? nullptr : find_behind(at);
    }
    /// The one in the middle of all that cover `at`; without an event if there is none.
    [[nodiscard]] recorded middle_of_those_behind(epoch at) const noexcept;
    /// Whether the last event covers `at` and is recorded. If so, and `is_pinned`, it is pinned from now on.
    [[nodiscard]] bool cover(epoch at, bool is_pinned) noexcept;

    /// Adds an event for `at`, which is not before any other's, and returns it. The caller then records it, and calls `was_recorded`
    /// under no lock, or `forget` under the lock. A short list is searched faster and its events are used again sooner: where there is no
    /// room, half of the events are left out, but never a pinned one. A wait for an epoch whose event was left out gets the next later
    /// one. Returns null if no event can be used again: nothing was added then.
    [[nodiscard, gnu::always_inline]] pooled_event* next(epoch at, bool is_pinned) noexcept {
        if (!has_room() && !leave_some_out()) [[unlikely]] {
            detail::cold_path();
            return nullptr;
        }
        recorded& place = ring_[ring_.end()];
        if (!is_free(place)) [[unlikely]] {
            detail::cold_path();
            return nullptr;
        }
        return use_again(place, at, is_pinned);
    }
    /// The same for a thread that waits for `at`, while no event covers that yet and there is room; else null. `is_full`: no room is left.
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
    /// Keeps the first event, so that progress is seen, and the latest ones; leaves out others. Whether there is room now.
    bool leave_some_out() noexcept;
    static void was_recorded(pooled_event& one) noexcept { one.is_recorded.store(true, std::memory_order_release); }
    /// Takes out an event that `next` returned and that was not recorded.
    void forget(const pooled_event& one) noexcept;

    /// Adds a recorded event, where `next` returned null. Throws std::bad_alloc; nothing has changed then.
    void add(recorded&& added);
    /// Doubles the capacity, up to `most`, if there is memory.
    void keep_more() noexcept;
    /// The same where the capacity is below `unasked`. Whether that is so.
    bool keep_more_if_few() noexcept {
        const bool is_few = ring_.capacity() < unasked;
        if (is_few) {
            keep_more();
        }
        return is_few;
    }
    /// The event that covers `at` is known to be complete: drops those before it, and keeps this one for waits for any of these epochs.
    void are_over(epoch at) noexcept {
        over_ = at;
        drop_until(at - 1);
    }
    /// Whether `are_over` was called for `at` or a later epoch.
    [[nodiscard]] bool is_over(epoch at) const noexcept { return at <= over_; }
    /// Drops events that cover `over` or an earlier epoch.
    void drop_until(epoch over) noexcept;
    /// Whether a thread has yet to record an event that covers `upto` or an earlier epoch.
    [[nodiscard]] bool has_unrecorded(epoch upto) const noexcept;
    [[nodiscard]] bool empty() const noexcept { return ring_.empty(); }

private:
    [[nodiscard]] const recorded* find_behind(epoch at) const noexcept;
    /// Searches from the end, since most waits are for recent epochs.
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
    /// Whether the slot for the next element holds a recorded event that has no other user.
    [[nodiscard, gnu::always_inline]] static bool is_free(const recorded& place) noexcept {
        const pooled_event* const again = place.event.get();
        return again != nullptr && again->users.load(std::memory_order_acquire) == 1 &&
               again->is_recorded.load(std::memory_order_acquire);
    }
    [[gnu::always_inline]] pooled_event* use_again(recorded& place, epoch at, bool is_pinned) noexcept {
        pooled_event* const again = place.event.get();
        again->is_recorded.store(false, std::memory_order_relaxed);
        place.at = at;
        place.is_pinned = is_pinned;
        static_cast<void>(ring_.push());
        return again;
    }
    void move(std::uint64_t from, std::uint64_t to) noexcept;
    void take_out(std::uint64_t place) noexcept;

    ring<recorded> ring_;
    epoch over_ = 0;
};

}  // namespace weir::backend::cuda
