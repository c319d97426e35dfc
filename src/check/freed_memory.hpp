#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "check/access_history.hpp"
#include "check/program_order.hpp"

namespace weir::check {

/// The place of memory.
struct memory_place {
    std::size_t device = 0;  ///< a number of the device
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;  ///< 0: no place
    /// The stream on which the allocator gives it out again without a wait, if there is one such: before another stream gets it, the
    /// allocator waits for all that uses it.
    std::optional<agent> stream;
};

/// What the owners of one memory come after when they let go. The memory is free once all owners have.
class owners_end {
public:
    /// An owner lets go. It is the program, which had given `allocating` to the allocating stream by then, or an object that was kept for
    /// an operation, which is complete.
    void release(const program_order& order, const clock& allocating);
    /// Whether `past` comes before the moment when the memory is free. `allocating_now`: what the allocating stream comes after at the last
    /// release.
    [[nodiscard]] bool comes_after(moment past, const clock& allocating_now) const noexcept;

private:
    clock program_;     ///< what the program's threads came after when they last let go
    clock allocating_;  ///< what the allocating stream came after then
    bool by_program_ = false;
    frontiers::frontier operations_;  ///< the operations that the memory was kept for, and what they come after
};

/// Accesses that may still happen to memory that has no owner any more. The next owner of the memory must come after them. Forgets the
/// older half if there are `most` memories.
class freed_memory {
public:
    /// Adds `accesses`, relative to `place`, that were not complete when the memory was dropped.
    void add(const memory_place& place, const std::vector<past_access>& accesses);
    /// The memory at `place` has a new owner: moves what may still happen to it, relative to `place`, to `to`.
    void take(const memory_place& place, access_history& to);
    /// The number of accesses that were discarded.
    [[nodiscard]] std::size_t forgotten() const noexcept { return forgotten_; }

private:
    static constexpr std::size_t most = std::size_t{1} << 16;
    static constexpr std::size_t most_spare = 256;

    /// Memory that was dropped, or what is left of it. Memory has one owner at a time, so no two of these overlap.
    struct part {
        std::uint64_t bytes = 0;
        std::optional<agent> stream;
        std::uint64_t age = 0;              ///< counts the drops
        std::vector<past_access> accesses;  ///< relative to its place
    };
    using parts = std::map<std::pair<std::size_t, std::uint64_t>, part>;  ///< by device and address

    part& insert(const memory_place& place, std::uint64_t age);
    void forget_older_half();

    parts parts_;
    std::vector<parts::node_type> spare_;  ///< to be used again, with the room that they have
    std::uint64_t drops_ = 0;
    std::size_t forgotten_ = 0;
};

}  // namespace weir::check
