// Sparse systems on two streams, without explicit ordering. See docs/sparse.md.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <span>
#include <vector>
#include <weir/weir.hpp>

namespace {

/// The second difference on n points of a line, times `factor`: how heat flows along a rod.
weir::csr_matrix rod(const weir::stream& on, std::int64_t n, double factor) {
    std::vector<std::int32_t> offsets{0};
    std::vector<std::int32_t> columns;
    std::vector<double> values;
    for (std::int32_t i = 0; i < n; ++i) {
        for (std::int32_t j = i - 1; j <= i + 1; ++j) {
            if (j >= 0 && j < n) {
                columns.push_back(j);
                values.push_back(factor * (i == j ? 2.0 : -1.0));
            }
        }
        offsets.push_back(static_cast<std::int32_t>(columns.size()));
    }
    const auto nonzeros = static_cast<std::int64_t>(columns.size());
    weir::csr_matrix made{weir::empty({n + 1}, weir::dtype::int32, on),
                          weir::empty({nonzeros}, weir::dtype::int32, on),
                          weir::empty({nonzeros}, weir::dtype::float64, on),
                          {n, n}};
    weir::copy_from_host(on, made.row_offsets, std::as_bytes(std::span(offsets)));
    weir::copy_from_host(on, made.column_indices, std::as_bytes(std::span(columns)));
    weir::copy_from_host(on, made.values, std::as_bytes(std::span(values)));
    return made;
}

double middle_of(const weir::array& x) { return x.read<double>()[static_cast<std::size_t>(x.size() / 2)]; }

}  // namespace

int main() {
    constexpr std::int64_t n = 999;
    const weir::stream first;
    const weir::stream second;
    const weir::csr_matrix a = rod(first, n, 1.0);
    const weir::array b = weir::ones({n}, weir::dtype::float64, second);

    const weir::array once = weir::solve(first, a, b);  // on stream `first`, ordered after what made a and b

    weir::direct_solver solver(a, b, {.kind = weir::matrix_kind::positive_definite});
    solver.plan(first);                             // reads where the elements of a are
    solver.factorize(first);                        // reads the values of a
    const weir::array x = solver.solve(second);     // on stream `second`, ordered after the factorization
    solver.reset_operands(rod(second, n, 2.0), b);  // other values in the same places
    solver.factorize(second);
    const weir::array y = solver.solve(first);
    solver.free();  // what is pending goes on

    // Computed on a simulated accelerator, to which the system goes and from which the solution comes back.
    const weir::array far = weir::solve(a, b, {.execution = weir::device_kind::sim});

    const double expected = (n + 1) * (n + 1) / 8.0;
    std::printf("in the middle %.1f, %.1f, %.1f and %.1f\n", middle_of(once), middle_of(x), middle_of(y),
                middle_of(far));
    const auto is_near = [&](const weir::array& of, double value) {
        return std::abs(middle_of(of) - value) < 1e-6 * value;
    };
    return is_near(once, expected) && is_near(x, expected) && is_near(y, expected / 2) && is_near(far, expected) ? 0
                                                                                                                 : 1;
}
