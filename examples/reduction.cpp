// Reductions of a program along axes: one text for the CPU and for CUDA devices. Prints what it computes.
#include <cstdint>
#include <cstdio>
#include <vector>
#include <weir/weir.hpp>

namespace {

bool run(weir::device where) {
    using namespace weir;
    const reduction_kernel norm(
        "T x", "T y", {.map = "x * x", .reduce = "a + b", .post = "y = sqrt(a)", .identity = "0", .name = "norm"});

    const stream s(where);
    const array x = full({3, 4}, 2.0, dtype::float32, s);
    const array rows = norm(s, {x}, along(1));  // three numbers
    const array all = norm(s, {x});             // one

    // Several inputs are broadcast. The sum is taken in float64, and rounded once.
    const reduction_kernel dot("float32 x, float32 w", "float32 y",
                               {.map = "double(x) * w", .identity = "0", .type = "float64", .name = "dot"});
    array into = empty({4}, dtype::float32, s);
    dot.launch(s, {x, 0.5F}, {&into}, along(0));

    // An extreme has no value of no elements, and needs no identity.
    const reduction_kernel largest("T x", "T y", {.map = "fabs(x)", .reduce = "max(a, b)", .name = "largest"});
    const array most = largest(s, {into});

    // The place of the largest element in each row: the values that are reduced are pairs. Of equal elements the first one wins.
    const reduction_kernel argmax("T x", "int64 where",
                                  {.map = "{x, i}",
                                   .reduce = "a.value > b.value || (a.value == b.value && a.index < b.index) ? a : b",
                                   .post = "where = a.index",
                                   .type = "T value, int64 index",
                                   .name = "argmax"});
    const array places = argmax(s, {reshape(s, arange(0, 6, 1, dtype::int32, s), {2, 3})}, along(1));

    const auto lengths = to(s, rows, cpu()).read<float>();
    const auto length = to(s, all, cpu()).read<float>();
    const auto found = to(s, most, cpu()).read<float>();
    const auto place = to(s, places, cpu()).read<std::int64_t>();
    std::printf("%s: %g %g %g %d\n", where.name().c_str(), static_cast<double>(lengths[0]),
                static_cast<double>(length[0]), static_cast<double>(found[0]), static_cast<int>(place[1]));
    return lengths[2] == 4 && found[0] == 3 && place[1] == 2;
}

}  // namespace

int main() {
    bool right = run(weir::cpu()) && run(weir::sim(0));
    try {
        right = run(weir::cuda()) && right;
    } catch (const weir::device_error& none) {
        std::printf("skipped on CUDA: %s\n", none.what());
    }
    return right ? 0 : 1;
}
