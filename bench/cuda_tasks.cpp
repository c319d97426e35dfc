// Task graphs of customary shapes on a CUDA device: what an empty tracked task costs the host, beside the waits alone.
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "contest.hpp"
#include "cuda_device.hpp"
#include "cuda_least.hpp"
#include "task_shapes.hpp"
#include "weir/testing.hpp"

namespace weir::bench {

namespace {

class cuda_graph {
public:
    explicit cuda_graph(task_shape shape) : on_(cuda_device()), in_(&context_of(on_)) {
        make_current(*in_);
        for (std::size_t column = 0; column < task_columns; ++column) {
            streams_.emplace_back(on_);
            raw_.push_back(std::make_unique<raw_stream>(*in_));
        }
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
        issued_ = counts.waits_issued;
        minimal_ = counts.waits_minimal;
    }

    void enqueue() {
        const std::vector<std::size_t>* read = inputs_.data();
        for (std::size_t step = 0; step < task_steps; ++step) {
            for (std::size_t column = 0; column < task_columns; ++column) {
                enqueue_task(step, column, *read++);
            }
        }
    }
    /// As many waits as a graph needs at least, each for an event that is recorded for it.
    void waits_alone() const {
        for (std::size_t i = 0; i < minimal_; ++i) {
            const std::size_t from = i % task_columns;
            event_.record(*raw_[from]);
            event_.hold(*raw_[(from + 1) % task_columns]);
        }
    }
    void synchronize() const {
        for (const stream& one : streams_) {
            one.synchronize();
        }
        for (const auto& one : raw_) {
            one->synchronize();
        }
    }
    [[nodiscard]] std::string waits() {
        return std::to_string(issued_) + " waits, minimal " + std::to_string(minimal_);
    }

private:
    template <std::size_t... I>
    void enqueue_reading(std::index_sequence<I...>, std::size_t step, std::size_t column,
                         const std::vector<std::size_t>& read) {
        const std::vector<array>& from = buffers_[(step + 1) % 2];
        array& to = buffers_[step % 2][column];
        detail::submit_work(streams_[column], runtime::work_kind::device, detail::native_task{empty_task{}},
                            in<double>(from[read[I]])..., out<double>(to));
    }
    void enqueue_task(std::size_t step, std::size_t column, const std::vector<std::size_t>& read) {
        [&]<std::size_t... N>(std::index_sequence<N...>) {
            const auto with = [&](auto count) {
                if (read.size() == count.size()) {
                    enqueue_reading(count, step, column, read);
                }
            };
            (with(std::make_index_sequence<N>()), ...);
        }
        (std::make_index_sequence<task_columns + 1>());
    }

    device on_;
    const driver::context* in_;
    std::vector<stream> streams_;
    std::vector<std::unique_ptr<raw_stream>> raw_;
    raw_event event_{*in_};
    std::array<std::vector<array>, 2> buffers_;
    std::vector<std::vector<std::size_t>> inputs_;
    std::size_t issued_ = 0;
    std::size_t minimal_ = 0;
};

/// The same by the least tracker.
class least_graph {
public:
    explicit least_graph(task_shape shape) : on_(cuda_device()), in_(&context_of(on_)) {
        make_current(*in_);
        for (std::size_t step = 0; step < task_steps; ++step) {
            for (std::size_t column = 0; column < task_columns; ++column) {
                std::vector<least_tracker::memory*> from;
                for (const std::size_t one : task_inputs(shape, step, column)) {
                    from.push_back(&buffers_[(step + 1) % 2][one]);
                }
                inputs_.push_back(std::move(from));
            }
        }
        enqueue();
        issued_ = tracker_.waits();
        synchronize();
    }
    void enqueue() {
        const std::vector<least_tracker::memory*>* read = inputs_.data();
        for (std::size_t step = 0; step < task_steps; ++step) {
            for (std::size_t column = 0; column < task_columns; ++column) {
                tracker_.order(column, *read++, buffers_[step % 2][column]);
            }
        }
    }
    void synchronize() const { tracker_.synchronize(); }
    [[nodiscard]] std::string waits() { return std::to_string(issued_) + " waits"; }

private:
    device on_;
    const driver::context* in_;
    least_tracker tracker_{*in_, task_columns};
    std::array<std::array<least_tracker::memory, task_columns>, 2> buffers_{};
    std::vector<std::vector<least_tracker::memory*>> inputs_;
    std::size_t issued_ = 0;
};

const std::vector<contest> contests = [] {
    std::vector<contest> made;
    for (const named_shape& one : task_shapes) {
        const auto weir = [one] {
            const auto with = std::make_shared<cuda_graph>(one.shape);
            const auto settle = [with] { with->synchronize(); };
            return contestant{"Weir, " + with->waits(), tasks_in_all, [with] { with->enqueue(); }, settle, settle};
        };
        const auto alone = [one] {
            const auto with = std::make_shared<cuda_graph>(one.shape);
            const auto settle = [with] { with->synchronize(); };
            return contestant{"the waits alone, by the driver", tasks_in_all, [with] { with->waits_alone(); }, settle,
                              settle};
        };
        const auto least = [one] {
            const auto with = std::make_shared<least_graph>(one.shape);
            const auto settle = [with] { with->synchronize(); };
            return contestant{"the least tracker, " + with->waits(), tasks_in_all, [with] { with->enqueue(); }, settle,
                              settle};
        };
        made.emplace_back(std::string("cuda/tasks/") + one.name, std::string("8 columns, 64 steps: ") + one.what,
                          comparison::with_peers, std::vector<make_contestant>{weir, least, alone});
    }
    return made;
}();

}  // namespace

}  // namespace weir::bench
