// Eigen's factorizations. Eigen's headers are long: only the files that instantiate these for one kind of elements include this
// header (calls/CMakeLists.txt).
#pragma once

// NOLINTBEGIN(readability-identifier-naming): Eigen's names
#define EIGEN_MPL2_ONLY  // excludes parts of Eigen under other licences
#define EIGEN_NO_DEBUG   // its assertions would end the process; their conditions are checked before
// NOLINTEND(readability-identifier-naming)

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <Eigen/Core>
#include <Eigen/OrderingMethods>
#include <Eigen/SparseCholesky>
#include <Eigen/SparseCore>
#include <Eigen/SparseLU>

#include "calls/sparse/factorization.hpp"
#include "calls/value_type.hpp"
#include "weir/dtype.hpp"
#include "weir/error.hpp"
#include "weir/sparse.hpp"

namespace weir::calls {

template <class T, class Index>
using eigen_matrix = Eigen::SparseMatrix<T, Eigen::ColMajor, Index>;

template <class T>
using real_of = typename Eigen::NumTraits<T>::Real;

/// What rounding may leave of a pivot that is 0, beside the numbers that it is computed from.
template <class T>
constexpr real_of<T> rounding = 10 * std::numeric_limits<real_of<T>>::epsilon();

/// Eigen's LU, which divides by any pivot that is not exactly 0. So the pivots are looked at afterwards.
template <class T, class Index>
class counting_lu final : public Eigen::SparseLU<eigen_matrix<T, Index>, Eigen::COLAMDOrdering<Index>> {
public:
    /// How many pivots are as small as rounding may leave them where they are 0. Pivot k is compared with the largest of the products
    /// |L[k, j] U[j, c]|, which elements of its row are computed from, each in units of the largest element of its column of the matrix: so
    /// the scale of a row or of a column does not matter.
    [[nodiscard]] std::int64_t small_pivots(const eigen_matrix<T, Index>& of) const {
        const auto n = static_cast<std::size_t>(of.cols());
        std::vector<real_of<T>> unit(n);
        for (Index column = 0; column < of.cols(); ++column) {
            real_of<T>& largest = unit[static_cast<std::size_t>(this->m_perm_c.indices()(column))];
            for (typename eigen_matrix<T, Index>::InnerIterator one(of, column); one; ++one) {
                largest = std::max(largest, std::abs(one.value()));
            }
        }
        std::vector<real_of<T>> pivots(n);
        std::vector<real_of<T>> of_u(n);  // the largest element of each row of U
        const auto add_to_u = [&](auto row, Index column, const T& value) {
            const auto at = static_cast<std::size_t>(column);
            const real_of<T> size = std::abs(value) / unit[at];
            of_u[static_cast<std::size_t>(row)] = std::max(of_u[static_cast<std::size_t>(row)], size);
            if (row == column) {
                pivots[at] = size;
            }
        };
        for (Index column = 0; column < of.cols(); ++column) {
            for (typename upper::InnerIterator one(this->m_Ustore, column); one; ++one) {
                add_to_u(one.index(), column, one.value());
            }
            for (typename lower::InnerIterator one(this->m_Lstore, column); one; ++one) {
                if (one.index() <= column) {
                    add_to_u(one.index(), column, one.value());
                }
            }
        }
        std::vector<real_of<T>> of_row = of_u;
        for (Index column = 0; column < of.cols(); ++column) {
            for (typename lower::InnerIterator one(this->m_Lstore, column); one; ++one) {
                if (one.index() > column) {
                    real_of<T>& largest = of_row[static_cast<std::size_t>(one.index())];
                    largest = std::max(largest, std::abs(one.value()) * of_u[static_cast<std::size_t>(column)]);
                }
            }
        }
        std::int64_t count = 0;
        for (std::size_t k = 0; k < n; ++k) {
            count += pivots[k] <= rounding<T> * of_row[k] ? 1 : 0;  // not where they are NaN
        }
        return count;
    }

private:
    using base = Eigen::SparseLU<eigen_matrix<T, Index>, Eigen::COLAMDOrdering<Index>>;
    using lower = typename base::SCMatrix;  // and the part of U that belongs to the same columns
    using upper = Eigen::MappedSparseMatrix<T, Eigen::ColMajor, Index>;
};

/// How one of Eigen's solvers is used. LU factorizes the whole matrix, with pivoting.
template <class T, class Index>
struct eigen_lu {
    using solver = counting_lu<T, Index>;

    /// @{
    /// Bytes of the factors: after the analysis, 0 if they are not known then; and when they are there.
    static std::size_t bytes_of_analysis(const solver& /*by*/) noexcept { return 0; }
    static std::size_t bytes_of_factors(const solver& by) {
        return (static_cast<std::size_t>(by.nnzL()) + static_cast<std::size_t>(by.nnzU())) * sizeof(T);
    }
    /// @}
    static std::int64_t small_pivots(const solver& by, const eigen_matrix<T, Index>& of) { return by.small_pivots(of); }

    static column_structure<Index> structure(const sparse_system& system, std::span<const Index> offsets,
                                             std::span<const Index> columns) {
        return whole_by_columns(system, offsets, columns);
    }
    [[noreturn]] static void refuse(const solver& of) {
        if (of.lastErrorMessage().rfind("UNABLE", 0) == 0) {  // Eigen has no memory for the factors
            throw out_of_memory("Eigen could not get memory for the factors of the matrix");
        }
        throw argument_error(
            "the matrix is singular: no solution is unique; see whether a row or a column is 0, or depends on others");
    }
};

/// Cholesky's factorization reads the lower triangle.
template <class T, class Index>
struct eigen_cholesky {
    using solver = Eigen::SimplicialLLT<eigen_matrix<T, Index>, Eigen::Lower, Eigen::AMDOrdering<Index>>;

    /// @{
    /// As those of LU. The analysis counts the elements.
    static std::size_t bytes_of_analysis(const solver& by) {
        const eigen_matrix<T, Index>& factor = by.matrixL().nestedExpression();
        return static_cast<std::size_t>(factor.outerIndexPtr()[factor.cols()]) * (sizeof(T) + sizeof(Index));
    }
    static std::size_t bytes_of_factors(const solver& by) { return bytes_of_analysis(by); }
    /// @}
    /// How many pivots are as small, beside the element of the diagonal that each is computed from, as rounding may leave them where they
    /// are 0.
    static std::int64_t small_pivots(const solver& by, const eigen_matrix<T, Index>& of) {
        const eigen_matrix<T, Index>& factor = by.matrixL().nestedExpression();
        std::int64_t count = 0;
        for (Index column = 0; column < of.cols(); ++column) {
            // The elements of the diagonal are the first of their columns.
            const real_of<T> given = std::abs(of.valuePtr()[of.outerIndexPtr()[column]]);
            const Index place = by.permutationP().indices()(column);
            const real_of<T> root = std::abs(factor.valuePtr()[factor.outerIndexPtr()[place]]);
            count += root * root <= rounding<T> * given ? 1 : 0;
        }
        return count;
    }

    static column_structure<Index> structure(const sparse_system& system, std::span<const Index> offsets,
                                             std::span<const Index> columns) {
        return lower_by_columns(system, offsets, columns);
    }
    [[noreturn]] static void refuse(const solver& /*of*/) {
        throw argument_error(
            "the matrix is not positive definite: name it symmetric, hermitian or general, which take any matrix that "
            "is not "
            "singular");
    }
};

template <class T, class Index, template <class, class> class Method>
class eigen_factorization final : public factorization {
public:
    explicit eigen_factorization(const sparse_system& system) : system_(system) {}

    [[nodiscard]] std::string library() const override { return std::string("Eigen ") + eigen_version(); }
    [[nodiscard]] const manner& how() const noexcept override {
        static constexpr manner on_the_host{};
        return on_the_host;
    }

    void analyze(const std::byte* offsets, const std::byte* columns, const std::byte* /*values*/) override {
        indices_.take(system_, offsets, columns);
        const auto n = static_cast<Index>(system_.n);
        column_structure<Index> made = Method<T, Index>::structure(
            system_, {reinterpret_cast<const Index*>(offsets), static_cast<std::size_t>(system_.n) + 1},
            {reinterpret_cast<const Index*>(columns), static_cast<std::size_t>(system_.nonzeros)});
        matrix_.resize(n, n);
        matrix_.resizeNonZeros(static_cast<Index>(made.rows.size()));
        std::copy(made.starts.begin(), made.starts.end(), matrix_.outerIndexPtr());
        std::copy(made.rows.begin(), made.rows.end(), matrix_.innerIndexPtr());
        sources_ = std::move(made.sources);
        std::fill_n(matrix_.valuePtr(), sources_.size(), T(1));
        is_analyzed_ = false;
    }

    void expect_places(const std::byte* offsets, const std::byte* columns) override {
        indices_.expect(system_, offsets, columns);
    }

    void factorize(const std::byte* values) override {
        const auto* const from = reinterpret_cast<const T*>(values);
        T* to = matrix_.valuePtr();
        bool are_finite = true;
        for (const Index source : sources_) {
            *to = source >= 0 ? from[source] : conjugate_of(from[~source]);
            are_finite = are_finite && is_finite(*to);
            ++to;
        }
        if (!are_finite) {
            refuse_value(from);
        }
        expect_no_empty_column();
        if (!is_analyzed_) {
            solver_.analyzePattern(matrix_);
            is_analyzed_ = true;
        }
        expect_room(system_, Method<T, Index>::bytes_of_analysis(solver_), "Eigen");
        solver_.factorize(matrix_);
        if (solver_.info() != Eigen::Success) {
            Method<T, Index>::refuse(solver_);
        }
        expect_room(system_, Method<T, Index>::bytes_of_factors(solver_), "Eigen");
        if (const std::int64_t small = Method<T, Index>::small_pivots(solver_, matrix_); small > 0) {
            refuse_matrix(system_.kind == matrix_kind::positive_definite ? system_.kind : matrix_kind::general, "Eigen",
                          small_pivots(small));
        }
    }

    void solve(const dense_columns& b, const dense_columns& x) override {
        const auto n = static_cast<Eigen::Index>(system_.n);
        constexpr auto item = static_cast<std::int64_t>(sizeof(T));
        // Columns in the layout that Eigen needs are read and written in place; others are copied.
        const bool is_read_there = are_packed(b);
        const bool is_written_there = are_packed(x) && !(is_read_there && overlap(b, x));
        numbers right_copy;
        numbers left_copy;
        const T* from = reinterpret_cast<const T*>(b.first);
        T* to = reinterpret_cast<T*>(x.first);
        std::int64_t from_ahead = b.column_stride / item;
        std::int64_t to_ahead = x.column_stride / item;
        if (!is_read_there) {
            right_copy.resize(n, static_cast<Eigen::Index>(b.count));
            for_each_number(b, right_copy, [](std::byte* number, T& copy) { std::memcpy(&copy, number, sizeof(T)); });
            from = right_copy.data();
            from_ahead = system_.n;
        }
        if (!is_written_there) {
            left_copy.resize(n, static_cast<Eigen::Index>(x.count));
            to = left_copy.data();
            to_ahead = system_.n;
        }
        if (b.count == 1) {
            // Eigen takes less time for what it knows to be one column.
            using column = Eigen::Matrix<T, Eigen::Dynamic, 1>;
            Eigen::Map<column>(to, n) = solver_.solve(Eigen::Map<const column>(from, n));
        } else {
            const Eigen::Map<const numbers, 0, Eigen::OuterStride<>> right(from, n, static_cast<Eigen::Index>(b.count),
                                                                           Eigen::OuterStride<>(from_ahead));
            Eigen::Map<numbers, 0, Eigen::OuterStride<>> left(to, n, static_cast<Eigen::Index>(x.count),
                                                              Eigen::OuterStride<>(to_ahead));
            left = solver_.solve(right);
        }
        if (!is_written_there) {
            for_each_number(x, left_copy, [](std::byte* number, T& copy) { std::memcpy(number, &copy, sizeof(T)); });
        }
    }

private:
    using numbers = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;

    [[nodiscard]] bool are_packed(const dense_columns& of) const noexcept {
        constexpr auto item = static_cast<std::int64_t>(sizeof(T));
        return of.row_stride == item &&
               (of.count == 1 || (of.column_stride >= item * system_.n && of.column_stride % item == 0));
    }
    /// Whether two packed sets of columns share memory.
    [[nodiscard]] bool overlap(const dense_columns& b, const dense_columns& x) const noexcept {
        const auto end_of = [&](const dense_columns& of) {
            return of.first + (of.count - 1) * of.column_stride + system_.n * of.row_stride;
        };
        return std::less<>()(b.first, end_of(x)) && std::less<>()(x.first, end_of(b));
    }
    /// Calls `each` with the address of a number and its copy.
    template <class Each>
    void for_each_number(const dense_columns& of, numbers& copies, Each each) const {
        for (Eigen::Index j = 0; j < copies.cols(); ++j) {
            for (Eigen::Index i = 0; i < copies.rows(); ++i) {
                each(of.first + i * of.row_stride + j * of.column_stride, copies(i, j));
            }
        }
    }

    static bool is_finite(const T& value) noexcept {
        return std::isfinite(std::real(value)) && std::isfinite(std::imag(value));
    }
    /// Throws argument_error, which names the first value that is not finite.
    [[noreturn]] void refuse_value(const T* values) const {
        std::int64_t first = std::numeric_limits<std::int64_t>::max();
        for (const Index source : sources_) {
            const Index place = source >= 0 ? source : static_cast<Index>(~source);
            if (place < first && !is_finite(values[place])) {
                first = place;
            }
        }
        throw argument_error("values[" + std::to_string(first) +
                             "] of the matrix is not finite: such a matrix has no factors");
    }

    /// Eigen's orderings require an element in each column.
    void expect_no_empty_column() const {
        for (std::int64_t column = 0; column < system_.n; ++column) {
            if (matrix_.outerIndexPtr()[column] == matrix_.outerIndexPtr()[column + 1]) {
                throw argument_error("the matrix is singular: column " + std::to_string(column) + " has no elements");
            }
        }
    }

    sparse_system system_;
    analyzed_indices indices_;
    eigen_matrix<T, Index> matrix_;
    std::vector<Index> sources_;
    typename Method<T, Index>::solver solver_;
    bool is_analyzed_ = false;
};

template <class T, class Index>
std::shared_ptr<factorization> make_eigen(const sparse_system& system) {
    if (system.kind == matrix_kind::positive_definite) {
        return std::make_shared<eigen_factorization<T, Index, eigen_cholesky>>(system);
    }
    return std::make_shared<eigen_factorization<T, Index, eigen_lu>>(system);
}

template <class T>
std::shared_ptr<factorization> make_eigen(const sparse_system& system) {
    return system.indices == dtype::int32 ? make_eigen<T, std::int32_t>(system) : make_eigen<T, std::int64_t>(system);
}

}  // namespace weir::calls
