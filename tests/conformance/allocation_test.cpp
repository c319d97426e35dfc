// Which memory an allocation takes, and what the stream that asked for it then waits for (rule L1). One stream is held for ever; work
// that does not depend on it completes all the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/devices.hpp"
#include "support/stuck_host.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using test::here;
using testing::gate;

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;

array doubles(std::size_t bytes, const stream& on) {
    return empty(static_cast<std::int64_t>(bytes / sizeof(double)), dtype::float64, on);
}

/// Whether the work completes. It never does if the test fails.
bool gets_over(const completion& work) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (!work.done() && std::chrono::steady_clock::now() < end) {
        std::this_thread::yield();
    }
    return work.done();
}

/// The pool's bytes before a test, where nothing is pending and nothing is cached.
void begin_with_an_empty_pool() {
    here().synchronize();
    memory::trim(here());
}

/// A small program whose free memory lies in parts that are too small for the next request, beside memory that a held stream
/// still uses.
struct small_program {
    static constexpr std::size_t hole = 256 * kib;
    static constexpr std::size_t wanted = 320 * kib;

    stream first{here()};
    stream second{here()};
    std::vector<array> live;
    gate held;

    small_program() {
        begin_with_an_empty_pool();
        for (int i = 0; i < 16; ++i) {
            live.push_back(doubles(hole, first));
        }
        for (std::size_t i = 0; i < live.size(); i += 2) {
            live[i] = {};
        }
        held.hold(first);
        fill(first, doubles(4 * mib, first), 1);  // a temporary, dropped while it is in use
    }
};

WEIR_CONFORMANCE(L1Allocation, AStreamDoesNotWaitForAnotherBecauseOfMemory) {
    const small_program program;
    const std::uint64_t over_waited = memory::stats(here()).over_waited;
    const ordering_scope manual(ordering_mode::manual);
    EXPECT_GE(memory::stats(here()).pending, 4 * mib);
    array x = doubles(small_program::wanted, program.second);
    fill(program.second, x, 1);
    array sum = add(program.second, x, 2);
    EXPECT_TRUE(gets_over(program.second.record().recorded())) << "it has nothing to wait for";
    EXPECT_FALSE(program.first.done());
    EXPECT_EQ(memory::stats(here()).over_waited, over_waited);
}

/// A random program on three streams that makes, uses and drops arrays, few at a time. At a random step one of its streams is held
/// for ever.
class random_program {
public:
    explicit random_program(std::uint64_t seed) : random_(seed) { begin_with_an_empty_pool(); }

    void run() {
        constexpr int steps = 120;
        const int hold_at = number(steps / 2);
        const auto which = static_cast<std::size_t>(number(count));
        for (int step = 0; step < steps; ++step) {
            if (step == hold_at) {
                held_.hold(streams_[which].on);
                streams_[which].is_held = true;
            }
            if (number(8) == 0) {
                memory::trim(here());
            }
            switch (number(4)) {
                case 0:
                    drop();
                    break;
                case 1:
                    use();
                    break;
                default:
                    make();
            }
            expect_bounded();
        }
        for (const lane& one : streams_) {
            if (!one.is_held) {
                EXPECT_TRUE(gets_over(one.on.record().recorded())) << "it waits for nothing that the program named";
            }
        }
    }

private:
    static constexpr int count = 3;
    static constexpr std::size_t most_live = 24 * mib;

    struct lane {
        stream on{here()};
        bool is_held = false;
    };
    struct owned {
        array values;
        bool is_held = false;  ///< a held stream will use it
    };

    int number(int below) { return static_cast<int>(random_() % static_cast<std::uint64_t>(below)); }
    lane& any_stream() { return streams_[static_cast<std::size_t>(number(count))]; }

    /// An operation of the stream on the array: from now on each of them waits for what the other one waits for.
    static void operate(lane& by, owned& what) {
        by.is_held = what.is_held = by.is_held || what.is_held;
        fill(by.on, what.values, 1);
    }
    void make() {
        lane& by = any_stream();
        const std::size_t bytes = (std::size_t{1} + random_() % 32) * 128 * kib;
        // Else pending work on the held stream would make the program a large one.
        const memory::statistics now = memory::stats(here());
        if (now.live + now.pending + bytes > (by.is_held ? most_live / 2 : most_live)) {
            drop();
            return;
        }
        arrays_.push_back({doubles(bytes, by.on)});
        operate(by, arrays_.back());
    }
    void use() {
        lane& by = any_stream();
        owned* const what = arrays_.empty() ? nullptr : &arrays_[random_() % arrays_.size()];
        // Now and then a stream comes to depend on the held one, but not all of them.
        if (what != nullptr && (by.is_held == what->is_held || number(16) == 0)) {
            operate(by, *what);
        }
    }
    void drop() {
        if (!arrays_.empty()) {
            std::swap(arrays_[random_() % arrays_.size()], arrays_.back());
            arrays_.pop_back();
        }
    }
    /// The limits of docs/memory.md.
    void expect_bounded() const {
        const memory::statistics now = memory::stats(here());
        const std::size_t floor = std::max(64 * mib, now.limit / 100 * 3);
        EXPECT_LE(now.live + now.pending + now.cached, std::max(floor, now.peak + now.peak / 4 + 2 * mib));
        EXPECT_EQ(now.over_waited, over_waited_);
    }

    std::mt19937_64 random_;
    std::uint64_t over_waited_ = memory::stats(here()).over_waited;
    std::array<lane, count> streams_;
    std::vector<owned> arrays_;
    gate held_;
};

WEIR_CONFORMANCE(L1Allocation, WhatDoesNotDependOnAHeldStreamEnds) {
    for (std::uint64_t seed = 1; seed <= 12 && !::testing::Test::HasFailure(); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        random_program(seed).run();
    }
}

/// Two halves of all memory; another stream still uses each. They are free as one block once both streams are done.
struct two_halves {
    stream first{here()};
    stream second{here()};
    std::size_t before;
    gate held;

    two_halves() : before(memory::stats(here()).limit) {
        begin_with_an_empty_pool();
        const memory::statistics now = memory::stats(here());
        memory::limit(here(), now.live + now.pending + now.cached + 4 * mib);
        { const buffer whole(4 * mib, first); }
        array low = doubles(2 * mib, first);
        array high = doubles(2 * mib, second);
        held.hold(first);
        held.hold(second);
        fill(first, low, 1);
        fill(second, high, 1);
    }
    ~two_halves() { memory::limit(here(), before); }
    two_halves(const two_halves&) = delete;
    two_halves& operator=(const two_halves&) = delete;
};

WEIR_CONFORMANCE(L1Allocation, L6TheHostDoesNotWaitForMemoryBehindAClosedGate) {
    two_halves all;
    try {
        const test::stuck_host stuck(
            [&] { all.held.open(); });  // ends a wait, so that the test fails and does not hang
        doubles(4 * mib, all.first);
        FAIL() << "all memory is behind a closed gate";
    } catch (const out_of_memory& error) {
        const std::string text = error.what();
        EXPECT_NE(text.find("4194304 bytes wanted"), std::string::npos) << text;
        EXPECT_NE(text.find("Pending memory is behind a gate (" __FILE__ ":"), std::string::npos) << text;
    }
    all.held.open();
    EXPECT_EQ(doubles(4 * mib, all.first).nbytes(), 4 * mib) << "nothing was lost";
}

WEIR_CONFORMANCE(L1Allocation, L6MemoryBehindAClosedGateIsPassedOverForMemoryThatWillBeFree) {
    const std::size_t before = memory::stats(here()).limit;
    const stream gated(here());
    const stream free(here());
    const stream other(here());
    begin_with_an_empty_pool();
    const memory::statistics now = memory::stats(here());
    memory::limit(here(), now.live + now.pending + now.cached + 8 * mib);
    gate closed;
    {
        array a = doubles(2 * mib, gated);
        array b = doubles(2 * mib, other);
        array c = doubles(2 * mib, free);
        array d = doubles(2 * mib, other);
        closed.hold(gated);
        fill(gated, a, 1);
        fill(other, b, 1);
        fill(free, c, 1);
        fill(other, d, 1);
    }
    // Not out of memory, though the oldest pending memory is behind the gate: the two in the middle merge once their uses are complete.
    EXPECT_EQ(doubles(4 * mib, free).nbytes(), 4 * mib);
    EXPECT_FALSE(gated.done());
    closed.open();
    memory::limit(here(), before);
}

}  // namespace
}  // namespace weir
