// What a sparse system costs through Weir, beside Eigen called directly with a solver made beforehand.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>

#define EIGEN_MPL2_ONLY
#include <Eigen/SparseCholesky>
#include <Eigen/SparseCore>
#include <Eigen/SparseLU>

#include "contest.hpp"
#include "sparse_grid.hpp"
#include "weir/weir.hpp"

namespace weir::bench {

namespace {

using eigen_sparse = Eigen::SparseMatrix<double, Eigen::ColMajor, std::int32_t>;

contestant through_direct_solver(const sparse_problem& what) {
    struct rig {
        stream on;
        array b;
        array x;
        direct_solver by;

        explicit rig(const sparse_problem& of)
            : b(ones({of.side * of.side}, dtype::float64, on)),
              x(zeros(b.shape(), dtype::float64, on)),
              by(grid(of.side).on(on), b, {.kind = of.kind}) {
            by.plan(on);
            by.factorize(on);
            on.synchronize();
        }
    };
    auto data = std::make_shared<rig>(what);
    return {"Weir, direct_solver", what.times, [data, what] {
                for (std::size_t i = 0; i < what.times; ++i) {
                    if (what.factorizes) {
                        data->by.factorize(data->on);
                    }
                    data->by.solve(data->on, data->x);
                }
                data->on.synchronize();
            }};
}

template <class Solver>
contestant through_eigen(const sparse_problem& what) {
    struct rig {
        eigen_sparse a;
        Eigen::VectorXd b;
        Eigen::VectorXd x;
        Solver by;
    };
    auto data = std::make_shared<rig>();
    const grid elements(what.side);
    const Eigen::Index n = what.side * what.side;
    data->a = Eigen::Map<const eigen_sparse>(n, n, static_cast<Eigen::Index>(elements.columns.size()),
                                             elements.offsets.data(), elements.columns.data(), elements.values.data());
    data->b = Eigen::VectorXd::Ones(n);
    data->by.analyzePattern(data->a);
    data->by.factorize(data->a);
    if (data->by.info() != Eigen::Success) {
        throw std::runtime_error("Eigen could not factorize the matrix");
    }
    return {"Eigen", what.times, [data, what] {
                for (std::size_t i = 0; i < what.times; ++i) {
                    if (what.factorizes) {
                        data->by.factorize(data->a);
                    }
                    data->x = data->by.solve(data->b);
                }
            }};
}

contest beside_eigen(const char* name, const char* text, const sparse_problem& what) {
    return {
        name,
        text,
        comparison::with_peers,
        {[what] { return through_direct_solver(what); },
         [what] {
             return what.kind == matrix_kind::positive_definite
                        ? through_eigen<
                              Eigen::SimplicialLLT<eigen_sparse, Eigen::Lower, Eigen::AMDOrdering<std::int32_t>>>(what)
                        : through_eigen<Eigen::SparseLU<eigen_sparse, Eigen::COLAMDOrdering<std::int32_t>>>(what);
         }}};
}

const contest small_solution =
    beside_eigen("sparse/small", "a solution of 64 unknowns, by LU", {8, matrix_kind::general, false, 1000});
const contest solution =
    beside_eigen("sparse/solve", "a solution of 10,000 unknowns, by LU", {100, matrix_kind::general, false, 10});
const contest refactorized = beside_eigen("sparse/factorize", "factorization and solution of 10,000 unknowns, by LU",
                                          {100, matrix_kind::general, true, 1});
const contest definite = beside_eigen("sparse/definite", "factorization and solution of 10,000 unknowns, by Cholesky",
                                      {100, matrix_kind::positive_definite, true, 2});

}  // namespace

}  // namespace weir::bench
