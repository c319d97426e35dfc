// Two streams, two arrays, no event: Weir sees what each operation reads and writes, and adds the one wait that is
// missing. Exits with 0 if the result is right.
#include <weir/weir.hpp>

int main() {
    const weir::stream load, compute;  // two queues of work that run beside each other
    weir::array x = weir::empty(1 << 20, weir::dtype::float32);
    weir::array y = weir::empty(1 << 20, weir::dtype::float32);
    const auto square = [](auto i, auto from, auto to) { to[i] = from[i] * from[i]; };

    weir::fill(load, x, 3.0);  // enqueued, not yet done
    // On another stream: Weir adds the wait.
    weir::parallel_for(compute, x.size(), square, weir::in<float>(x), weir::out<float>(y));
    x = {};  // dropped while in use: no thread waits, and the memory is not reused too early

    return y.read<float>()[0] == 9.0F ? 0 : 1;  // the host waits for exactly what it reads
}
