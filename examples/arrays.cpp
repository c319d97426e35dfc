#include <weir/weir.hpp>

int main() {
    using namespace weir;
    const stream left, right;
    const array x = arange(0, 24, 1, dtype::float32).reshape({4, 6});

    compute(left, binary_operation::add, x[{ellipsis, 0}], 1, x[{ellipsis, 0}]);  // a column: only it is waited for
    fill(right, x[{slice{0, 2}, slice{1, {}, 2}}], 7);                            // does not touch that column

    const array y = (x.t() * 2 + 1).reshape({2, 12});  // a new array, in C order
    const array rows = sum(right, y, 1);               // one number for each row
    const array fewer = astype(left, rows, dtype::float16);

    return fewer.read<float16>().size() == 2 ? 0 : 1;  // the host waits for exactly what it reads
}
