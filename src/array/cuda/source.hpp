// The folder array/cuda/ does on CUDA devices what the loops of array/ do on the host: it writes CUDA C++ for one
// operation on operands of given types, and launches the compiled kernels.
#pragma once

#include <array>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "weir/arithmetic.hpp"
#include "weir/dtype.hpp"

namespace weir::array_kernels {

/// What a kernel computes from its operands. The first values are those of binary_operation, in its order. Bodies added at run
/// time get further values: see body.hpp.
enum class function : std::uint32_t {
    negative = static_cast<std::uint32_t>(binary_operation::bitwise_xor) + 1,
    invert,
    select,
    same,     ///< the element itself, converted
    counted,  ///< start + step * i, for the i-th element
    random,   ///< the i-th random number of a seed
    plus,     ///< reductions from here on
    lesser,
    larger,
};

[[nodiscard]] constexpr function of(binary_operation what) noexcept { return static_cast<function>(what); }

/// The properties that a kernel is compiled for. Everything else is an argument of its launch.
struct description {
    static constexpr std::size_t most_operands = 4;

    std::array<dtype, most_operands> stored{};  ///< types of elements in memory
    /// Types that the function takes; for the result: the type that it returns.
    std::array<dtype, most_operands> computed{};
    std::array<bool, most_operands> by_value{};  ///< a number, in the type that the function takes
    function what = function::same;
    std::uint8_t operands = 1;      ///< the result first
    std::uint8_t rank = 1;          ///< number of dimensions: see rank_for; for a reduction those of its results
    std::uint8_t reduced_rank = 1;  ///< for a reduction: number of reduced dimensions
    bool wide = false;              ///< elements are counted with 64 bits
    bool packed = false;            ///< the elements of each array lie one after the other
    bool last = true;               ///< for a reduction: computes the results, not parts of them
    bool mean = false;              ///< for a reduction: divides the results
    std::uint8_t unused = 0;        ///< in place of padding, whose bits comparisons cannot rely on

    using words = std::array<std::uint32_t, 12>;  ///< the whole struct, which has no padding
    /// An arbitrary order, for maps.
    friend auto operator<=>(const description& a, const description& b) noexcept {
        return std::bit_cast<words>(a) <=> std::bit_cast<words>(b);
    }
    friend bool operator==(const description& a, const description& b) noexcept {
        const auto x = std::bit_cast<words>(a);  // a comparison without a call for each array
        const auto y = std::bit_cast<words>(b);
        std::uint32_t different = 0;
        for (std::size_t i = 0; i < x.size(); ++i) {
            different |= x[i] ^ y[i];
        }
        return different == 0;
    }
};

/// Kernels exist only for these numbers of dimensions; further extents of 1 fill them up.
[[nodiscard]] constexpr std::uint8_t rank_for(std::size_t dimensions) noexcept {
    for (const std::uint8_t rank : std::array<std::uint8_t, 5>{1, 2, 3, 4, 8}) {
        if (dimensions <= rank) {
            return rank;
        }
    }
    return 32;
}

/// Threads in a block of every kernel, and how many elements each of them works on at a time.
inline constexpr unsigned threads = 256;
inline constexpr unsigned elements_at_once = 4;
/// Number of elements that a thread of a reduction combines into one value: with `lanes` threads for a result, lanes times as many make
/// up one part of it. Fixed, so that results depend only on the operands.
inline constexpr unsigned reduced_by_thread = 32;

/// The name of the kernel in the source.
inline constexpr const char* kernel_name = "weir_kernel";
/// With these options results are rounded as on the host: no multiplication is fused with an addition.
[[nodiscard]] std::span<const std::string> compiler_options();

/// @{
/// What the sources of all reductions contain: the function `offset` of an index, and the start of the function `run(p, shared)`, which
/// finds the part of the elements that a thread reduces. `value` is the type of the reduced values; `parameters` and `index` are defined before.
[[nodiscard]] std::string offset_text();
[[nodiscard]] std::string part_text(const std::string& value);
/// @}

/// CUDA C++ with one kernel. Its one argument is a struct of 64-bit words:
///
///     elements, extra[2], operand[operands][2] (an address, or an element), extent[rank], stride[rank][operands]
///
/// with strides in bytes, and for a reduction
///
///     results, elements, total, lanes, across, blocks, out, in, result_extent[rank], result_stride[rank][2],
///     extent[reduced_rank], stride[reduced_rank]
///
/// (see launch.cpp and reduction.cpp, which fill them). Dimensions are outermost first.
[[nodiscard]] std::string source_of(const description& what);
/// The same for a set of kernels, in one source: the compiler reads what they share once. The definitions of their functions must not
/// define the same names differently. The i-th kernel is called name_in_set(i).
[[nodiscard]] std::string source_of(std::span<const description> all);
[[nodiscard]] std::string name_in_set(std::size_t i);

}  // namespace weir::array_kernels
