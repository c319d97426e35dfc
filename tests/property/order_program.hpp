// Small programs over streams and memory, as values: the ordering engine is tested on them. This header includes
// nothing of Weir, since the oracle (order_oracle.hpp) reads programs and must share no code with the engine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace order_test {

/// What one step of a program does. `stream`, `object` and `package` of the step are its operands.
enum class action : std::uint8_t {
    launch,        ///< an operation on `stream` that makes `touches`, after the events `after`
    record,        ///< records event `object` on `stream`
    wait_event,    ///< `stream` waits for event `object`
    wait_stream,   ///< `stream` waits for stream `object`
    host,          ///< the host makes `touches`, having waited for what conflicts
    drop,          ///< buffer `object` is dropped; its memory may be handed out again
    make,          ///< buffer `object` is made, in the memory of the dropped buffers that it is `made_of`
    foreign,       ///< `package` makes `touches` on its current stream: Weir does not see it
    move_package,  ///< `package` makes `stream` its current stream, ordered after its last one: unseen, too
    hand_out,      ///< buffer `object` is shared with `package` from here on
};

/// The ordering mode that one array, stream, scope or process sets.
enum class order_by : std::uint8_t { silent, weir, program };

/// One access to the bytes [begin, end) of a buffer.
struct touch {
    int buffer = 0;
    int begin = 0;
    int end = 0;
    bool write = false;
};

struct step {
    action what = action::launch;
    int stream = -1;
    int object = -1;
    int package = -1;
    std::vector<touch> touches;
    std::vector<int> after;
    order_by scope = order_by::silent;
};

/// A buffer at a place in physical memory.
struct buffer {
    int base = 0;
    int size = 0;
    order_by mode = order_by::silent;
    std::vector<int> made_of;  ///< the former owners of its memory
    unsigned packages = 0;     ///< a bit for each package that shares it from the start
};

struct program {
    std::vector<order_by> streams;
    std::vector<int> packages;  ///< the current stream of each when the program begins
    std::vector<buffer> buffers;
    std::vector<step> steps;
    int events = 0;
    order_by process = order_by::weir;
};

/// Positions in a program: the operation of step i is at `operation(i)`, and what follows it on other streams (handing
/// back to a package) at `aftermath(i)`.
constexpr int operation(int step) { return 2 * step; }
constexpr int aftermath(int step) { return 2 * step + 1; }

constexpr int every_stream = -1;

/// Everything on `stream` up to position `upto` comes before everything on `to` from position `from` on.
struct edge {
    int stream = 0;
    int upto = 0;
    int to = 0;
    int from = 0;
    std::string why;
};

/// The outcome of a driver on a program.
struct outcome {
    std::vector<edge> waits;       ///< device-side waits that were issued
    std::vector<edge> host_waits;  ///< what the host waited for; `from` is its step's position
    std::vector<edge> over;        ///< operations known to be complete when a step began
    int short_plans = 0;           ///< operations that took a short plan
};

/// Which kinds of steps a random program has.
struct recipe {
    int steps = 12;   ///< at most
    int streams = 4;  ///< at most
    int buffers = 3;  ///< at most, to begin with
    int cells = 4;    ///< bytes of each
    int touches = 2;  ///< of one operation, at most
    int writes = 55;  ///< percent of the touches
    bool modes = true;
    bool reuse = true;
    bool host = true;
    bool packages = false;
};

/// The program that belongs to a seed.
program random_program(const recipe& how, std::uint64_t seed);

/// For readers: the program, and the outcome.
std::string describe(const program& p);
std::string describe(const outcome& o);

}  // namespace order_test
