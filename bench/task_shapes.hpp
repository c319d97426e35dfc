// The shapes of task graphs that Task Bench (Slaughter et al., 2020) made customary: columns side by side, steps one after
// the other, and a task of each column in each step that reads what some columns made in the step before.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir::bench {

enum class task_shape : std::uint8_t { trivial, stencil, fft, sweep, tree, random };

struct named_shape {
    task_shape shape;
    const char* name;
    const char* what;
};

inline constexpr std::array task_shapes = {
    named_shape{task_shape::trivial, "trivial", "tasks that depend on nothing"},
    named_shape{task_shape::stencil, "stencil", "each task reads its own column and the two beside it"},
    named_shape{task_shape::fft, "fft", "each task reads its own column and one at distance 1, 2, 4, 1, ..."},
    named_shape{task_shape::sweep, "sweep", "each task reads its own column and the one to the left"},
    named_shape{task_shape::tree, "tree", "each task reads the column of half its number"},
    named_shape{task_shape::random, "random", "each task reads each column with probability one half"},
};

inline constexpr std::size_t task_columns = 8;
inline constexpr std::size_t task_steps = 64;
inline constexpr std::size_t tasks_in_all = task_columns * task_steps;

/// The columns of step `step - 1` that the task of `column` in `step` reads, in rising order; none in step 0.
inline std::vector<std::size_t> task_inputs(task_shape shape, std::size_t step, std::size_t column) {
    std::vector<std::size_t> read;
    if (step == 0) {
        return read;
    }
    const auto is_read = [&](std::size_t other) {
        const std::size_t distance = column > other ? column - other : other - column;
        switch (shape) {
            case task_shape::trivial:
                return false;
            case task_shape::stencil:
                return distance <= 1;
            case task_shape::fft:
                return distance == 0 || (column ^ other) == std::size_t{1} << (step - 1) % 3;
            case task_shape::sweep:
                return other == column || other + 1 == column;
            case task_shape::tree:
                return other == column / 2;
            case task_shape::random: {
                // One bit of a hash: the same graph in every run, for every contestant.
                std::uint64_t bits = (step * task_columns + column) * task_columns + other + 1;
                bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9U;
                bits = (bits ^ bits >> 27) * 0x94d049bb133111ebU;
                return (bits >> 63) != 0;
            }
        }
        return false;
    };
    for (std::size_t other = 0; other < task_columns; ++other) {
        if (is_read(other)) {
            read.push_back(other);
        }
    }
    return read;
}

}  // namespace weir::bench
