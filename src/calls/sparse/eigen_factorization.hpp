// Eigen's factorizations. Eigen's headers are long: only the files that instantiate these for one kind of elements include this
// header (calls/CMakeLists.txt).
#pragma once

// NOLINTBEGIN(readability-identifier-naming): Eigen's names
#define EIGEN_MPL2_ONLY  // excludes parts of Eigen under other licences
#define EIGEN_NO_DEBUG   // its assertions would end the process; their conditions are checked before
// NOLINTEND(readability-identifier-naming)

#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
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

/// How one of Eigen's solvers is used. LU factorizes the whole matrix, with pivoting.
template <class T, class Index>
struct eigen_lu {
    using solver = Eigen::SparseLU<eigen_matrix<T, Index>, Eigen::COLAMDOrdering<Index>>;

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
        if (const std::string mistake = mistake_in(system_, offsets, columns); !mistake.empty()) {
            throw argument_error(mistake);
        }
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

    void factorize(const std::byte* values) override {
        const auto* const from = reinterpret_cast<const T*>(values);
        T* to = matrix_.valuePtr();
        for (const Index source : sources_) {
            *to++ = source >= 0 ? from[source] : conjugate_of(from[~source]);
        }
        expect_no_empty_column();
        if (!is_analyzed_) {
            solver_.analyzePattern(matrix_);
            is_analyzed_ = true;
        }
        solver_.factorize(matrix_);
        if (solver_.info() != Eigen::Success) {
            Method<T, Index>::refuse(solver_);
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

    /// Eigen's orderings require an element in each column.
    void expect_no_empty_column() const {
        for (std::int64_t column = 0; column < system_.n; ++column) {
            if (matrix_.outerIndexPtr()[column] == matrix_.outerIndexPtr()[column + 1]) {
                throw argument_error("the matrix is singular: column " + std::to_string(column) + " has no elements");
            }
        }
    }

    sparse_system system_;
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
