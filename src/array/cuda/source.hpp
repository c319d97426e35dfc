// The folder array/cuda/ does on CUDA devices what the loops of array/ do on the host: it writes CUDA C++ for one
// operation on operands of given types, and launches what is compiled of it.
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

/// What a kernel computes of its operands. The first are those of binary_operation, in its order.
enum class function : std::uint8_t {
    negative = static_cast<std::uint8_t>(binary_operation::bitwise_xor) + 1,
    invert,
    select,
    same,     ///< the element itself, converted
    counted,  ///< start + step * i, for the i-th element
    random,   ///< the i-th random number of a seed
    plus,     ///< from here on reductions
    lesser,
    larger,
};

[[nodiscard]] constexpr function of(binary_operation what) noexcept { return static_cast<function>(what); }

/// What one kernel is compiled for. All else are arguments of its launch.
struct description {
    static constexpr std::size_t most_operands = 4;

    function what = function::same;
    std::uint8_t operands = 1;                    ///< the result first
    std::array<dtype, most_operands> stored{};    ///< as what elements lie in memory
    std::array<dtype, most_operands> computed{};  ///< as what the function takes them; of the result: gives it
    std::array<bool, most_operands> by_value{};   ///< a number, as the function takes it
    std::uint8_t rank = 1;                        ///< dimensions: see rank_for; of a reduction those of its results
    std::uint8_t reduced_rank = 1;                ///< of a reduction: those that go
    bool wide = false;                            ///< elements are counted with 64 bits
    bool packed = false;                          ///< in all that are no numbers, elements lie one after the other
    bool last = true;                             ///< of a reduction: gives the results, not parts of them
    bool mean = false;                            ///< and divides them

    friend auto operator<=>(const description&, const description&) = default;  // NOLINT(modernize-use-nullptr)
    friend bool operator==(const description& a, const description& b) noexcept {
        using words = std::array<std::uint32_t, 5>;  // without a call for each array
        const auto x = std::bit_cast<words>(a);
        const auto y = std::bit_cast<words>(b);
        std::uint32_t different = 0;
        for (std::size_t i = 0; i < x.size(); ++i) {
            different |= x[i] ^ y[i];
        }
        return different == 0;
    }
};

/// Kernels are made for these numbers of dimensions alone; more extents of 1 make up for the rest.
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
/// Elements of which a thread of a reduction makes one value: with `lanes` threads for a result, lanes times as many make
/// up one part of it. Fixed, so that results depend on nothing but the operands.
inline constexpr unsigned reduced_by_thread = 32;

/// The name of the kernel in the source.
inline constexpr const char* kernel_name = "weir_kernel";
/// With these options results are rounded as the host's are: no multiplication is fused with an addition.
[[nodiscard]] std::span<const std::string> compiler_options();

/// CUDA C++ with one kernel. Its one argument is a struct of 64-bit words:
///
///     elements, extra[2], operand[operands][2] (an address, or an element), extent[rank], stride[rank][operands]
///
/// with strides in bytes, and of a reduction
///
///     results, elements, total, lanes, across, blocks, out, in, result_extent[rank], result_stride[rank][2],
///     extent[reduced_rank], stride[reduced_rank]
///
/// (see launch.cpp and reduction.cpp, which fill them). Dimensions are outermost first.
[[nodiscard]] std::string source_of(const description& what);

}  // namespace weir::array_kernels
