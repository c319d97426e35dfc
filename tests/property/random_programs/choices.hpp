// The choices from which the generator draws.
#pragma once

#include <array>
#include <cstdint>

#include "random_programs/arithmetic.hpp"
#include "random_programs/program.hpp"

namespace random_programs {

/// A source of numbers that is the same everywhere, unlike the distributions of the standard library.
class dice {
public:
    explicit dice(std::uint64_t seed) noexcept : state_(mix(seed, 1)) {}
    /// A number in [0, below).
    int operator()(int below) noexcept {
        state_ = mix(state_, 2);
        return static_cast<int>(state_ % static_cast<std::uint64_t>(below));
    }
    bool chance(int percent) noexcept { return (*this)(100) < percent; }

private:
    std::uint64_t state_;
};

struct weight {
    step_kind kind;
    int times;
};

inline constexpr std::array serial_weights{
    weight{step_kind::make_stream, 3},
    weight{step_kind::drop_stream, 2},
    weight{step_kind::allocate, 8},
    weight{step_kind::alias, 2},
    weight{step_kind::drop_array, 7},
    weight{step_kind::operate, 40},
    weight{step_kind::copy, 6},
    weight{step_kind::fill, 3},
    weight{step_kind::copy_from_host, 3},
    weight{step_kind::read_host, 4},
    weight{step_kind::write_host, 2},
    weight{step_kind::open_view, 2},
    weight{step_kind::touch_view, 4},
    weight{step_kind::close_view, 2},
    weight{step_kind::record, 4},
    weight{step_kind::wait_event, 4},
    weight{step_kind::wait_stream, 2},
    weight{step_kind::wait_operation, 2},
    weight{step_kind::synchronize_stream, 1},
    weight{step_kind::synchronize_event, 1},
    weight{step_kind::synchronize_operation, 1},
    weight{step_kind::synchronize_device, 1},
    weight{step_kind::query, 2},
    weight{step_kind::keep_alive, 3},
    weight{step_kind::order_array, 2},
    weight{step_kind::order_stream, 2},
    weight{step_kind::order_scope, 2},
    weight{step_kind::order_process, 1},
    weight{step_kind::hold, 6},
    weight{step_kind::open, 3},
    weight{step_kind::push_current, 2},
    weight{step_kind::pop_current, 2},
};

/// Without views, whose memory other threads could then not use without waiting, and without the mode of the whole process.
inline constexpr std::array threaded_weights{
    weight{step_kind::make_stream, 2},
    weight{step_kind::drop_stream, 2},
    weight{step_kind::allocate, 6},
    weight{step_kind::alias, 1},
    weight{step_kind::drop_array, 5},
    weight{step_kind::operate, 40},
    weight{step_kind::copy, 6},
    weight{step_kind::fill, 3},
    weight{step_kind::copy_from_host, 3},
    weight{step_kind::read_host, 3},
    weight{step_kind::write_host, 2},
    weight{step_kind::record, 4},
    weight{step_kind::wait_event, 4},
    weight{step_kind::wait_stream, 2},
    weight{step_kind::wait_operation, 2},
    weight{step_kind::synchronize_stream, 1},
    weight{step_kind::synchronize_event, 1},
    weight{step_kind::synchronize_operation, 1},
    weight{step_kind::query, 2},
    weight{step_kind::keep_alive, 3},
    weight{step_kind::order_array, 1},
    weight{step_kind::order_stream, 1},
    weight{step_kind::order_scope, 1},
    weight{step_kind::hold, 3},
    weight{step_kind::open, 2},
    weight{step_kind::push_current, 2},
    weight{step_kind::pop_current, 2},
};

/// Arrays come and go, and hardly anything waits.
inline constexpr std::array reuse_weights{
    weight{step_kind::make_stream, 1}, weight{step_kind::allocate, 16}, weight{step_kind::drop_array, 15},
    weight{step_kind::operate, 40},    weight{step_kind::copy, 6},      weight{step_kind::record, 2},
    weight{step_kind::wait_event, 2},  weight{step_kind::hold, 10},     weight{step_kind::read_host, 1},
    weight{step_kind::keep_alive, 2},
};

/// Additions, and steps that do not touch memory.
inline constexpr std::array adding_weights{
    weight{step_kind::operate, 40},    weight{step_kind::record, 4},      weight{step_kind::wait_event, 4},
    weight{step_kind::wait_stream, 3}, weight{step_kind::make_stream, 2}, weight{step_kind::drop_stream, 2},
    weight{step_kind::keep_alive, 2},  weight{step_kind::query, 2},       weight{step_kind::hold, 2},
    weight{step_kind::open, 2},
};

}  // namespace random_programs
