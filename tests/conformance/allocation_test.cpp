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

// Under manual ordering the program says what comes before a read.
WEIR_CONFORMANCE(L1Allocation, O5AReadOfReusedMemoryLeavesAHeldStreamAlone) {
    for (const ordering_mode mode : {ordering_mode::manual, ordering_mode::automatic}) {
        begin_with_an_empty_pool();
        const stream first(here());
        const stream second(here());
        gate held;
        held.hold(first);
        array former = doubles(mib, first);
        fill(first, former, 1);
        const std::byte* const address = former.device_data();
        former = {};
        const array reused = doubles(mib, first);
        ASSERT_EQ(reused.device_data(), address);
        const ordering_scope ordering(mode);
        const array sum = add(second, reused, 2);
        if (mode == ordering_mode::manual) {
            EXPECT_TRUE(gets_over(second.record().recorded())) << "the program named nothing that it waits for";
        } else {
            EXPECT_FALSE(second.done()) << "control: Weir orders it behind the former use";
        }
        held.open();
    }
}

/// A random program on three streams that makes, reads, writes, copies, transforms and drops arrays, few at a time. At a random step one
/// of its streams is held for ever. Under manual ordering the program orders its accesses itself.
class random_program {
public:
    random_program(std::uint64_t seed, ordering_mode mode) : random_(seed), mode_(mode), ordering_(mode) {
        begin_with_an_empty_pool();
    }

    void run() {
        constexpr int steps = 120;
        const int hold_at = number(steps / 2);
        const auto which = static_cast<std::size_t>(number(count));
        for (int step = 0; step < steps; ++step) {
            if (step == hold_at) {
                hold(streams_[which]);
            }
            if (number(8) == 0) {
                memory::trim(here());
            }
            switch (number(6)) {
                case 0:
                    drop();
                    break;
                case 1:
                    use();
                    break;
                case 2:
                    read();
                    break;
                case 3:
                    copy_one();
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
        lane* writer = nullptr;     ///< of its contents
        event written{};            ///< the end of the last write
        bool is_held = false;       ///< the held stream, or one that waits for it, writes it
        bool is_used = false;       ///< the held stream, or one that waits for it, writes or reads it
        std::vector<event> read{};  ///< the ends of the reads since
    };

    int number(int below) { return static_cast<int>(random_() % static_cast<std::uint64_t>(below)); }
    lane& any_stream() { return streams_[static_cast<std::size_t>(number(count))]; }

    /// On some devices the first wait for a stream covers all that is enqueued there: so what the stream did last counts as held.
    void hold(lane& which) {
        held_.hold(which.on);
        which.is_held = true;
        for (owned& each : arrays_) {
            each.is_held = each.is_held || each.writer == &which;
            each.is_used = true;
        }
    }
    /// The stream waits for the last write, or has Weir order it.
    void before_read(const lane& by, const owned& what) const {
        if (mode_ == ordering_mode::manual && what.writer != nullptr) {
            by.on.wait(what.written);
        }
    }
    void before_write(const lane& by, const owned& what) const {
        before_read(by, what);
        if (mode_ == ordering_mode::manual) {
            for (const event& each : what.read) {
                by.on.wait(each);
            }
        }
    }
    static void note_read(lane& by, owned& what) {
        by.is_held = by.is_held || what.is_held;
        what.is_used = what.is_used || by.is_held;
        what.read.push_back(by.on.record());
    }
    static void note_write(lane& by, owned& what) {
        by.is_held = what.is_held = what.is_used = by.is_held || what.is_used;
        what.writer = &by;
        what.written = by.on.record();
        what.read.clear();
    }
    /// From now on each of them waits for what the other one waits for.
    void operate(lane& by, owned& what) {
        before_write(by, what);
        fill(by.on, what.values, 1);
        note_write(by, what);
    }
    /// Whether there is room; else pending work on the held stream would make the program a large one.
    static bool fits(std::size_t bytes, const lane& by) {
        const memory::statistics now = memory::stats(here());
        return now.live + now.pending + bytes <= (by.is_held ? most_live / 2 : most_live);
    }
    void make() {
        lane& by = any_stream();
        const std::size_t bytes = (std::size_t{1} + random_() % 32) * 128 * kib;
        if (!fits(bytes, by)) {
            drop();
            return;
        }
        arrays_.push_back({doubles(bytes, by.on)});
        operate(by, arrays_.back());
    }
    owned* any_array() { return arrays_.empty() ? nullptr : &arrays_[random_() % arrays_.size()]; }
    /// Now and then a stream comes to depend on the held one, but not all of them.
    bool may_meet(bool one_is_held, bool other_is_held) { return one_is_held == other_is_held || number(16) == 0; }
    void use() {
        lane& by = any_stream();
        owned* const what = any_array();
        if (what != nullptr && may_meet(by.is_held, what->is_used)) {
            operate(by, *what);
        }
    }
    /// Sums, or transforms a part; temporaries and the result are dropped while they are in use.
    void read() {
        lane& by = any_stream();
        owned* const what = any_array();
        if (what == nullptr || !may_meet(by.is_held, what->is_held) || !fits(2 * what->values.nbytes(), by)) {
            return;
        }
        before_read(by, *what);
        if (number(2) == 0) {
            static_cast<void>(add(by.on, what->values, multiply(by.on, what->values, 2.0)));
        } else {
            static_cast<void>(fft::ifft(by.on, fft::fft(by.on, what->values[slice{0, 4096}])));
        }
        note_read(by, *what);
    }
    /// A new array from another one.
    void copy_one() {
        lane& by = any_stream();
        owned* const what = any_array();
        if (what == nullptr || !may_meet(by.is_held, what->is_held) || !fits(what->values.nbytes(), by)) {
            return;
        }
        before_read(by, *what);
        owned made{copy(by.on, what->values)};
        note_read(by, *what);
        note_write(by, made);
        arrays_.push_back(std::move(made));
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
    ordering_mode mode_;
    ordering_scope ordering_;
    std::uint64_t over_waited_ = memory::stats(here()).over_waited;
    std::array<lane, count> streams_;
    std::vector<owned> arrays_;
    gate held_;
};

WEIR_CONFORMANCE(L1Allocation, WhatDoesNotDependOnAHeldStreamEnds) {
    for (std::uint64_t seed = 1; seed <= 12 && !::testing::Test::HasFailure(); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        for (const ordering_mode mode : {ordering_mode::automatic, ordering_mode::manual}) {
            SCOPED_TRACE(mode == ordering_mode::manual ? "manual" : "automatic");
            random_program(seed, mode).run();
        }
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
