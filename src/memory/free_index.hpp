#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "frontier/point.hpp"
#include "memory/block.hpp"
#include "memory/size_class.hpp"
#include "order/mark.hpp"
#include "weir/completion.hpp"

namespace weir::memory {

/// A stream that requests memory: its timeline and what it is ordered after.
struct requester {
    frontiers::timeline_id line = 0;
    order::clock known;
};

/// Which blocks a stream may get that it has to wait for on the device.
enum class ends : std::uint8_t {
    own,  ///< those for which it waits until their last uses are complete, and for nothing enqueued later
    any,
};

/// Which neighbours become one block.
enum class merging : std::uint8_t {
    /// Those that lose nothing by it: both complete, or both free on the same single timeline.
    equals,
    /// All that rule L1 allows: one death frontier dominates the other. The smaller frontier is lost, and so is the chance to give its
    /// memory without a wait to a stream that dominates only that one: used only when memory is short.
    comparable,
};

/// The free blocks of a pool that are in no bin, by size class, oldest first. Not synchronized: the pool's lock guards it.
class free_index {
public:
    /// `pending` is the pool's sum of the bytes in free blocks that were not complete when last checked.
    free_index(const order::watermarks& completed, std::size_t& pending) noexcept
        : completed_(&completed), pending_(&pending) {}

    /// Adds a free block, merged with its free neighbours where `how` allows. The block objects that become unused go to `spares`.
    void insert(block& b, merging how, block_list& spares) noexcept;
    void remove(block& b) noexcept;

    /// Removes all blocks and lists them in `all`.
    void take_all(block_list& all) noexcept;

    /// Updates all blocks to what is complete by now, and merges those that can be merged.
    void merge_all(merging how, block_list& spares) noexcept;

    /// A block of at least `size` bytes that `user` may use without a wait. Null if there is none among the first `most` of each class,
    /// which are the oldest and the likeliest to be complete.
    [[nodiscard]] block* find_ordered(std::size_t size, const requester& user, std::size_t most) const noexcept;
    /// A block of at least `size` bytes with the fewest points that `user` would have to wait for. Checks all blocks.
    [[nodiscard]] block* find_any(std::size_t size, const requester& user, ends which) const noexcept;
    /// What to wait for first: a point of the block that has been free for the longest time among those that are not complete. Leaves out
    /// blocks with a point at or after one of `but`. Nothing if all blocks are complete.
    [[nodiscard]] std::optional<frontiers::point> oldest_pending(std::span<const frontiers::point> but) const noexcept;
    /// Whether a block that was pending when it was last checked is complete.
    [[nodiscard]] bool has_newly_complete() const noexcept;

    /// Removes the chunks that are free and complete as a whole, as the driver gave them, and lists them in `whole`.
    void take_complete_chunks(block_list& whole) noexcept;

    /// Passes each block to `look`, which leaves it where it is.
    template <class Look>
    void visit(Look&& look) noexcept {
        for (block_list& list : lists_) {
            for (block* b = list.first(); b != nullptr; b = b->next) {
                look(*b);
            }
        }
    }

    static constexpr std::size_t everything = ~std::size_t{0};

private:
    template <class Suits>
    block* search(std::size_t size, std::size_t most, Suits&& suits) const noexcept;
    [[nodiscard]] bool must_wait(frontiers::point at, const requester& user) const noexcept;
    [[nodiscard]] std::size_t waits_for(const block& b, const requester& user) const noexcept;
    [[nodiscard]] bool has_own_ends(const block& b, const requester& user) const noexcept;
    [[nodiscard]] bool mergeable(block& low, block& high, merging how) const noexcept;
    void absorb_upper(block& low, block_list& spares) noexcept;

    const order::watermarks* completed_;
    std::size_t* pending_;
    std::array<block_list, class_count> lists_;
};

}  // namespace weir::memory
