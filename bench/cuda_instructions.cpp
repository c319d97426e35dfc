// How many instructions the host needs for an operation on a CUDA device whose driver does nothing, for `./run bench
// instructions`. Usage: bench-cuda-instructions launch|in_turn|allocate|CALL|SHAPE; valgrind counts what runs in `measured`. CALL is a
// library call, by a plan or stateless; its library does nothing either (idle_cuda/libraries.cpp).
#include <cstddef>
#include <cstring>
#include <functional>
#include <iostream>
#include <optional>
#include <utility>
#include <vector>

#include "cuda_device.hpp"
#include "task_shapes.hpp"

namespace {

using namespace weir;  // NOLINT(google-build-using-namespace): a program of its own
using bench::task_columns;
using bench::task_steps;

/// Square matrices that are multiplied, and a row that is transformed.
struct library_calls {
    array a;
    array out;
    array row;
    array spectrum;
    matmul_plan product;
    fft_plan transform;

    explicit library_calls(const stream& s)
        : a(ones({32, 32}, dtype::float32, s)),
          out(zeros({32, 32}, dtype::float32, s)),
          row(zeros({1024}, dtype::complex64, s)),
          spectrum(zeros({1024}, dtype::complex64, s)),
          product(a, a),
          transform(row) {
        product.plan(s);
        transform.plan(s);
    }
};

struct named_call {
    const char* name;
    void (*run)(library_calls& with, const stream& on);
};

constexpr named_call named_calls[] = {
    // NOLINT(modernize-avoid-c-arrays): its length is counted
    {"matmul_plan", [](library_calls& with, const stream& on) { with.product.execute(on, with.out); }},
    {"matmul", [](library_calls& with, const stream& on) { matmul(on, with.a, with.a, with.out); }},
    {"matmul_result", [](library_calls& with, const stream& on) { static_cast<void>(matmul(on, with.a, with.a)); }},
    {"fft_plan",
     [](library_calls& with, const stream& on) { with.transform.execute(on, fft_direction::forward, with.spectrum); }},
    {"fft_call", [](library_calls& with, const stream& on) { fft::fft(on, with.row, with.spectrum); }},
    {"fft_result", [](library_calls& with, const stream& on) { static_cast<void>(fft::fft(on, with.row)); }},
};

struct world {
    device on = bench::cuda_device();
    kernel empty_kernel = kernel::from_source(bench::empty_source, "empty", {}, on);
    std::vector<stream> streams;
    std::vector<array> buffers[2];
    std::vector<std::vector<std::size_t>> inputs;

    explicit world(bench::task_shape shape) {
        for (std::size_t column = 0; column < task_columns; ++column) {
            streams.emplace_back(on);
            for (auto& buffer : buffers) {
                buffer.push_back(empty(64, dtype::float64, streams.back()));
            }
        }
        for (std::size_t step = 0; step < task_steps; ++step) {
            for (std::size_t column = 0; column < task_columns; ++column) {
                inputs.push_back(bench::task_inputs(shape, step, column));
            }
        }
    }
    void synchronize() const {
        for (const stream& one : streams) {
            one.synchronize();
        }
    }
};

/// Launches of a kernel that changes one array, on `streams` streams in turn.
void launch_on(world& with, std::size_t streams) {
    for (std::size_t i = 0; i < bench::tasks_in_all; ++i) {
        launch(with.streams[i % streams], with.empty_kernel, {1, 32}, inout<double>(with.buffers[0][0]));
    }
}

void call_library(const named_call& which, library_calls& with, const stream& on) {
    for (std::size_t i = 0; i < bench::tasks_in_all; ++i) {
        which.run(with, on);
    }
}

/// Memory that is dropped at once.
void allocate_and_drop(world& with) {
    for (std::size_t i = 0; i < bench::tasks_in_all; ++i) {
        array y = empty(1024, dtype::float64, with.streams[0]);
    }
}

template <std::size_t... I>
void enqueue_task(world& with, std::index_sequence<I...>, std::size_t step, std::size_t column,
                  const std::vector<std::size_t>& read) {
    const std::vector<array>& from = with.buffers[(step + 1) % 2];
    detail::submit_work(with.streams[column], runtime::work_kind::device, detail::native_task{bench::empty_task{}},
                        in<double>(from[read[I]])..., out<double>(with.buffers[step % 2][column]));
}

void enqueue_graph(world& with) {
    const std::vector<std::size_t>* read = with.inputs.data();
    for (std::size_t step = 0; step < task_steps; ++step) {
        for (std::size_t column = 0; column < task_columns; ++column, ++read) {
            [&]<std::size_t... N>(std::index_sequence<N...>) {
                const auto with_inputs = [&](auto count) {
                    if (read->size() == count.size()) {
                        enqueue_task(with, count, step, column, *read);
                    }
                };
                (with_inputs(std::make_index_sequence<N>()), ...);
            }
            (std::make_index_sequence<task_columns + 1>());
        }
    }
}

}  // namespace

extern "C" [[gnu::noinline]] void measured(const std::function<void()>& run) { run(); }

int main(int count, char** arguments) {
    const char* const what = count == 2 ? arguments[1] : "";
    bench::task_shape shape = bench::task_shape::trivial;
    const bool is_launch = std::strcmp(what, "launch") == 0 || std::strcmp(what, "in_turn") == 0;
    const bool is_allocation = std::strcmp(what, "allocate") == 0;
    const named_call* call = nullptr;
    for (const named_call& one : named_calls) {
        call = std::strcmp(what, one.name) == 0 ? &one : call;
    }
    bool is_known = is_launch || is_allocation || call != nullptr;
    for (const bench::named_shape& one : bench::task_shapes) {
        if (std::strcmp(what, one.name) == 0) {
            shape = one.shape;
            is_known = true;
        }
    }
    if (!is_known) {
        std::cerr << "usage: bench-cuda-instructions launch|in_turn|allocate|trivial|stencil|fft|sweep|tree|random|\n"
                     "       matmul_plan|matmul|matmul_result|fft_plan|fft_call|fft_result\n";
        return 2;
    }
    world with(shape);
    std::optional<library_calls> of_libraries;
    if (call != nullptr) {
        of_libraries.emplace(with.streams[0]);
    }
    const std::function<void()> run = [&] {
        if (is_launch) {
            launch_on(with, std::strcmp(what, "launch") == 0 ? 1 : 2);
        } else if (call != nullptr) {
            call_library(*call, *of_libraries, with.streams[0]);
        } else if (is_allocation) {
            allocate_and_drop(with);
        } else {
            enqueue_graph(with);
        }
    };
    // The last round counts: what is kept for later use is there by then.
    constexpr int rounds = 20;
    for (int round = 1; round < rounds; ++round) {
        run();
        with.synchronize();
    }
    measured(run);
    with.synchronize();
}
