#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "check/access_history.hpp"
#include "check/program_order.hpp"

namespace weir::check {

/// Where memory lies.
struct memory_place {
    std::string device;
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;  ///< 0: nowhere
};

/// What the owners of one piece of memory come after when they let go. The memory is free once all have.
class owners_end {
public:
    /// An owner lets go: the program, which had given `allocating` to the allocating stream by then, or what was kept for
    /// an operation, which is over.
    void release(const program_order& order, const clock& allocating);
    /// Whether `past` is over when the memory is free. `allocating_now`: what the allocating stream comes after at the
    /// last release.
    [[nodiscard]] bool comes_after(moment past, const clock& allocating_now) const noexcept;

private:
    clock program_;     ///< what the program's threads knew when they last let go
    clock allocating_;  ///< and the allocating stream
    bool by_program_ = false;
    frontiers::frontier operations_;  ///< the operations that it was kept for, and what they come after
};

/// Accesses that may still happen to memory that has no owner any more. The next owner of the memory has to come after
/// them. Keeps the latest `most`.
class freed_memory {
public:
    /// `accesses`, relative to `place`, were not over when the memory was dropped.
    void add(const memory_place& place, const std::vector<past_access>& accesses);
    /// The memory at `place` has a new owner: takes out what may still happen to it, relative to `place`.
    [[nodiscard]] access_history take(const memory_place& place);
    /// How many accesses were forgotten.
    [[nodiscard]] std::size_t forgotten() const noexcept { return forgotten_; }

private:
    static constexpr std::size_t most = 4096;

    struct stray {
        std::string device;
        std::uint64_t base = 0;  ///< what the access is relative to
        past_access access;
    };
    std::deque<stray> strays_;
    std::size_t forgotten_ = 0;
};

}  // namespace weir::check
