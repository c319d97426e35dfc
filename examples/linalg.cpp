// Products of matrices on two streams, without a word about ordering. See docs/linalg.md.
#include <cmath>
#include <cstdio>
#include <weir/weir.hpp>

int main() {
    const weir::stream first;
    const weir::stream second;
    const weir::array x = weir::ones({32, 64}, weir::dtype::float64, first);  // 32 samples of 64 numbers
    weir::array w1 = weir::full({64, 16}, 0.25, weir::dtype::float64, second);
    const weir::array b1 = weir::full({16}, -15.0, weir::dtype::float64, second);
    const weir::array w2 = weir::full({16, 4}, 0.5, weir::dtype::float64, second);

    const weir::array hidden = weir::matmul(first, x, w1, {.epilog = weir::matmul_epilog::relu_bias, .bias = b1});
    const weir::array y = weir::matmul(second, hidden, w2);  // ordered after `hidden`, which is pending on `first`

    weir::matmul_plan layer(x, w1, {.epilog = weir::matmul_epilog::relu_bias, .bias = b1});
    layer.plan(first);
    weir::array out = weir::empty({32, 16}, weir::dtype::float64, first);
    layer.execute(first, out);    // reads x, w1 and b1 as they are at this point of the stream
    weir::fill(second, w1, 0.5);  // waits for that
    layer.execute(second, out);   // another stream: ordered after the execution before
    layer.reset_operands({.a = weir::ones({32, 64}, weir::dtype::float64, second)});
    const weir::array again = layer.execute(first);
    layer.free();  // what is pending goes on

    // Computed on a simulated accelerator, to which the matrices go and from which the product comes back.
    const weir::array far = weir::matmul(x, w1, {.execution = weir::device_kind::sim});

    const double small = y.read<double>()[0];    // (64 * 0.25 - 15) * 16 * 0.5
    const double large = out.read<double>()[0];  // 64 * 0.5 - 15
    const double same = again.read<double>()[0];
    std::printf("%.1f, then %.1f and %.1f; elsewhere %.1f\n", small, large, same, far.read<double>()[0]);
    const bool good = std::abs(small - 8.0) + std::abs(large - 17.0) + std::abs(same - 17.0) < 1e-9;
    return good && std::abs(far.read<double>()[0] - 32.0) < 1e-9 ? 0 : 1;
}
