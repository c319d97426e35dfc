#include <cstdio>
#include <weir/weir.hpp>

int main() {
    const weir::stream load(weir::cpu(), {.name = "load"});
    const weir::stream compute(weir::cpu(), {.name = "compute"});
    weir::array x = weir::empty(1'000'000, weir::dtype::float32, load);
    weir::array y = weir::empty(1'000'000, weir::dtype::float32, compute);

    weir::fill(weir::on(load).label("fill"), x, 3);
    weir::parallel_for(
        weir::on(compute).label("square"), x.size(), [](auto i, auto to, auto from) { to[i] = from[i] * from[i]; },
        weir::out<float>(y), weir::in<float>(x));

    const auto result = y.read<float>();  // waits for the squares, and for nothing else
    std::printf("every y is %g\n", static_cast<double>(result[0]));
    return result[0] == 9.0F && result[999'999] == 9.0F ? 0 : 1;
}
