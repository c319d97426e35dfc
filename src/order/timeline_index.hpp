#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "frontier/point.hpp"

namespace weir::order {

/// Finds the one of many accesses that is of a given timeline. A hash table of places in a list that somebody else keeps:
/// `timeline_at(place)` tells the timeline of a place. Filling and asking allocate nothing.
class timeline_index {
public:
    static constexpr std::size_t none = ~std::size_t{0};

    /// Makes room for places below `places`. May throw std::bad_alloc; then nothing has changed.
    void reserve(std::size_t places) {
        const std::size_t wanted = std::bit_ceil(2 * places);
        if (wanted > slots_.size()) {
            std::vector<std::uint32_t>(wanted, 0).swap(slots_);
            valid_ = false;
        }
    }

    /// To be said when places have changed.
    void invalidate() noexcept { valid_ = false; }

    /// Takes the places from `first` to before `last`, unless they are known. Of two of one timeline either may be found.
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

    /// Adds one, unless its timeline has one.
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
    /// The slot of the timeline, or the empty one that it would take.
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
    std::vector<std::uint32_t> slots_;  ///< places, counted from 1; 0 where there is none. At most half are taken
};

}  // namespace weir::order
