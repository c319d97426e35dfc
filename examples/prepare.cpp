// Loads code before its first use: a driver that loads a kernel may wait for all work of the device. Prints what it computes.
#include <cstdio>
#include <vector>
#include <weir/weir.hpp>

namespace {

weir::device first_device() {
    try {
        return weir::cuda();
    } catch (const weir::device_error&) {
        return weir::cpu();  // nothing to load; the calls are the same
    }
}

}  // namespace

int main() {
    using namespace weir;
    const device where = first_device();
    const stream s(where);
    const elementwise_kernel axpy("float x, float a", "float y", "y = a * x + 1", "axpy");
    const array x = full({4, 6}, 3, dtype::float32, s);

    where.prepare({dtype::float32});  // operators, reductions, copies and conversions of arrays of float32
    axpy.prepare(s, {x, 2.0F});       // the kernel for these operands: an array, and any number

    // From here on nothing compiles or loads: a stream that waits for the host cannot hold this up.
    const array y = axpy(s, x, 2.0F);
    const array sums = reduce(s, reduction::sum, compute(s, binary_operation::multiply, y, x), along(0));

    const auto seen = to(s, sums, cpu()).read<float>();
    std::printf("%s: %g\n", where.name().c_str(), static_cast<double>(seen[0]));
    return seen[5] == 84 ? 0 : 1;
}
