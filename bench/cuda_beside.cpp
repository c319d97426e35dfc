// What launches by hand cost beside other work of the same thread: which part of Weir's price is the work itself, and which part is that
// code and data are no longer in the caches after a call of the driver.
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "code_lines.hpp"
#include "contest.hpp"
#include "cuda_device.hpp"

namespace weir::bench {

namespace {

/// Fewer than the driver takes before it blocks.
constexpr std::size_t launches = 500;

struct setting : launch_setting {
    raw_stream r2{*in};
    raw_event e1{*in};
    raw_event e2{*in};
    std::atomic<std::size_t> counter{0};
    std::array<char, std::size_t{40} * 64> lines{};
    std::array<std::uint64_t, 8> numbers{};
};

/// Launches by hand with `work(setting)` before each; or only that work.
template <class Work>
make_contestant contestant_of(const char* name, bool launching, Work work) {
    return [=] {
        const auto with = std::make_shared<setting>();
        const auto settle = [with] { with->synchronize(); };
        const auto turn = [with, work, launching] {
            for (std::size_t i = 0; i < launches; ++i) {
                work(*with);
                if (launching) {
                    with->r1.launch(with->empty_kernel, {&with->address});
                }
            }
        };
        return contestant{name, launches, turn, settle, settle};
    };
}

/// Launches by hand on two streams in turn, each of which waits for the other, with `work(setting)` before each launch.
template <class Work>
make_contestant in_turn(const char* name, Work work) {
    return [=] {
        const auto with = std::make_shared<setting>();
        const auto settle = [with] {
            with->synchronize();
            with->r2.synchronize();
        };
        const auto launch = [with, work](const raw_stream& on) {
            work(*with);
            on.launch(with->empty_kernel, {&with->address});
        };
        const auto turn = [with, launch] {
            alternate_by_hand(
                launches / 2, with->r1, with->r2, launch, [&]() -> const raw_event& { return with->e1; },
                [&]() -> const raw_event& { return with->e2; });
        };
        return contestant{name, launches, turn, settle, settle};
    };
}

void nothing(const setting& /*with*/) {}

void wait_a_while(const setting& /*with*/) {
    constexpr auto while_away = std::chrono::nanoseconds(100);
    const auto start = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - start < while_away) {
    }
}

void change_atomically(setting& with) {
    constexpr int times = 20;
    for (int i = 0; i < times; ++i) {
        with.counter.fetch_add(1);
    }
}

void write_lines(setting& with) {
    for (std::size_t i = 0; i < with.lines.size(); i += 64) {
        ++with.lines[i];
    }
}

template <std::size_t Lines>
void run_lines(setting& with) {
    run_code_lines<Lines>(with.numbers);
}

template <int Times>
void submit_empty(setting& with) {
    for (int i = 0; i < Times; ++i) {
        detail::submit_work(with.s1, runtime::work_kind::device, detail::native_task{empty_task{}},
                            inout<double>(with.x));
    }
}

const contest beside(
    "cuda/beside", "an empty kernel launched by hand, and what the thread does before each launch",
    comparison::with_peers,
    {contestant_of("nothing", true, nothing), contestant_of("100 ns of waiting", true, wait_a_while),
     contestant_of("that alone", false, wait_a_while), contestant_of("20 atomic changes", true, change_atomically),
     contestant_of("those alone", false, change_atomically), contestant_of("40 lines written", true, write_lines),
     contestant_of("those alone ", false, write_lines), contestant_of("100 lines of code", true, run_lines<100>),
     contestant_of("those alone  ", false, run_lines<100>), contestant_of("200 lines of code", true, run_lines<200>),
     contestant_of("300 lines of code", true, run_lines<300>), contestant_of("those alone   ", false, run_lines<300>),
     contestant_of("1 empty operation of Weir's", true, submit_empty<1>),
     contestant_of("2 of them", true, submit_empty<2>), contestant_of("3 of them", true, submit_empty<3>),
     contestant_of("1 of them alone", false, submit_empty<1>)});

// Weir goes through some 70 lines for such a launch (`./run bench instructions`).
const contest beside_in_turn("cuda/beside_in_turn", "two streams in turn by hand, and code before each launch",
                             comparison::with_first,
                             {in_turn("nothing", nothing), in_turn("35 lines of code", run_lines<35>),
                              in_turn("70 lines of code", run_lines<70>),
                              contestant_of("70 lines of code alone", false, run_lines<70>),
                              in_turn("140 lines of code", run_lines<140>)});

}  // namespace

}  // namespace weir::bench
