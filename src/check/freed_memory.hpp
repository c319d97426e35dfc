#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "check/access_history.hpp"
#include "check/program_order.hpp"

namespace weir::check {

/// The place of memory.
struct memory_place {
    std::string device;
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;  ///< 0: no place
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

/// Accesses that may still happen to memory that has no owner any more. The next owner of the memory must come after them. Keeps the
/// latest `most`.
class freed_memory {
public:
    /// Adds `accesses`, relative to `place`, that were not complete when the memory was dropped.
    void add(const memory_place& place, const std::vector<past_access>& accesses);
    /// The memory at `place` has a new owner: removes and returns what may still happen to it, relative to `place`.
    [[nodiscard]] access_history take(const memory_place& place);
    /// The number of accesses that were discarded.
    [[nodiscard]] std::size_t forgotten() const noexcept { return forgotten_; }

private:
    static constexpr std::size_t most = 4096;

    struct stray {
        std::string device;
        std::uint64_t base = 0;  ///< the address that the access is relative to
        past_access access;
    };
    std::deque<stray> strays_;
    std::size_t forgotten_ = 0;
};

}  // namespace weir::check
