// Out of memory at any allocation of a program (rule L6): every function of the core is called with each of its allocations
// failing in turn. It throws std::bad_alloc or out_of_memory, or succeeds without the memory; then everything that existed still works,
// a second call gives the right result, and nothing has leaked.
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <complex>
#include <cstdio>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "runtime/lifetime/reaper.hpp"
#include "runtime/streams/stream_registry.hpp"
#include "support/frugal_queue.hpp"
#include "support/scarce_memory.hpp"
#include "support/scratch_folder.hpp"
#include "support/stuck_host.hpp"
#include "support/time_limit.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

constexpr std::int64_t n = 600;

/// A result is wrong. Not out of memory: fails the test.
class wrong : public std::logic_error {
    using std::logic_error::logic_error;
};

void expect(bool right, const char* what) {
    if (!right) {
        throw wrong(what);
    }
}

/// The objects that the calls use. They live through all failures of one step.
struct world {
    stream a;
    stream b;
    array x = zeros(n, dtype::float64, a);
    array y = zeros(n, dtype::float64, b);
    array c = zeros(64, dtype::complex128, a);
    event recorded;
    /// How often wrapped memory was released. The threads that release it may outlive this.
    std::shared_ptr<std::atomic<std::size_t>> lent = std::make_shared<std::atomic<std::size_t>>(0);
    std::shared_ptr<test::frugal_queue> of_others = std::make_shared<test::frugal_queue>();

    void expect_all(const array& of, double value) const {
        const auto elements = of.read<double>();
        expect(std::all_of(elements.begin(), elements.end(), [&](double one) { return one == value; }), "a value");
    }
};

struct step {
    const char* name;
    void (*run)(world&);
    friend std::ostream& operator<<(std::ostream& to, const step& one) { return to << one.name; }
};

void add_one(const on& where, array& to) {
    parallel_for(
        where, to.size(), [](auto i, auto out) { out[i] += 1; }, inout(to.view<double>()));
}

const step steps[] = {
    {"stream_made_used_and_dropped",
     [](world& w) {
         const stream s(w.a.device(), {.priority = 1, .name = "a stream whose name is longer than what fits in place"});
         fill(s, w.x, 1);
         w.expect_all(w.x, 1);
         expect(!s.to_string().empty() && !s.name().empty(), "a name");
         stream copy = s;
         copy.close();
     }},
    {"current_stream",
     [](world& w) {
         const use scope(w.b);
         expect(current_stream(w.b.device()).unique_id() == w.b.unique_id(), "the current stream");
     }},
    {"event_recorded_and_waited_for",
     [](world& w) {
         fill(w.a, w.x, 2);
         const event made = w.a.record();
         w.recorded.record(w.a);
         w.b.wait(made);
         made.wait(w.b);
         made.wait();
         w.recorded.synchronize();
         expect(w.recorded.done(), "an event");
         expect(w.recorded.recorded().epoch(detail::key) != 0, "a moment");
     }},
    {"event_of_an_operation",
     [](world& w) {
         const event end = fill(w.a, w.x, 2);
         w.b.wait(end);
         end.wait();
     }},
    {"stream_waits_for_stream_and_operation",
     [](world& w) {
         const completion end = fill(w.a, w.x, 3);
         w.b.wait(w.a);
         w.b.wait(end);
         end.synchronize();
         w.b.synchronize();
         expect(w.b.done() && end.done(), "an end");
     }},
    {"device_synchronize",
     [](world& w) {
         fill(w.a, w.x, 1);
         w.a.device().synchronize();
         expect(!devices().empty() && device::from_name("cpu").name() == "cpu", "a device");
     }},
    {"gate",
     [](world& w) {
         testing::gate held;
         held.hold(w.a);
         fill(w.a, w.x, 4);
         expect(!w.x.ready(), "a gate");
         held.open();
         w.expect_all(w.x, 4);
     }},
    {"gate_that_delays_another_stream",
     [](world& w) {
         testing::gate held;
         fill(w.a, w.x, 1);
         held.hold(w.a);
         fill(w.a, w.x, 5);
         const completion copied = copy(w.b, w.y, w.x);
         add_one(w.a, w.x);
         held.open();
         copied.synchronize();
         w.expect_all(w.y, 5);
         w.expect_all(w.x, 6);
     }},
    {"arrays_made",
     [](world& w) {
         array e = empty({3, 5}, dtype::float32, w.a);
         array z = zeros({2, 2, 2}, dtype::complex64, w.a);
         array f = full(n, 7, dtype::float64, w.b);
         array part = f.slice(10, 20).reshape({2, 5});
         expect(!e.to_string().empty() && z.size() == 8, "an array");
         const auto elements = part.read<double>();
         expect(elements[9] == 7, "an element");
         array large = full(100'000, 1, dtype::float64, w.a);
         w.expect_all(large, 1);
     }},
    {"written_by_the_host",
     [](world& w) {
         fill(w.a, w.x, 1);
         {
             const auto elements = w.x.write<double>();
             std::fill(elements.begin(), elements.end(), 8.0);
             // Conflicts with the view: over before the call returns.
             const completion read = copy(w.b, w.y, w.x);
             expect(read.done(), "an operation beside a view");
         }
         w.expect_all(w.y, 8);
     }},
    {"copied_from_the_host",
     [](world& w) {
         std::array<double, n> source;
         source.fill(9);
         copy_from_host(w.a, w.x, std::as_bytes(std::span(source)));
         source.fill(0);
         w.expect_all(w.x, 9);
     }},
    {"labels_and_after",
     [](world& w) {
         const event end = fill(on(w.a).label("first"), w.x, 1);
         add_one(on(w.b).label("second").after(end).after(w.recorded), w.x);
         w.expect_all(w.x, 2);
     }},
    {"many_operands",
     [](world& w) {
         const auto part = [&](std::int64_t i) { return inout(w.x.slice(10 * i, 10 * i + 10).view<double>()); };
         const auto chunk = [&](std::int64_t i) { return in(w.y.slice(10 * i, 10 * i + 10).view<double>()); };
         fill(w.b, w.y, 2);
         fill(w.a, w.x, 1);
         parallel_for(
             w.a, 10,
             [](auto i, auto p, auto q, auto r, auto s, auto t, auto u, auto v, auto e, auto f) {
                 p[i] = q[i] = r[i] = s[i] = t[i] += u[i] * v[i] * e[i] * f[i];
             },
             part(0), part(1), part(2), part(3), part(4), chunk(0), chunk(1), chunk(2), chunk(3));
         const auto elements = w.x.slice(0, 10).read<double>();
         expect(elements[9] == 17, "a sum");
     }},
    {"a_large_body",
     [](world& w) {
         std::array<double, 200> table;
         table.fill(3);
         parallel_for(
             w.a, n, [table](auto i, auto out) { out[i] = table[i % 200]; }, out(w.x.view<double>()));
         w.expect_all(w.x, 3);
     }},
    {"access_and_host_task",
     [](world& w) {
         access(
             w.a, [](native_stream, std::span<double> span) { std::fill(span.begin(), span.end(), 3.0); },
             out(w.x.view<double>()));
         const auto seen = std::make_shared<double>(0);
         host_task(
             w.b, [seen](std::span<const double> span) { *seen = span[n - 1]; }, in(w.x.view<double>()))
             .synchronize();
         expect(*seen == 3, "a host task");
     }},
    {"kept_alive",
     [](world& w) {
         testing::gate held;
         held.hold(w.a);
         auto object = std::make_shared<int>(1);
         const std::weak_ptr<int> watched = object;
         const completion end = fill(w.a, w.x, 1);
         keep_alive(end, std::move(object), w.y);
         expect(!watched.expired(), "a kept object");
         held.open();
         end.synchronize();
     }},
    {"wrapped",
     [](world& w) {
         // Shares ownership of the memory: after a failure the operation may still be about to run.
         const auto memory = std::make_shared<std::array<double, 64>>();
         const std::size_t others = *w.lent;
         {
             array of_others(
                 buffer::wrap(memory->data(), sizeof(*memory), cpu(), [lent = w.lent, kept = memory] { ++*lent; }),
                 dtype::float64, 64);
             const stream s;
             fill(s, of_others, 6);
             w.expect_all(of_others, 6);
         }
         runtime::reaper::wait_until_empty();
         expect(*w.lent > others && (*memory)[63] == 6, "wrapped memory");
     }},
    {"manual_ordering",
     [](world& w) {
         const ordering_scope scope(ordering_mode::manual);
         fill(w.a, w.x, 1).synchronize();
         const event end = fill(w.a, w.x, 2);
         w.b.wait(end);
         copy(w.b, w.y, w.x);
         w.a.set_ordering(ordering_mode::automatic);
         w.x.set_ordering(ordering_mode::automatic);
         w.x.set_ordering(std::nullopt);
         w.a.set_ordering(std::nullopt);
         end.synchronize();
         w.b.synchronize();
         w.expect_all(w.y, 2);
     }},
    {"transforms",
     [](world& w) {
         fill(w.a, w.c, 1);
         array spectrum = fft::fft(w.b, w.c);
         array back = fft::ifft(w.a, spectrum);
         expect(std::abs(back.read<std::complex<double>>()[63] - 1.0) < 1e-12, "a transform");
         fill(w.a, w.x, 1);
         array real = fft::irfft(w.b, fft::rfft(w.a, w.x));
         expect(std::abs(real.read<double>()[n - 1] - 1.0) < 1e-12, "a real transform");
     }},
    {"transforms_planned",
     [](world& w) {
         fill(w.a, w.c, 2);
         fft_plan plan(w.c);
         plan.plan(w.a);
         array spectrum = plan.execute(w.b, fft_direction::forward);
         plan.reset_operand(spectrum);
         array back = plan.execute(w.a, fft_direction::inverse);
         plan.release_operand();
         expect(std::abs(back.read<std::complex<double>>()[0] - 2.0) < 1e-12, "a transform");
         plan.free();
     }},
    {"checked",
     [](world& w) {
         check_scope scope({.assume_manual = true});
         fill(w.a, w.x, 1);
         copy(w.b, w.y, w.x);
         w.expect_all(w.y, 1);
         static_cast<void>(scope.report().to_string());
         // Not to_json: the destructor of nlohmann::json allocates, which ends the program where there is no memory.
     }},
    {"traced",
     [](world& w) {
         trace_scope trace;
         fill(w.a, w.x, 1);
         copy(w.b, w.y, w.x);
         w.expect_all(w.y, 1);
         static_cast<void>(trace.summary());
     }},
    {"traced_to_a_file",
     [](world& w) {
         static const test::scratch_folder folder;
         trace_scope trace(folder / "a.json");
         fill(w.a, w.x, 1);
         w.a.synchronize();
         trace.close();
     }},
    {"pool",
     [](world& w) {
         static_cast<void>(memory::stats(w.a.device()));
         const buffer one(5000, w.a);
         const buffer same = one;
         expect(one.ready(true) && same.unique_id() == one.unique_id(), "a buffer");
         memory::trim(w.a.device());
     }},
    {"resources",
     [](world& w) {
         std::uint64_t lines = 0;
         const auto counted = memory::counting(memory::failing({.at = 1000}, memory::allocating_stream()));
         const auto logged = memory::logging([&](std::string_view) { ++lines; }, counted);
         {
             const memory::use scope(memory::limiting(1 << 20, logged));
             array made = full(n, 5, dtype::float64, w.a);
             w.expect_all(made, 5);
             const memory::use drivers(memory::driver_pool(), w.a.device());
             array other = full(n, 6, dtype::float64, w.a);
             w.expect_all(other, 6);
         }
         expect(lines == 2 && counted->counts().live.count == 0, "resources");
     }},
    {"an_operation_that_fails",
     [](world& w) {
         array made = zeros(n, dtype::float64, w.a);
         const completion failed = access(
             on(w.a).label("bad"), [](auto...) { throw std::runtime_error("overflow"); }, out(made));
         bool told = false;
         try {
             static_cast<void>(made.read<double>());
         } catch (const operation_error&) {
             told = true;
         }
         expect(told, "a failure");
         try {
             w.a.synchronize();
         } catch (const operation_error&) {
             told = true;
         }
         fill(w.a, w.x, 2);
         w.expect_all(w.x, 2);
     }},
    {"a_queue_of_others",
     [](world& w) {
         const stream theirs = stream::adopt(*w.of_others, w.of_others);
         fill(theirs, w.x, 1);
         const event end = theirs.record();
         w.b.wait(end);
         copy(w.b, w.y, w.x);
         add_one(theirs, w.x);
         w.expect_all(w.y, 1);
         w.expect_all(w.x, 2);
         while (!w.of_others->idle()) {  // then nothing keeps the stream any more: the next round makes a new one
             std::this_thread::yield();
         }
     }},
    {"watched",
     [](world& w) {
         testing::gate held;
         held.hold(w.a);
         fill(w.a, w.x, 1);
         const test::stuck_host waits([&] { held.open(); });
         w.a.synchronize();
         expect(waits.was_stuck(), "a report");
     }},
    {"another_device",
     [](world& w) {
         const stream s(sim(0));
         array there = full(n, 3, dtype::float64, s);
         copy(s, w.x, there);
         w.expect_all(w.x, 3);
     }},
};

/// Blocks until the world's streams are the only ones. A dropped stream is destroyed when the thread that ran its last operation
/// has recorded that, which may be after the end of the operation was reported.
void await_dropped_streams() {
    const test::time_limit all(10, "the end of the streams that were dropped,");
    for (std::size_t left = 0; left != 2;) {
        std::this_thread::yield();
        left = 0;
        runtime::stream_registry::each([&](const runtime::stream_state&) { ++left; });
    }
}

/// The number of allocations once everything is idle.
long settled(const world& w) {
    for (const stream_ref& one : {stream_ref(w.a), stream_ref(w.b)}) {
        while (!one.done()) {
        }
    }
    for (const device& one : devices()) {
        try {
            one.synchronize();
        } catch (const operation_error&) {
            // from the step itself: it ran out of memory, which was not reported yet
        }
    }
    await_dropped_streams();
    runtime::reaper::wait_until_empty();
    memory::trim();  // else the pool would use all of its memory before it merges free blocks
    return test::live_allocations();
}

/// Makes failure number `k` happen in `run`. Returns whether there was one.
using attempt = std::function<bool(long k, const std::function<void()>& run)>;

/// Runs a step with failure number 1, number 2 and so on until there is none, and once without after each.
void sweep(const step& tested, world& w, const attempt& with_failure, long& runs) {
    for (long k = 1;; ++k) {
        runs += 2;
        SCOPED_TRACE("failure " + std::to_string(k));
        ASSERT_LT(k, 5000) << "there is no end to it";
        const test::time_limit both(
            10, std::string(tested.name) + ", or what comes after its failure " + std::to_string(k) + ",");
        std::string thrown;
        const bool failed = with_failure(k, [&] {
            try {
                tested.run(w);
            } catch (const wrong& result) {
                thrown = std::string("a wrong result: ") + result.what();
            } catch (const std::bad_alloc&) {
            } catch (const std::exception& other) {
                thrown = other.what();
            }
        });
        ASSERT_EQ(thrown, "");
        try {
            tested.run(w);
        } catch (const std::exception& harmed) {
            FAIL() << "after the failure: " << harmed.what();
        }
        if (!failed) {
            return;
        }
    }
}

/// Sweeps until two sweeps in a row have left nothing behind. What is kept for later use grows for a while; a leak
/// grows each time.
void expect_nothing_lost(const step& tested, const attempt& with_failure) {
    constexpr int most = 60;
    constexpr int calibration = 50;
    world w;
    const auto run_often = [&] {
        for (int i = 0; i < calibration; ++i) {
            tested.run(w);
        }
        return settled(w);
    };
    // Records of a failed operation are kept for a long time.
    const long warm = run_often();
    const long kept_of_a_run = std::lround(static_cast<double>(run_often() - warm) / calibration);
    const std::size_t live = memory::stats().live;
    int calm = 0;
    std::string growth;
    for (int i = 0; i < most && calm < 2; ++i) {
        const long before = settled(w);
        long runs = 0;
        ASSERT_NO_FATAL_FAILURE(sweep(tested, w, with_failure, runs));
        const long more = settled(w) - before - std::max(0L, kept_of_a_run) * runs;
        growth += " " + std::to_string(more);
        calm = more <= 0 ? calm + 1 : 0;
        ASSERT_EQ(memory::stats().live, live) << "memory of the device leaks";
    }
    EXPECT_EQ(calm, 2) << "memory of the host leaks: each time there were more allocations:" << growth;
}

class L6OutOfMemory : public ::testing::TestWithParam<step> {};
INSTANTIATE_TEST_SUITE_P(Core, L6OutOfMemory, ::testing::ValuesIn(steps),
                         [](const auto& tested) { return std::string(tested.param.name); });

bool fail_on_the_host(long k, const std::function<void()>& run) {
    test::fail_allocation(k);
    run();
    const bool failed = test::allocation_has_failed();
    test::fail_allocation(0);
    return failed;
}

TEST_P(L6OutOfMemory, AtEveryAllocationOfTheHostsNothingIsLost) { expect_nothing_lost(GetParam(), fail_on_the_host); }

TEST_P(L6OutOfMemory, AtEveryAllocationOfADevicesNothingIsLost) {
    expect_nothing_lost(GetParam(), [](long k, const std::function<void()>& run) {
        const auto failing = memory::failing({.at = static_cast<std::uint64_t>(k)});
        const memory::use scope(failing);
        run();
        return failing->failed() != 0;
    });
}

// --- the first use ------------------------------------------------------------------------------------------------

/// Uses the objects that are made at their first use in a process, with allocation number `k` failing; then all of them again. Ends the
/// process: 0 if everything went well, 1 if not, 2 if there was no such allocation.
[[noreturn]] void use_for_the_first_time(long k) {
    const auto program = [] {
        world w;
        for (const step& one : steps) {
            for (const std::string_view wanted :
                 {"kept_alive", "wrapped", "transforms", "another_device", "resources"}) {
                if (one.name == wanted) {
                    one.run(w);
                }
            }
        }
    };
    int result = 0;
    const test::time_limit all(60, "the first use, or what comes after its failure " + std::to_string(k) + ",");
    try {
        test::fail_allocation(k);
        program();
    } catch (const std::bad_alloc&) {
    } catch (...) {
        result = 1;
    }
    if (!test::allocation_has_failed()) {
        result = 2;
    }
    test::fail_allocation(0);
    try {
        program();
    } catch (const std::exception& harmed) {
        std::fprintf(stderr, "after the failure: %s\n", harmed.what());
        result = 1;
    }
    std::exit(result);
}

void expect_nothing_lost_at_the_first_use() {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    bool all_tried = false;
    for (long k = 1; !all_tried; ++k) {
        ASSERT_LT(k, 1000) << "there is no end to it";
        EXPECT_EXIT(
            use_for_the_first_time(k),
            [&](int status) {
                all_tried = WIFEXITED(status) && WEXITSTATUS(status) == 2;
                return all_tried || (WIFEXITED(status) && WEXITSTATUS(status) == 0);
            },
            "")
            << "allocation " << k;
        if (::testing::Test::HasFailure()) {
            return;
        }
    }
}

TEST(L6OutOfMemoryDeathTest, AtTheFirstUseOfEverythingToo) { expect_nothing_lost_at_the_first_use(); }
TEST(L6OutOfMemoryDeathTest, AtTheFirstUseOfACheckedProgramToo) {
    ASSERT_EQ(setenv("WEIR_CHECK", "warn", 1), 0);
    expect_nothing_lost_at_the_first_use();
    unsetenv("WEIR_CHECK");
}

TEST(L6OutOfMemory, OfADeviceThatCannotBeMadeNothingIsLeft) {
    long failures = 0;
    const long live = test::live_allocations();
    for (bool made = false; !made; failures += made ? 0 : 1) {
        test::fail_allocation(failures + 1);
        try {
            static_cast<void>(sim(7));
            made = true;
        } catch (const std::bad_alloc&) {
        }
        test::fail_allocation(0);
        ASSERT_TRUE(made || test::live_allocations() == live) << "allocation " << failures + 1;
        ASSERT_LT(failures, 100) << "there is no end to it";
    }
    EXPECT_GE(failures, 2) << "the driver, and the device";
}

// --- the control --------------------------------------------------------------------------------------------------

[[maybe_unused]] const int* volatile seen =
    nullptr;  ///< an allocation that is not visible may be removed by the compiler

/// A function that leaks something when it runs out of memory.
void forgetful(world& /*w*/) {
    static auto* const forgotten = new std::vector<std::unique_ptr<int>>;  // NOLINT: on purpose
    auto first = std::make_unique<int>(1);
    forgotten->reserve(100);
    try {
        const auto second = std::make_unique<int>(2);
        seen = second.get();
    } catch (...) {
        forgotten->push_back(std::move(first));
        throw;
    }
}

TEST(L6OutOfMemoryControl, WhatIsForgottenIsFound) {
    EXPECT_NONFATAL_FAILURE(expect_nothing_lost({"forgetful", forgetful}, fail_on_the_host),
                            "memory of the host leaks");
}

}  // namespace
}  // namespace weir
