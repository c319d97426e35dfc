#pragma once

#include <cstddef>
#include <cstdint>

#include "array/elements/operands.hpp"
#include "array/elements/reduction_step.hpp"
#include "array/walk.hpp"
#include "frontier/small_vector.hpp"

namespace weir::elements {

/// What the host computes with: the program, the layouts of the operands, and the bytes of numbers.
struct host_reduction_plan {
    host_reduction program = nullptr;
    walk::large_plan results;  ///< outputs, then inputs: over the results, and the first element of each
    walk::large_plan reduced;  ///< inputs: over the elements of one result, in C order
    std::size_t outputs = 1;
    std::size_t inputs = 0;
    std::size_t item = 0;  ///< bytes of a value
    /// Results that one step computes where the elements of one result are closer to each other than those of adjacent results.
    std::int64_t rows = 1;
    detail::small_vector<number_bytes, 4> numbers;

    [[nodiscard]] std::int64_t columns() const noexcept {
        return results.dimensions() > 0 ? results.extent(results.dimensions() - 1) : 1;
    }
    /// Whether the elements of adjacent results are closer to each other than those of one result.
    [[nodiscard]] bool across() const noexcept {
        for (std::size_t k = 0; k < inputs && columns() > 1; ++k) {
            if (reduced.first(k) != nullptr) {
                const auto distance = [](std::int64_t stride) { return stride < 0 ? -stride : stride; };
                return reduced.elements() == 1 ||
                       distance(results.column_stride(outputs + k)) < distance(reduced.column_stride(k));
            }
        }
        return false;
    }
};

/// Computes all results, on several threads if `shares` and there is enough to do. Results depend on neither. Throws std::bad_alloc.
void reduce_on_host(const host_reduction_plan& plan, bool shares);

}  // namespace weir::elements
