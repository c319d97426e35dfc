#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "frontier/point.hpp"

namespace weir::order {

/// Finds the one among many accesses that belongs to a given timeline. A hash table of places in a list that the caller keeps:
/// `timeline_at(place)` returns the timeline of a place. `update`, `insert` and `find` allocate nothing.
class timeline_index {
public:
    static constexpr std::size_t none = ~std::size_t{0};

    /// Reserves room for places below `places`. May throw std::bad_alloc; then nothing has changed.
    void reserve(std::size_t places) {
        const std::size_t wanted = std::bit_ceil(2 * places);
        if (wanted > slots_.size()) {
            std::vector<std::uint32_t>(wanted, 0).swap(slots_);
            valid_ = false;
        }
    }

    /// Must be called when places have changed.
    void invalidate() noexcept { valid_ = false; }

    /// Enters the places in [first, last), unless the index is valid. If two places have the same timeline, `find` may return either.
    template <class TimelineAt>
    void update(std::size_t first, std::size_t last, TimelineAt&& timeline_at) noexcept {
        if (valid_) {
            return;
        }
        std::fill(slots_.begin(), slots_.end(), 0);
        valid_ = true;
        for (std::size_t place = first; place < last; ++place) {
            insert(place, timeline_at(place), timeline_at);
        }
    }

    /// Adds one place, unless its timeline has one.
    template <class TimelineAt>
    void insert(std::size_t place, frontiers::timeline_id timeline, TimelineAt&& timeline_at) noexcept {
        std::uint32_t& slot = slots_[slot_of(timeline, timeline_at)];
        if (slot == 0) {
            slot = static_cast<std::uint32_t>(place) + 1;
        }
    }

    template <class TimelineAt>
    [[nodiscard]] std::size_t find(frontiers::timeline_id timeline, TimelineAt&& timeline_at) const noexcept {
        const std::uint32_t found = slots_[slot_of(timeline, timeline_at)];
        return found == 0 ? none : found - 1;
    }

private:
    /// The slot of the timeline, or the empty slot that it would use.
    template <class TimelineAt>
    [[nodiscard]] std::size_t slot_of(frontiers::timeline_id timeline, TimelineAt& timeline_at) const noexcept {
        const std::size_t mask = slots_.size() - 1;
        std::size_t at = (timeline * std::size_t{0x9E3779B97F4A7C15} >> 32) & mask;
        while (slots_[at] != 0 && timeline_at(slots_[at] - 1) != timeline) {
            at = (at + 1) & mask;
        }
        return at;
    }

    bool valid_ = false;
    std::vector<std::uint32_t> slots_;  ///< places plus 1; 0 in an empty slot. At most half of the slots are used
};

}  // namespace weir::order
