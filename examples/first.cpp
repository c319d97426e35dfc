// Two streams, two arrays, no event: Weir sees what each operation reads and writes, and adds the one wait that is
// missing. Exits with 0 if the result is right.
#include <weir/weir.hpp>

int main() {
    const weir::stream load;     // two queues of work that run beside each other
    const weir::stream compute;
    weir::array x = weir::empty(1 << 20, weir::dtype::float32);
    const weir::array y = weir::empty(1 << 20, weir::dtype::float32);

    weir::fill(load, x, 3.0);    // enqueued, not yet done
    weir::parallel_for(compute, x.size(), [](auto i, auto x, auto y) { y[i] = x[i] * x[i]; },
                       weir::in(x.view<float>()), weir::out(y.view<float>()));  // on another stream: Weir adds the wait
    x = {};                      // dropped while in use: no wait, and its memory is not handed on too early

    return y.read<float>()[0] == 9.0F ? 0 : 1;  // the host waits for exactly what it reads
}
