#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "array/cuda/source.hpp"
#include "array/walk.hpp"
#include "weir/array.hpp"
#include "weir/completion.hpp"
#include "weir/dtype.hpp"
#include "weir/on.hpp"

namespace weir::array_kernels {

/// Description of a reduction.
struct reduction_of {
    function what = function::plus;
    bool mean = false;
    dtype stored = dtype::bool_;          ///< of the elements
    dtype computed = dtype::float64;      ///< of intermediate values
    dtype result = dtype::float64;        ///< of the results
    const walk::plan* results = nullptr;  ///< over the results and the first of the elements that are reduced to each
    const walk::plan* reduced = nullptr;  ///< over the elements that are reduced to one result; at least one element
    const std::byte* origin = nullptr;    ///< the first element
};

/// How a launch of a reduction divides its work, on which results depend.
struct reduction_launch {
    std::uint64_t results = 1;
    std::uint64_t elements = 1;  ///< of each result, or of each part of one
    bool across =
        false;  ///< the results of a block are next to each other in memory, so that its threads read adjacent elements

    /// Threads for each result. Chosen by the number of adjacent results, or of elements: warps read 32 adjacent ones.
    [[nodiscard]] std::uint64_t lanes() const noexcept {
        const std::uint64_t wanted = across ? threads / std::min<std::uint64_t>(32, std::bit_ceil(results))
                                            : std::max<std::uint64_t>(32, elements / elements_at_once);
        return std::min<std::uint64_t>({std::bit_ceil(wanted), std::bit_ceil(elements), std::uint64_t{threads}});
    }
    [[nodiscard]] std::uint64_t parts() const noexcept { return (elements - 1) / (lanes() * reduced_by_thread) + 1; }
    /// Blocks for each part.
    [[nodiscard]] std::uint64_t blocks() const noexcept { return (results - 1) / (threads / lanes()) + 1; }
};

/// Enqueues it: reads `x`, writes `out`. Each thread reduces up to 32 elements, blocks of threads combine the values of their threads
/// in pairs, and further launches combine the values of all blocks until one is left. The pairs are the same in every run, on
/// every device. A sum of n numbers is within 24 * ceil(log256(n)) * 2^-53 of the sum of their magnitudes, before it is
/// rounded to the result's type. Throws as launches::add and runtime::submit do.
completion enqueue(const on& where, const array& out, const array& x, const reduction_of& what);

}  // namespace weir::array_kernels
