#include "calls/matmul/host_matmul.hpp"

#include <algorithm>
#include <complex>
#include <cstddef>
#include <limits>
#include <type_traits>
#include <utility>

#include "calls/matmul/epilog.hpp"
#include "calls/shared_library.hpp"
#include "weir/dtype.hpp"

namespace weir::calls {

namespace {

/// A factor as a function of CBLAS takes it: real ones by value, complex ones by address.
template <class T>
class blas_factor {
public:
    explicit blas_factor(std::complex<double> value) {
        if constexpr (std::is_floating_point_v<T>) {
            value_ = static_cast<T>(value.real());
        } else {
            value_ = T(value);
        }
    }
    [[nodiscard]] auto passed() const noexcept {
        if constexpr (std::is_floating_point_v<T>) {
            return value_;
        } else {
            return static_cast<const void*>(&value_);
        }
    }

private:
    T value_;
};

/// The matrices for one index of the batch.
struct blas_addresses {
    const std::byte* left = nullptr;
    const std::byte* right = nullptr;
    std::byte* target = nullptr;
};

blas_integer narrowed(std::int64_t number) noexcept { return static_cast<blas_integer>(number); }

int operation_of(bool is_transposed) noexcept { return is_transposed ? cblas_transpose : cblas_no_transpose; }

template <class T, class Gemm, class Gemv>
class blas_multiplication {
public:
    blas_multiplication(const blas_product& what, Gemm* gemm, Gemv* gemv)
        : what_(what), gemm_(gemm), gemv_(gemv), alpha_(what.alpha), beta_(what.beta), one_(1.0) {}

    void operator()(const blas_addresses& at) const {
        const blas_matrix& left = what_.left;
        const blas_matrix& right = what_.right;
        if (what_.columns == 1) {
            by_vector(at.left, left.leading, left.is_transposed, what_.rows, at.right,
                      right.is_transposed ? right.leading : 1, at.target, 1);
        } else if (what_.rows == 1) {
            by_vector(at.right, right.leading, !right.is_transposed, what_.columns, at.left,
                      left.is_transposed ? 1 : left.leading, at.target, what_.target.leading);
        } else {
            gemm_(cblas_column_major, operation_of(left.is_transposed), operation_of(right.is_transposed),
                  narrowed(what_.rows), narrowed(what_.columns), narrowed(what_.depth), alpha_.passed(), typed(at.left),
                  narrowed(left.leading), typed(at.right), narrowed(right.leading), beta_.passed(), typed(at.target),
                  narrowed(what_.target.leading));
        }
    }

private:
    using stored = std::conditional_t<std::is_floating_point_v<T>, T, void>;
    static const stored* typed(const std::byte* memory) noexcept {
        return static_cast<const stored*>(static_cast<const void*>(memory));
    }
    static stored* typed(std::byte* memory) noexcept { return static_cast<stored*>(static_cast<void*>(memory)); }

    /// A matrix that makes `count` elements y of `depth` elements x; it lies as (depth, count) if it is transposed. Libraries
    /// are several times as fast at this as at a product of matrices one of which is narrow.
    void by_vector(const std::byte* matrix, std::int64_t leading, bool is_transposed, std::int64_t count,
                   const std::byte* x, std::int64_t x_step, std::byte* y, std::int64_t y_step) const {
        const bool is_added = what_.beta != 0.0;
        if (!is_added) {  // some versions multiply what is there by 0, which leaves NaN
            T* const to = reinterpret_cast<T*>(y);
            for (std::int64_t i = 0; i < count; ++i) {
                to[i * y_step] = T(0);
            }
        }
        const std::int64_t rows = is_transposed ? what_.depth : count;
        const std::int64_t columns = is_transposed ? count : what_.depth;
        gemv_(cblas_column_major, operation_of(is_transposed), narrowed(rows), narrowed(columns), alpha_.passed(),
              typed(matrix), narrowed(leading), typed(x), narrowed(x_step), is_added ? beta_.passed() : one_.passed(),
              typed(y), narrowed(y_step));
    }

    const blas_product& what_;
    Gemm* gemm_;
    Gemv* gemv_;
    blas_factor<T> alpha_;
    blas_factor<T> beta_;
    blas_factor<T> one_;
};

/// Calls `multiply` for each index of the batch, from the addresses of its first matrices on.
template <class Multiply>
void for_each_of_batch(const blas_product& what, blas_addresses at, const Multiply& multiply) {
    per_dimension index(what.batch);
    std::fill(index.begin(), index.end(), 0);
    const auto advance = [&](std::size_t axis, std::int64_t by) {
        at.left += by * what.left.batch_strides[axis];
        at.right += by * what.right.batch_strides[axis];
        at.target += by * what.target.batch_strides[axis];
    };
    for (;;) {
        multiply(at);
        std::size_t axis = index.size();
        for (; axis > 0; --axis) {
            if (++index[axis - 1] < what.batch[axis - 1]) {
                advance(axis - 1, 1);
                break;
            }
            advance(axis - 1, 1 - what.batch[axis - 1]);
            index[axis - 1] = 0;
        }
        if (axis == 0) {
            return;
        }
    }
}

template <class T, class Gemm, class Gemv>
void multiply_each(const blas_product& what, const blas_addresses& first, Gemm* gemm, Gemv* gemv) {
    for_each_of_batch(what, first, blas_multiplication<T, Gemm, Gemv>(what, gemm, gemv));
}

void multiply_from(const blas_functions& by, const blas_product& what, const blas_addresses& first) {
    const library_visit inside;
    if (what.type == dtype::float32) {
        multiply_each<float>(what, first, by.sgemm, by.sgemv);
    } else if (what.type == dtype::float64) {
        multiply_each<double>(what, first, by.dgemm, by.dgemv);
    } else if (what.type == dtype::complex64) {
        multiply_each<std::complex<float>>(what, first, by.cgemm, by.cgemv);
    } else {
        multiply_each<std::complex<double>>(what, first, by.zgemm, by.zgemv);
    }
}

/// The work of one product on the host: a host task's.
struct host_matmul_work {
    matmul_steps steps;
    const blas_functions* by;

    /// The addresses of all steps but the product itself stay.
    [[nodiscard]] bool can_move() const noexcept {
        return steps.copies.empty() && steps.product.depth > 0 && steps.epilog == matmul_epilog::none && !steps.scatter;
    }
    void operator()(const call_shift& moved) const {
        for (const converting_copy& each : steps.copies) {
            each();
        }
        const blas_product& product = steps.product;
        if (product.depth == 0) {
            scale_elements(steps.elements, product.type, product.beta);
        } else {
            const bool is_turned = product.is_product_turned;
            const std::ptrdiff_t a = moved.inputs[matmul_geometry::a_input];
            const std::ptrdiff_t b = moved.inputs[matmul_geometry::b_input];
            multiply_from(*by, product,
                          {product.left.first + (is_turned ? b : a), product.right.first + (is_turned ? a : b),
                           product.target.first + moved.result});
        }
        apply_epilog(steps.elements, steps.product.type, steps.epilog);
        if (steps.scatter) {
            (*steps.scatter)();
        }
    }
};

class host_matmul final : public call_plan {
public:
    explicit host_matmul(matmul_route route) : route_(std::move(route)), by_(&blas()) {}

    [[nodiscard]] std::size_t workspace_bytes() const noexcept override { return route_.workspace_bytes(); }
    [[nodiscard]] call_work work(std::byte* workspace) const override {
        return call_work::host_task(host_matmul_work{route_.steps(workspace), by_});
    }

private:
    matmul_route route_;
    const blas_functions* by_;
};

}  // namespace

void multiply_by_blas(const blas_functions& by, const blas_product& what) {
    multiply_from(by, what, {what.left.first, what.right.first, what.target.first});
}

std::unique_ptr<const call_plan> host_matmul_provider::plan(const matmul_call& call, const call_layout& layout) const {
    const matmul_demands demands{true, std::numeric_limits<blas_integer>::max()};
    return std::make_unique<const host_matmul>(matmul_route(call.what(), layout, demands));
}

}  // namespace weir::calls
