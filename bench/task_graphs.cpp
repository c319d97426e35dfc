// Task graphs of customary shapes, 8 columns wide and 64 steps deep, of empty tracked operations: a stream for each
// column, and for each column two arrays, which the steps write in turn.
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "contest.hpp"
#include "task_shapes.hpp"
#include "weir/testing.hpp"
#include "weir/weir.hpp"

namespace weir::bench {

namespace {

constexpr std::size_t graphs_in_a_turn = 10;

class task_graph {
public:
    explicit task_graph(task_shape shape) : streams_(task_columns) {
        for (std::size_t step = 0; step < task_steps; ++step) {
            for (std::size_t column = 0; column < task_columns; ++column) {
                inputs_.push_back(task_inputs(shape, step, column));
            }
        }
        for (auto& buffer : buffers_) {
            for (std::size_t column = 0; column < task_columns; ++column) {
                buffer.push_back(empty(64, dtype::float64, streams_[column]));
            }
        }
    }

    void enqueue() {
        const std::vector<std::size_t>* read = inputs_.data();
        for (std::size_t step = 0; step < task_steps; ++step) {
            for (std::size_t column = 0; column < task_columns; ++column) {
                enqueue_task(step, column, *read++);
            }
        }
    }
    void synchronize() const {
        for (const stream& one : streams_) {
            one.synchronize();
        }
    }

    /// The waits of one graph that Weir issues while nothing is over, and the fewest that give the same order.
    [[nodiscard]] std::string waits() {
        synchronize();
        testing::gate held;
        trace_scope trace;
        for (const stream& one : streams_) {
            held.hold(one);
        }
        enqueue();
        const trace_summary counts = trace.summary();
        held.open();
        synchronize();
        return std::to_string(counts.waits_issued) + " waits, minimal " + std::to_string(counts.waits_minimal);
    }

private:
    template <std::size_t... I>
    void enqueue_reading(std::index_sequence<I...>, std::size_t step, std::size_t column,
                         const std::vector<std::size_t>& read) {
        const std::vector<array>& from = buffers_[(step + 1) % 2];
        array& to = buffers_[step % 2][column];
        access(
            streams_[column], [](native_stream, auto...) {}, in<double>(from[read[I]])..., out<double>(to));
    }
    void enqueue_task(std::size_t step, std::size_t column, const std::vector<std::size_t>& read) {
        static_assert(task_columns == 8);
        const auto with = [&](auto count) { enqueue_reading(count, step, column, read); };
        switch (read.size()) {
            case 0:
                return with(std::make_index_sequence<0>());
            case 1:
                return with(std::make_index_sequence<1>());
            case 2:
                return with(std::make_index_sequence<2>());
            case 3:
                return with(std::make_index_sequence<3>());
            case 4:
                return with(std::make_index_sequence<4>());
            case 5:
                return with(std::make_index_sequence<5>());
            case 6:
                return with(std::make_index_sequence<6>());
            case 7:
                return with(std::make_index_sequence<7>());
            default:
                return with(std::make_index_sequence<8>());
        }
    }

    std::vector<stream> streams_;
    std::array<std::vector<array>, 2> buffers_;
    std::vector<std::vector<std::size_t>> inputs_;
};

contestant run(task_shape shape) {
    const auto with = std::make_shared<task_graph>(shape);
    return {"Weir, " + with->waits(), graphs_in_a_turn * tasks_in_all, [with] {
                for (std::size_t i = 0; i < graphs_in_a_turn; ++i) {
                    with->enqueue();
                }
                with->synchronize();
            }};
}

const std::vector<contest> contests = [] {
    std::vector<contest> made;
    for (const named_shape& one : task_shapes) {
        made.emplace_back(std::string("tasks/") + one.name, std::string("8 columns, 64 steps: ") + one.what,
                          comparison::with_peers, std::vector<make_contestant>{[one] { return run(one.shape); }});
    }
    return made;
}();

}  // namespace

}  // namespace weir::bench
