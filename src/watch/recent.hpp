#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace weir::detail {

/// Remembers values by the addresses where memory begins, one for each of `places` groups of addresses: what was kept last. So what is
/// asked for often is found in a step. Not synchronized.
template <class Value>
class recent {
public:
    /// Null if it is not there.
    [[nodiscard]] const Value* find(std::uint64_t address) const noexcept {
        const kept& one = all_[place_of(address)];
        return one.address == address ? &one.value : nullptr;
    }
    void keep(std::uint64_t address, Value value) noexcept { all_[place_of(address)] = {address, value}; }
    void forget(std::uint64_t address) noexcept {
        if (find(address) != nullptr) {
            all_[place_of(address)] = {};
        }
    }

private:
    struct kept {
        std::uint64_t address = std::numeric_limits<std::uint64_t>::max();  ///< where no memory begins
        Value value{};
    };
    static constexpr std::size_t places = 2048;
    static_assert((places & (places - 1)) == 0);

    /// By Fibonacci hashing (Knuth, The Art of Computer Programming, volume 3, section 6.4): allocators give out multiples of some size.
    [[nodiscard]] static std::size_t place_of(std::uint64_t address) noexcept {
        return static_cast<std::size_t>(address * 0x9E3779B97F4A7C15U >> 32U) % places;
    }

    std::array<kept, places> all_{};
};

}  // namespace weir::detail
