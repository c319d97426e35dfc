#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "array/cuda/source.hpp"
#include "array/walk.hpp"

namespace weir::array_kernels {

/// One input of a kernel: an array's elements, or a number, as the function takes it.
struct argument {
    dtype stored = dtype::bool_;
    dtype computed = dtype::bool_;
    const std::byte* number = nullptr;  ///< null: an array
};

/// A kernel and the words of its argument (see source_of).
struct call {
    description kernel;
    std::vector<std::uint64_t> words;
};

/// Computes operand 0 of a plan of the others, element by element. `extra` are numbers for the function. There is at least
/// one element.
[[nodiscard]] call call_of(function what, const argument& result, std::span<const argument> inputs,
                           const walk::plan& all, std::array<std::uint64_t, 2> extra = {});

[[nodiscard]] inline std::uint64_t word(std::int64_t number) noexcept { return static_cast<std::uint64_t>(number); }
[[nodiscard]] inline std::uint64_t word(const std::byte* address) noexcept {
    return reinterpret_cast<std::uintptr_t>(address);
}

}  // namespace weir::array_kernels
