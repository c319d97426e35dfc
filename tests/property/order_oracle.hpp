// The oracle: what a program requires, derived from the program alone, and whether the outcome of a driver satisfies it. It shares
// no code with the engine: no clocks, no epochs, no histories, only sets of operations and concrete memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "order_program.hpp"

namespace order_test {

/// Why one operation must come before another.
enum kind : unsigned {
    read_after_write = 1,
    write_after_read = 2,
    write_after_write = 4,
    reuse = 8,
    dependency = 16,
    entry = 32,
    exit = 64,
};
constexpr unsigned hazards = read_after_write | write_after_read | write_after_write;
constexpr int kinds = 7;
const char* name_of_kind(int bit);

/// A set of at most 64 nodes, as bits.
using set = std::uint64_t;
/// For each node the nodes before it: either those directly before it, or all of them.
using relation = std::vector<set>;

/// One node of a stream, or of the host: an operation, or a wait, which only carries order.
struct node {
    int stream = 0;
    int position = 0;
    bool works = false;
    std::vector<int> cells;    ///< the bytes it sees: all that it touches
    std::vector<int> written;  ///< the bytes that it changes
};

/// A program as nodes and the required order between them.
struct requirements {
    std::vector<node> nodes;
    relation given;     ///< holds on any device: streams are first in, first out, packages order themselves
    relation required;  ///< must hold beyond that
    std::vector<std::vector<unsigned>> why;  ///< [after][before]: the kinds of a required pair
    set on_host = 0;                         ///< nodes of the host: whatever the program enqueues later comes later
};

/// Derives from a program what it requires (rules O1, O5, O6, L1, S2, X6, X7).
requirements derive(const program& p);

/// The oracle's result for one program and the outcome of a driver.
struct verdict {
    std::string wrong;      ///< empty: everything is right
    unsigned cross = 0;     ///< the kinds that occur between different streams
    int waits = 0;          ///< issued
    int minimum = 0;        ///< the edges between streams in the transitive reduction
    double schedules = 0;   ///< how many legal schedules there are
    bool compared = false;  ///< memory contents were compared; not if the program itself leaves a race
};

class oracle {
public:
    explicit oracle(const program& p);

    /// Runs all legal schedules. Each must keep every required pair in order and, unless the program itself left a
    /// conflict unordered, give every operation the same view of memory as the serial program.
    [[nodiscard]] verdict sufficient(const outcome& done) const;

    /// As above, and also compares the waits with the minimum: they order nothing but what is required, none is
    /// redundant, and there are as many as the transitive reduction has edges between streams. For programs without
    /// packages, and outcomes in which nothing is known to be complete.
    [[nodiscard]] verdict exact(const outcome& done) const;

    /// As `sufficient`, by running up to `limit` schedules one by one, without memory of visited states: a check
    /// of the search itself. Sets `schedules` to the number run; to 0 if there are more than `limit`.
    [[nodiscard]] verdict plain(const outcome& done, int limit) const;

private:
    [[nodiscard]] relation device(const outcome& done, bool with_host) const;
    void apply(relation& direct, const edge& e) const;
    [[nodiscard]] verdict begin(const outcome& done) const;
    [[nodiscard]] std::string redundant(const outcome& done, const relation& needed) const;

    requirements all_;
    relation before_;  ///< the closure of everything given and required, the host's knowledge included
    relation needed_;  ///< the part of it that operations with work need complete
    bool races_ = false;
};

}  // namespace order_test
