#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "array/cuda/source.hpp"
#include "array/walk.hpp"
#include "frontier/small_vector.hpp"

namespace weir::array_kernels {

/// One input of a kernel: the elements of an array, or a number in the type that the function takes.
struct argument {
    dtype stored = dtype::bool_;
    dtype computed = dtype::bool_;
    const std::byte* number = nullptr;  ///< null: an array
};

/// The 64-bit words of a kernel's argument (see source_of); the inline capacity suffices for most operations.
using argument_words = detail::small_vector<std::uint64_t, 20>;

/// A kernel and the words of its argument.
struct call {
    description kernel;
    argument_words words;
};

/// Computes operand 0 of a plan from the others, element by element. `extra` are numbers for the function. There must be
/// at least one element.
[[nodiscard]] call call_of(function what, const argument& result, std::span<const argument> inputs,
                           const walk::plan& all, std::array<std::uint64_t, 2> extra = {});

[[nodiscard]] inline std::uint64_t word(std::int64_t number) noexcept { return static_cast<std::uint64_t>(number); }
[[nodiscard]] inline std::uint64_t word(const std::byte* address) noexcept {
    return reinterpret_cast<std::uintptr_t>(address);
}
/// Adds the extents and the strides of `operands` operands, for a kernel with `rank` dimensions: extents of 1 fill up those that the plan
/// does not have. A kernel without operands has strides of one.
template <class Words, class Plan>
void add_layout(Words& words, const Plan& of, std::size_t rank, std::size_t operands) {
    const std::size_t missing = rank - of.dimensions();
    for (std::size_t d = 0; d < rank; ++d) {
        words.push_back(d < missing ? 1 : word(of.extent(d - missing)));
    }
    for (std::size_t d = 0; d < rank; ++d) {
        for (std::size_t k = 0; k < std::max<std::size_t>(operands, 1); ++k) {
            words.push_back(d < missing || operands == 0 ? 0 : word(of.stride(d - missing, k)));
        }
    }
}

}  // namespace weir::array_kernels
