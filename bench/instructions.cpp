// How many instructions the host needs to enqueue one operation, for `./run bench instructions`: that number does not depend
// on what else the machine does, nor on its caches. Usage: bench-instructions ARRAYS STREAMS; valgrind counts what runs in
// `measured`.
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "weir/testing.hpp"
#include "weir/weir.hpp"

namespace {

constexpr std::size_t operations = 4000;

struct world {
    std::vector<weir::stream> streams;
    std::vector<weir::array> arrays;
};

/// Enqueues that many operations on the arrays and streams in turn.
void enqueue(world& on) {
    for (std::size_t i = 0; i < operations; ++i) {
        const std::size_t which = i * 7919 % on.arrays.size();
        weir::access(
            on.streams[which % on.streams.size()], [](weir::native_stream, std::span<double>) {},
            weir::inout<double>(on.arrays[which]));
    }
}

}  // namespace

extern "C" [[gnu::noinline]] void measured(world& on) { enqueue(on); }

int main(int count, char** arguments) {
    if (count != 3) {
        return 2;
    }
    world on;
    on.streams.resize(std::strtoul(arguments[2], nullptr, 10));
    for (std::size_t i = 0; i < std::strtoul(arguments[1], nullptr, 10); ++i) {
        on.arrays.push_back(weir::empty(64, weir::dtype::float64, on.streams[i % on.streams.size()]));
    }
    // The last round counts: what is kept for later use is there by then.
    constexpr int rounds = 8;
    for (int round = 1; round <= rounds; ++round) {
        {
            weir::testing::gate gate;
            for (const weir::stream& one : on.streams) {
                gate.hold(one);
            }
            if (round < rounds) {
                enqueue(on);
            } else {
                measured(on);
            }
        }
        for (const weir::stream& one : on.streams) {
            one.synchronize();
        }
    }
}
