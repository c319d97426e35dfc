// Code that fills the processor's instruction cache, as a call of a large library does.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace weir::bench {

namespace code_lines {

template <std::size_t First, std::size_t Count>
[[gnu::always_inline]] inline void go_through(std::array<std::uint64_t, 8>& x) {
    if constexpr (Count == 1) {
        x[First % 8] ^= 7 * First + 200'003;
        asm("" : "+r"(x[First % 8]));  // else the compiler merges several of these into one
    } else {
        go_through<First, Count / 2>(x);
        go_through<First + Count / 2, Count - Count / 2>(x);
    }
}

}  // namespace code_lines

/// Changes `numbers` by `Lines` cache lines of code, of which each instruction runs once.
template <std::size_t Lines>
void run_code_lines(std::array<std::uint64_t, 8>& numbers) {
    constexpr std::size_t steps = Lines * 64 / 7;         // each takes 7 bytes, as instructions of that kind do
    std::array<std::uint64_t, 8> in_registers = numbers;  // no instruction waits for the one before
    code_lines::go_through<0, steps>(in_registers);
    numbers = in_registers;
}

}  // namespace weir::bench
