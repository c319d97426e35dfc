// Shared by the benchmarks of sparse systems: the second difference on the points of a square.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "weir/weir.hpp"

namespace weir::bench {

/// The elements by rows; by columns they are the same.
struct grid {
    std::vector<std::int32_t> offsets{0};
    std::vector<std::int32_t> columns;
    std::vector<double> values;

    /// side * side unknowns.
    explicit grid(std::int32_t side) {
        const std::int32_t n = side * side;
        for (std::int32_t i = 0; i < n; ++i) {
            for (const std::int32_t step : {-side, -1, 0, 1, side}) {
                const std::int32_t j = i + step;
                const bool is_beside = (step != -1 || i % side != 0) && (step != 1 || j % side != 0);
                if (j >= 0 && j < n && is_beside) {
                    columns.push_back(j);
                    values.push_back(step == 0 ? 4.5 : -1.0);
                }
            }
            offsets.push_back(static_cast<std::int32_t>(columns.size()));
        }
    }

    [[nodiscard]] csr_matrix on(const stream& s) const {
        const auto n = static_cast<std::int64_t>(offsets.size()) - 1;
        return {copied(offsets, s), copied(columns, s), copied(values, s), {n, n}};
    }

private:
    template <class T>
    [[nodiscard]] static array copied(const std::vector<T>& from, const stream& s) {
        array made = empty({static_cast<std::int64_t>(from.size())}, dtype_of<T>, s);
        copy_from_host(s, made, std::as_bytes(std::span(from)));
        return made;
    }
};

/// What is measured: which phases, of which kind of matrix.
struct sparse_problem {
    std::int32_t side;
    matrix_kind kind;
    bool factorizes;    ///< before each solution
    std::size_t times;  ///< in one turn
};

}  // namespace weir::bench
