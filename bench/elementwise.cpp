// Element-wise kernels of a program beside loops written by hand: time by the loop's time, so less than 1 is faster.
//
//   kernel   the compiled loop alone, called as the operation calls it
//   inline   enqueued on cpu:inline, whose streams run an operation in the call
//   cpu      enqueued on the CPU, on as many threads as WEIR_CPU_THREADS says, and waited for
//
// Each figure is the median of pairs: one run of the loop, and right after it one of the other.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "array/elements/host_compiler.hpp"
#include "elementwise_hand.hpp"
#include "weir/weir.hpp"

namespace weir::bench {
namespace {

using seconds = std::chrono::duration<double>;

double time_of(const std::function<void()>& work, int times) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < times; ++i) {
        work();
    }
    return seconds(std::chrono::steady_clock::now() - start).count();
}

double ratio(const std::function<void()>& other, const std::function<void()>& hand, std::size_t elements) {
    const int times = static_cast<int>(std::max<std::size_t>(1, 2'000'000 / elements));
    const int pairs = elements >= 10'000'000 ? 7 : 41;
    time_of(hand, times);
    time_of(other, times);
    std::vector<double> all;
    for (int i = 0; i < pairs; ++i) {
        const double by_hand = time_of(hand, times);
        all.push_back(time_of(other, times) / by_hand);
    }
    std::nth_element(all.begin(), all.begin() + pairs / 2, all.end());
    return all[static_cast<std::size_t>(pairs / 2)];
}

/// The same arrays on a device, the kernel on it, and a wait.
class enqueued {
public:
    enqueued(device where, const elementwise_kernel& kernel, std::vector<array> inputs, array out)
        : stream_(where), kernel_(kernel), inputs_(std::move(inputs)), out_(std::move(out)) {}
    void operator()() {
        std::vector<operand> all;
        for (const array& one : inputs_) {
            all.emplace_back(one);
        }
        if (number != 0) {
            all.emplace_back(number);
        }
        std::optional<array> out = out_;
        kernel_.run(stream_, all, std::span(&out, 1));
        stream_.synchronize();
    }
    float number = 0;  ///< the last input, unless it is 0

private:
    stream stream_;
    elementwise_kernel kernel_;
    std::vector<array> inputs_;
    array out_;
};

elements::host_loop loop_of(const char* inputs, const char* outputs, const char* body,
                            const elements::element_types& types) {
    return elements::load_loop(elements::host_source({elements::element_signature(inputs, outputs), body}, types));
}

template <class T>
std::byte* bytes_of(const array& x) {
    return reinterpret_cast<std::byte*>(const_cast<T*>(x.view<T>().device_span().data()));
}

void print(const char* name, std::size_t elements, double kernel, double in_line, double cpu) {
    std::printf("%-10s %11zu %9.3f %9.3f %9.3f\n", name, elements, kernel, in_line, cpu);
    std::fflush(stdout);
}

void axpy(std::int64_t n) {
    const stream s(cpu_inline());
    array x = full({n}, 0.5, dtype::float32, s);
    array y = zeros({n}, dtype::float32, s);
    const elementwise_kernel kernel("float x, float a", "float y", "y = a * x + 1", "axpy");
    const auto loop = loop_of("float x, float a", "float y", "y = a * x + 1",
                              {{dtype::float32, dtype::float32}, {dtype::float32}, {false, true}});
    const auto count = static_cast<std::size_t>(n);
    std::byte* const px = bytes_of<float>(x);
    std::byte* const py = bytes_of<float>(y);
    float a = 2;
    const auto hand = [&] { hand_axpy(reinterpret_cast<float*>(px), a, reinterpret_cast<float*>(py), count); };
    std::byte* first[] = {py, px, reinterpret_cast<std::byte*>(&a)};
    const std::int64_t rows[] = {0, 0, 0};
    const std::int64_t columns[] = {4, 4, 0};
    const auto alone = [&] { loop(first, rows, columns, 1, n, 0, n); };
    enqueued in_line(cpu_inline(), kernel, {x}, y);
    in_line.number = a;
    array x2 = full({n}, 0.5, dtype::float32, stream(cpu()));
    enqueued queued(cpu(), kernel, {x2}, zeros({n}, dtype::float32, stream(cpu())));
    queued.number = a;
    print("axpy", count, ratio(alone, hand, count), ratio(std::ref(in_line), hand, count),
          ratio(std::ref(queued), hand, count));
}

void distance(std::int64_t n) {
    const stream s(cpu_inline());
    array x = full({n}, 0.5, dtype::float64, s);
    array y = full({n}, 0.25, dtype::float64, s);
    array d = zeros({n}, dtype::float64, s);
    const char* const body = "d = (x - y) * (x - y)";
    const elementwise_kernel kernel("T x, T y", "T d", body, "distance");
    const auto loop =
        loop_of("T x, T y", "T d", body, {{dtype::float64, dtype::float64}, {dtype::float64}, {false, false}});
    const auto count = static_cast<std::size_t>(n);
    std::byte* first[] = {bytes_of<double>(d), bytes_of<double>(x), bytes_of<double>(y)};
    const auto hand = [&] {
        hand_distance(reinterpret_cast<double*>(first[1]), reinterpret_cast<double*>(first[2]),
                      reinterpret_cast<double*>(first[0]), count);
    };
    const std::int64_t rows[] = {0, 0, 0};
    const std::int64_t columns[] = {8, 8, 8};
    const auto alone = [&] { loop(first, rows, columns, 1, n, 0, n); };
    const stream q(cpu());
    enqueued in_line(cpu_inline(), kernel, {x, y}, d);
    enqueued queued(cpu(), kernel, {full({n}, 0.5, dtype::float64, q), full({n}, 0.25, dtype::float64, q)},
                    zeros({n}, dtype::float64, q));
    print("distance", count, ratio(alone, hand, count), ratio(std::ref(in_line), hand, count),
          ratio(std::ref(queued), hand, count));
}

void bias(std::int64_t n) {
    const std::int64_t columns = std::min<std::int64_t>(n / 10, 1000);
    const std::int64_t rows = n / columns;
    const stream s(cpu_inline());
    array x = full({rows, columns}, 0.5, dtype::float32, s);
    array row = full({columns}, 0.25, dtype::float32, s);
    array y = zeros({rows, columns}, dtype::float32, s);
    const elementwise_kernel kernel("T x, T b", "T y", "y = x + b", "bias");
    const auto loop =
        loop_of("T x, T b", "T y", "y = x + b", {{dtype::float32, dtype::float32}, {dtype::float32}, {false, false}});
    const auto count = static_cast<std::size_t>(rows * columns);
    std::byte* first[] = {bytes_of<float>(y), bytes_of<float>(x), bytes_of<float>(row)};
    const auto hand = [&] {
        hand_bias(reinterpret_cast<float*>(first[1]), reinterpret_cast<float*>(first[2]),
                  reinterpret_cast<float*>(first[0]), static_cast<std::size_t>(rows),
                  static_cast<std::size_t>(columns));
    };
    const std::int64_t row_strides[] = {columns * 4, columns * 4, 0};
    const std::int64_t column_strides[] = {4, 4, 4};
    const auto alone = [&] { loop(first, row_strides, column_strides, rows, columns, 0, rows * columns); };
    const stream q(cpu());
    enqueued in_line(cpu_inline(), kernel, {x, row}, y);
    enqueued queued(cpu(), kernel,
                    {full({rows, columns}, 0.5, dtype::float32, q), full({columns}, 0.25, dtype::float32, q)},
                    zeros({rows, columns}, dtype::float32, q));
    print("bias", count, ratio(alone, hand, count), ratio(std::ref(in_line), hand, count),
          ratio(std::ref(queued), hand, count));
}

}  // namespace
}  // namespace weir::bench

int main(int argc, char** argv) {
    const std::int64_t largest = argc > 1 ? std::atoll(argv[1]) : 100'000'000;
    std::printf("time by that of a loop written by hand (-O3 -march=native)\n");
    std::printf("%-10s %11s %9s %9s %9s\n", "", "elements", "kernel", "inline", "cpu");
    for (std::int64_t n = 1000; n <= largest; n *= 10) {
        weir::bench::axpy(n);
        weir::bench::distance(n);
        weir::bench::bias(n);
    }
    return 0;
}
