// Two streams and the host on the same memory: docs/memory-model.md. Exits with 0 if each saw what it should.
#include <weir/weir.hpp>

int main() {
    const weir::stream a;
    const weir::stream b;
    const weir::array x = weir::zeros(1000, weir::dtype::float64, a);
    weir::array left = x.slice(0, 500);  // the same memory, in two halves
    weir::array right = x.slice(500, 1000);

    weir::fill(a, left, 1);
    weir::fill(b, right, 2);  // comes after the zeros, and shares no byte with `left`: the two run side by side
    {
        const auto mine = left.write<double>();  // the host waits for what touches `left`, and for nothing else
        mine[0] = 7;
        // As long as `mine` lives, an operation on `left` would be over before its call returns. This one is not.
        weir::fill(b, right, 3);
    }
    weir::copy(b, right, left);  // comes after what the host wrote

    return right.read<double>()[0] == 7 && right.read<double>()[1] == 1 ? 0 : 1;
}
