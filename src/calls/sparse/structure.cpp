#include "calls/sparse/structure.hpp"

#include <cstddef>
#include <functional>
#include <string_view>
#include <utility>

namespace weir::calls {

namespace {

/// Adds elements to columns: first counts them, then places them. Both passes visit the elements in the same order.
template <class Index>
class column_filler {
public:
    explicit column_filler(std::int64_t n) { made_.starts.assign(static_cast<std::size_t>(n) + 1, 0); }

    /// Calls `visit(add)` twice; `visit` calls `add(row, column, source)` for each element, by increasing rows within each column.
    template <class Visit>
    column_structure<Index> filled_by(Visit visit) && {
        visit([this](Index, Index column, Index) { ++made_.starts[static_cast<std::size_t>(column) + 1]; });
        std::int64_t before = 0;
        for (Index& start : made_.starts) {
            before += start;
            start = counted<Index>(before);
        }
        made_.rows.resize(static_cast<std::size_t>(made_.starts.back()));
        made_.sources.resize(made_.rows.size());
        std::vector<Index> next(made_.starts.begin(), made_.starts.end() - 1);
        visit([&](Index row, Index column, Index source) {
            const auto at = static_cast<std::size_t>(next[static_cast<std::size_t>(column)]++);
            made_.rows[at] = row;
            made_.sources[at] = source;
        });
        return std::move(made_);
    }

private:
    column_structure<Index> made_;
};

/// Calls `each(row, column, position)` for the stored elements, row by row.
template <class Index, class Each>
void for_each_element(std::span<const Index> offsets, std::span<const Index> columns, Each each) {
    for (std::size_t row = 0; row + 1 < offsets.size(); ++row) {
        for (Index k = offsets[row]; k < offsets[row + 1]; ++k) {
            each(static_cast<Index>(row), columns[static_cast<std::size_t>(k)], k);
        }
    }
}

std::size_t hash_of(const std::byte* first, std::size_t bytes) noexcept {
    return std::hash<std::string_view>()({reinterpret_cast<const char*>(first), bytes});
}

std::array<std::size_t, 2> hashes_of(const sparse_system& system, const std::byte* offsets, const std::byte* columns) {
    const std::size_t each = size_of(system.indices);
    return {hash_of(offsets, (static_cast<std::size_t>(system.n) + 1) * each),
            hash_of(columns, static_cast<std::size_t>(system.nonzeros) * each)};
}

template <class Index>
std::string mistake_of(const sparse_system& system, const std::byte* offsets, const std::byte* columns) {
    return mistake_in(std::span(reinterpret_cast<const Index*>(offsets), static_cast<std::size_t>(system.n) + 1),
                      std::span(reinterpret_cast<const Index*>(columns), static_cast<std::size_t>(system.nonzeros)),
                      system.n);
}

}  // namespace

template <class Index>
std::string mistake_in(std::span<const Index> offsets, std::span<const Index> columns, std::int64_t n) {
    const auto said = [](auto number) { return std::to_string(number); };
    if (offsets.front() != 0) {
        return "row_offsets[0] is " + said(offsets.front()) + ", and must be 0";
    }
    for (std::size_t row = 0; row + 1 < offsets.size(); ++row) {
        if (offsets[row + 1] < offsets[row]) {
            return "row_offsets[" + said(row + 1) + "] is " + said(offsets[row + 1]) +
                   ", less than the offset before it, " + said(offsets[row]) + ": offsets must not decrease";
        }
    }
    if (static_cast<std::size_t>(offsets.back()) != columns.size()) {
        return "the last of the row offsets is " + said(offsets.back()) + ", and there are " + said(columns.size()) +
               " column indices: both must be the number of elements";
    }
    for (std::size_t row = 0; row + 1 < offsets.size(); ++row) {
        for (Index k = offsets[row]; k < offsets[row + 1]; ++k) {
            const Index column = columns[static_cast<std::size_t>(k)];
            if (column < 0 || static_cast<std::int64_t>(column) >= n) {
                return "column_indices[" + said(k) + "], in row " + said(row) + ", is " + said(column) +
                       ": it must be at least 0 and less than " + said(n);
            }
            if (k > offsets[row] && column <= columns[static_cast<std::size_t>(k) - 1]) {
                return "column_indices[" + said(k) + "], in row " + said(row) + ", is " + said(column) + ", after " +
                       said(columns[static_cast<std::size_t>(k) - 1]) +
                       ": column indices must increase within a row; sort them and add up duplicates (SciPy: "
                       "a.sum_duplicates())";
            }
        }
    }
    return {};
}

void analyzed_indices::take(const sparse_system& system, const std::byte* offsets, const std::byte* columns) {
    hashes_.reset();
    const std::string mistake = system.indices == dtype::int32 ? mistake_of<std::int32_t>(system, offsets, columns)
                                                               : mistake_of<std::int64_t>(system, offsets, columns);
    if (!mistake.empty()) {
        throw structure_error(mistake);
    }
    hashes_ = hashes_of(system, offsets, columns);
}

void analyzed_indices::expect(const sparse_system& system, const std::byte* offsets, const std::byte* columns) const {
    if (hashes_ && *hashes_ != hashes_of(system, offsets, columns)) {
        throw structure_error(
            "the elements of the matrix are at other places than those that were analyzed: call plan before factorize");
    }
}

template <class Index>
column_structure<Index> whole_by_columns(const sparse_system& system, std::span<const Index> offsets,
                                         std::span<const Index> columns) {
    const matrix_triangle given = system.triangle;
    const bool is_conjugated = system.kind == matrix_kind::hermitian && is_complex(system.values);
    return column_filler<Index>(system.n).filled_by([&](auto add) {
        for_each_element(offsets, columns, [&](Index row, Index column, Index source) {
            if (given == matrix_triangle::full || row == column) {
                add(row, column, source);
                return;
            }
            if ((given == matrix_triangle::lower) != (column < row)) {
                return;
            }
            add(row, column, source);
            add(column, row, is_conjugated ? static_cast<Index>(~source) : source);
        });
    });
}

template <class Index>
column_structure<Index> lower_by_columns(const sparse_system& system, std::span<const Index> offsets,
                                         std::span<const Index> columns) {
    const bool is_upper = system.triangle == matrix_triangle::upper;
    const bool is_conjugated = system.kind != matrix_kind::symmetric && is_complex(system.values);
    return column_filler<Index>(system.n).filled_by([&](auto add) {
        for_each_element(offsets, columns, [&](Index row, Index column, Index source) {
            if (is_upper && column >= row) {
                add(column, row, is_conjugated ? static_cast<Index>(~source) : source);
            } else if (!is_upper && column <= row) {
                add(row, column, source);
            }
        });
    });
}

template std::string mistake_in(std::span<const std::int32_t>, std::span<const std::int32_t>, std::int64_t);
template std::string mistake_in(std::span<const std::int64_t>, std::span<const std::int64_t>, std::int64_t);
template column_structure<std::int32_t> whole_by_columns(const sparse_system&, std::span<const std::int32_t>,
                                                         std::span<const std::int32_t>);
template column_structure<std::int64_t> whole_by_columns(const sparse_system&, std::span<const std::int64_t>,
                                                         std::span<const std::int64_t>);
template column_structure<std::int32_t> lower_by_columns(const sparse_system&, std::span<const std::int32_t>,
                                                         std::span<const std::int32_t>);
template column_structure<std::int64_t> lower_by_columns(const sparse_system&, std::span<const std::int64_t>,
                                                         std::span<const std::int64_t>);

}  // namespace weir::calls
