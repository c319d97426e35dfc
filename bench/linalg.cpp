// What a product of matrices costs through Weir, beside the same library called directly.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "calls/matmul/blas_library.hpp"
#include "contest.hpp"
#include "weir/weir.hpp"

namespace weir::bench {

namespace {

/// What is measured: matrices of side x side, `batch` of them, or one by a vector.
struct product_size {
    int side;
    int batch;
    bool by_vector;
    std::size_t times;  ///< in one turn
};

shape left_shape(const product_size& of) {
    return of.batch > 1 ? shape{of.batch, of.side, of.side} : shape{of.side, of.side};
}
shape right_shape(const product_size& of) { return of.by_vector ? shape{of.side} : left_shape(of); }

contestant through_matmul_plan(const product_size& what) {
    struct rig {
        stream on;
        array a;
        array b;
        array x;
        matmul_plan by;

        explicit rig(const product_size& of)
            : a(ones(left_shape(of), dtype::float64, on)),
              b(ones(right_shape(of), dtype::float64, on)),
              x(zeros(right_shape(of), dtype::float64, on)),
              by(a, b) {
            by.plan(on);
            on.synchronize();
        }
    };
    auto data = std::make_shared<rig>(what);
    return {"Weir, matmul_plan", what.times, [data, what] {
                for (std::size_t i = 0; i < what.times; ++i) {
                    data->by.execute(data->on, data->x);
                }
                data->on.synchronize();
            }};
}

contestant through_matmul(const product_size& what) {
    struct rig {
        stream on;
        array a;
        array b;

        explicit rig(const product_size& of)
            : a(ones(left_shape(of), dtype::float64, on)), b(ones(right_shape(of), dtype::float64, on)) {
            on.synchronize();
        }
    };
    auto data = std::make_shared<rig>(what);
    return {"Weir, matmul", what.times, [data, what] {
                for (std::size_t i = 0; i < what.times; ++i) {
                    static_cast<void>(matmul(data->on, data->a, data->b));
                }
                data->on.synchronize();
            }};
}

contestant through_cblas(const product_size& what) {
    struct rig {
        std::vector<double> a;
        std::vector<double> b;
        std::vector<double> x;
    };
    const auto side = static_cast<std::size_t>(what.side);
    const std::size_t all = side * side * static_cast<std::size_t>(what.batch);
    auto data =
        std::make_shared<rig>(rig{std::vector<double>(all, 1.0), std::vector<double>(what.by_vector ? side : all, 1.0),
                                  std::vector<double>(what.by_vector ? side : all)});
    const calls::blas_functions& blas = calls::blas();
    constexpr int row_major = 101;
    return {"OpenBLAS", what.times, [data, what, &blas] {
                const int n = what.side;
                const auto step = static_cast<std::size_t>(n) * static_cast<std::size_t>(n);
                for (std::size_t i = 0; i < what.times; ++i) {
                    if (what.by_vector) {
                        blas.dgemv(row_major, calls::cblas_no_transpose, n, n, 1.0, data->a.data(), n, data->b.data(),
                                   1, 0.0, data->x.data(), 1);
                        continue;
                    }
                    for (std::size_t at = 0; at < data->a.size(); at += step) {
                        blas.dgemm(row_major, calls::cblas_no_transpose, calls::cblas_no_transpose, n, n, n, 1.0,
                                   &data->a[at], n, &data->b[at], n, 0.0, &data->x[at], n);
                    }
                }
            }};
}

contest beside_blas(const char* name, const char* text, const product_size& what) {
    return {name,
            text,
            comparison::with_peers,
            {[what] { return through_matmul_plan(what); }, [what] { return through_matmul(what); },
             [what] { return through_cblas(what); }}};
}

const contest small_product = beside_blas("linalg/small", "a product of 16 x 16 matrices", {16, 1, false, 1000});
const contest medium_product = beside_blas("linalg/medium", "a product of 256 x 256 matrices", {256, 1, false, 10});
const contest large_product = beside_blas("linalg/large", "a product of 1024 x 1024 matrices", {1024, 1, false, 1});
const contest batched_product = beside_blas("linalg/batch", "64 products of 32 x 32 matrices", {32, 64, false, 20});
const contest vector_product = beside_blas("linalg/vector", "a 1024 x 1024 matrix by a vector", {1024, 1, true, 20});

}  // namespace

}  // namespace weir::bench
