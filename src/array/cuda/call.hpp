#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "array/cuda/source.hpp"
#include "array/walk.hpp"
#include "frontier/small_vector.hpp"

namespace weir::array_kernels {

/// One input of a kernel: an array's elements, or a number, as the function takes it.
struct argument {
    dtype stored = dtype::bool_;
    dtype computed = dtype::bool_;
    const std::byte* number = nullptr;  ///< null: an array
};

/// The 64-bit words of a kernel's argument (see source_of); room for those of most operations.
using argument_words = detail::small_vector<std::uint64_t, 20>;

/// A kernel and the words of its argument.
struct call {
    description kernel;
    argument_words words;
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
