// Element-wise kernels: one text for the CPU and for CUDA devices. Prints what it computes.
#include <cstdint>
#include <cstdio>
#include <vector>
#include <weir/weir.hpp>

namespace {

bool run(weir::device where) {
    using namespace weir;
    const elementwise_kernel axpy("float x, float a", "float y", "y = a * x + 1", "axpy");

    const stream s(where);
    const array x = full(1000, 3.0, dtype::float32, s);
    array y = axpy(s, x, 2.0F);
    axpy.launch(s, {y, 0.5F}, {&y});  // into an array that there is

    // T is any type; a type in the body, too. What is "inout" is read as well.
    const elementwise_kernel blend("T a, T b, float64 part", "T mixed, inout T total",
                                   "const T one = static_cast<T>(part * a + (1 - part) * b);\n"
                                   "mixed = one;\n"
                                   "total += one;");
    array total = zeros(1000, dtype::float32, s);
    array mixed = empty(1000, dtype::float32, s);
    blend.launch(s, {x, y, 0.25}, {&mixed, &total});

    // i is the number of the element, n how many there are.
    const elementwise_kernel ramp("", "float64 y", "y = double(i) / (n - 1)");
    array line = empty(11, dtype::float64, s);
    ramp.launch(s, {}, {&line});

    // x is raw: the body sees all of it.
    const elementwise_kernel blur("raw float x", "float y",
                                  "y = (x[i > 0 ? i - 1 : 0] + x[i] + x[i + 1 < n ? i + 1 : n - 1]) / 3");
    array blurred = empty(x.shape(), dtype::float32, s);
    blur.launch(s, {x}, {&blurred});

    try {
        const elementwise_kernel wrong("float x", "float y", "y = x;\ny += 1");
        static_cast<void>(wrong(s, x));
    } catch (const argument_error& mistake) {
        std::puts(
            mistake.what());  // the body ... reads the output y in line 2, "y += 1", and ...: declare it "inout ...
    }

    const auto seen = to(s, y, cpu()).read<float>();
    const auto sums = to(s, total, cpu()).read<float>();
    const auto ends = to(s, line, cpu()).read<double>();
    std::printf("%s: %g %g %g\n", where.name().c_str(), static_cast<double>(seen[999]), static_cast<double>(sums[0]),
                ends[5]);
    return seen[999] == 4.5F && sums[0] == 0.25F * 3 + 0.75F * 4.5F && ends[5] == 0.5;
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
