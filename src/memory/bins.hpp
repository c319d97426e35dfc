#pragma once

#include <array>
#include <cstddef>

#include "memory/block.hpp"
#include "memory/size_class.hpp"
#include "order/history.hpp"

namespace weir::memory {

/// The free blocks that one timeline may use without a wait: their death frontiers lie wholly on it. One stack for each size class, so
/// that the block that was used last is reused first. Not synchronized: the pool's lock guards it.
class bins {
public:
    /// The largest size that is kept. For a larger block, its use costs more than a search in the index.
    static constexpr std::size_t largest = std::size_t{32} << 20;
    /// Beyond these limits, blocks go to the index of all free blocks, where other streams find them and neighbours merge.
    static constexpr std::size_t most_bytes = std::size_t{64} << 20;
    static constexpr std::size_t most_blocks = 4096;

    /// `pending` is the pool's sum of the bytes in free blocks that were not complete when last checked.
    explicit bins(std::size_t& pending) noexcept : pending_(&pending) {}

    /// The block of at least `size` bytes that was freed last; null if there is none.
    [[nodiscard]] block* take(std::size_t size) noexcept {
        if (size > largest) {
            return nullptr;
        }
        block* const b = lists_[class_above(size)].pop_back();
        if (b != nullptr) {
            forget(*b);
        }
        return b;
    }

    /// Keeps `b`; returns false if the limits do not allow it.
    [[nodiscard]] bool keep(block& b) noexcept {
        if (b.capacity > largest || bytes_ + b.capacity > most_bytes || blocks_ == most_blocks) {
            return false;
        }
        b.where = place::binned;
        b.counts_as_pending = !b.history.empty();
        bytes_ += b.capacity;
        ++blocks_;
        *pending_ += b.counts_as_pending ? b.capacity : 0;
        lists_[class_below(b.capacity)].push_back(b);
        return true;
    }

    /// Removes and returns the oldest block here of the class of `size`; null if there is none.
    [[nodiscard]] block* take_oldest(std::size_t size) noexcept {
        if (size > largest) {
            return nullptr;
        }
        block_list& list = lists_[class_below(size)];
        block* const b = list.first();
        if (b != nullptr) {
            list.remove(*b);
            forget(*b);
        }
        return b;
    }

    /// Removes all blocks and passes each to `use`.
    template <class Use>
    void empty_into(Use&& use) noexcept {
        if (blocks_ == 0) {
            return;  // the usual case in a program of many streams
        }
        for (block_list& list : lists_) {
            while (block* const b = list.pop_back()) {
                forget(*b);
                use(*b);
            }
        }
    }

    /// Passes each block to `look`, which leaves it where it is.
    template <class Look>
    void visit(Look&& look) noexcept {
        if (blocks_ == 0) {
            return;
        }
        for (block_list& list : lists_) {
            for (block* b = list.first(); b != nullptr; b = b->next) {
                look(*b);
            }
        }
    }

private:
    void forget(block& b) noexcept {
        b.where = place::aside;
        bytes_ -= b.capacity;
        --blocks_;
        *pending_ -= b.counts_as_pending ? b.capacity : 0;
    }

    std::size_t bytes_ = 0;
    std::size_t blocks_ = 0;
    std::size_t* pending_;
    std::array<block_list, class_above(largest) + 1> lists_;
};

}  // namespace weir::memory
