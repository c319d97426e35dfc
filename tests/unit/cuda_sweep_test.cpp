// Every call of the driver that a program makes fails once, each in a process of its own: the program ends, reports what it could
// not do, computes nothing wrong and leaves nothing behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "array/kernel_code.hpp"
#include "memory/device_memory.hpp"
#include "runtime/lifetime/reaper.hpp"
#include "unit/cuda_support.hpp"
#include "unit/cuda_sweep_programs.hpp"
#include "unit/fork_support.hpp"

namespace weir::test {
namespace {

constexpr int refused = 1;
constexpr int out_of_room = 2;
constexpr int trapped = 719;
constexpr std::array sticky = {trapped, 700, 214};

constexpr std::array counted = {fake_thing::streams, fake_thing::allocations,    fake_thing::pinned_allocations,
                                fake_thing::modules, fake_thing::address_ranges, fake_thing::created_memory,
                                fake_thing::events};
constexpr std::array names_of_counted = {
    "streams", "allocations", "pinned allocations", "modules", "address ranges", "created memory", "events"};
using counts = std::array<std::size_t, counted.size()>;

struct program {
    bool (*run)();
    counts keeps;  ///< when it is over: Weir's own streams, and memory for copies and kernels, stay for ever
    void (*prepare)() = [] {};
};

// --- a child -------------------------------------------------------------------------------------------------------

struct failure {
    std::string function;
    unsigned long long nth = 0;
    int error = 0;
    [[nodiscard]] bool is_sticky() const { return std::find(sticky.begin(), sticky.end(), error) != sticky.end(); }
    [[nodiscard]] std::string text() const {
        return "call " + std::to_string(nth) + " of " + function + " fails with " + std::to_string(error);
    }
};

counts count_now() {
    counts now{};
    std::transform(counted.begin(), counted.end(), now.begin(), [](fake_thing each) { return fake_cuda::live(each); });
    for (runtime::device_state* const each : runtime::cuda_devices_in_use()) {
        const gpu::device_context& in = gpu::context_of(each->driver());
        now.back() -= in.events.size() + in.timed_events.size();  // those are used again
    }
    return now;
}

bool waits_until(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    while (!condition()) {
        if (std::chrono::steady_clock::now() > end) {
            return false;
        }
        std::this_thread::yield();
    }
    return true;
}

std::vector<device> in_use() {
    std::vector<device> all{cpu()};
    for (runtime::device_state* const each : runtime::cuda_devices_in_use()) {
        all.emplace_back(detail::key, *each);
    }
    return all;
}

/// Synchronises until no more errors are reported.
void settle() {
    for (const device& each : in_use()) {
        for (int told = 0; told < 100; ++told) {
            try {
                each.synchronize();
                break;
            } catch (const error&) {
                // one more error
            }
        }
    }
}

/// Gives back everything that is kept for later use.
void give_back() {
    runtime::reaper::wait_until_empty();
    for (const device& each : in_use()) {
        memory::trim(each);
        if (memory::pool* const shared = each.state(detail::key).shared_pool.load()) {
            shared->source().await_given_back();
        }
    }
}

/// What is left when a program is over and has given back what it kept. Returns as soon as that is at most `wanted`, or after some time.
counts left_behind(const counts& wanted) {
    const auto is_all = [&wanted] {
        const counts now = count_now();
        return std::equal(now.begin(), now.end(), wanted.begin(), std::less_equal<>());
    };
    for (int tries = 0; tries < 3 && !is_all(); ++tries) {
        give_back();
        waits_until(is_all);
    }
    return count_now();
}

/// Whether the function gives something back, so that its failure leaves that with the driver.
bool is_kept_by_the_driver(std::string_view function) {
    constexpr std::array gives_back = {"cuStreamDestroy_v2", "cuEventDestroy_v2", "cuMemFree_v2",
                                       "cuMemFreeAsync",     "cuMemFreeHost",     "cuMemUnmap",
                                       "cuMemAddressFree",   "cuMemRelease",      "cuModuleUnload",
                                       "cuMemPoolTrimTo",    "cuCtxSetCurrent",   "cuCtxGetCurrent"};
    return std::find(gives_back.begin(), gives_back.end(), function) != gives_back.end();
}

/// What a parent learns from a child.
struct report {
    std::map<std::string, unsigned long long> calls;
    std::string wrong;
};

class writer {
public:
    explicit writer(int to) : to_(to) {}
    void line(const std::string& text) const {
        const std::string all = text + "\n";
        if (::write(to_, all.data(), all.size()) < 0) {
            ::_exit(99);
        }
    }

private:
    int to_;
};

/// The name that messages have for a function.
std::string told_as(std::string name) {
    const std::size_t end = name.find("_v2");
    return end == std::string::npos ? name : name.substr(0, end);
}

/// Runs the program while a call fails. Returns what is wrong about it.
std::string run_with(const program& what, const failure* one) {
    std::string wrong;
    what.prepare();
    fake_cuda::forget_calls();
    if (one != nullptr && one->is_sticky()) {
        fake_cuda::break_at(one->function.c_str(), one->nth, one->error);
    } else if (one != nullptr) {
        fake_cuda::fail(one->function.c_str(), one->nth, one->error);
    }
    try {
        if (!what.run()) {
            wrong += " a wrong result, and no error;";
        }
    } catch (const error& told) {
        const std::string message = told.what();
        if (one == nullptr) {
            return " failed: " + message;
        }
        // If a thread could not set the context, its next call reports that; a library's with a status of its own.
        const bool says_why = message.find(told_as(one->function)) != std::string::npos ||
                              message.find("CUDA_ERROR_INVALID_CONTEXT") != std::string::npos ||
                              (one->function == "cuCtxSetCurrent" && message.find("cufftExec") != std::string::npos) ||
                              message.find("out of memory") != std::string::npos ||
                              (one->is_sticky() && message.find("An earlier kernel failed") != std::string::npos);
        if (!says_why) {
            wrong += " a message that does not name the call: \"" + message + "\";";
        }
    } catch (const std::exception& other) {
        return wrong + " not an error of Weir's: " + other.what();
    }
    return wrong;
}

[[noreturn]] void child(const program& what, const failure* one, const writer& to) {
    ::alarm(30);
    std::string wrong = run_with(what, one);
    const bool is_sticky = one != nullptr && one->is_sticky();
    counts most = what.keeps;
    if (one != nullptr && is_kept_by_the_driver(one->function)) {
        std::for_each(most.begin(), most.end(), [](std::size_t& each) { ++each; });
    }
    if (!is_sticky) {
        // Giving back is part of the program.
        settle();
        waits_until([&most] { return fake_cuda::live(fake_thing::streams) <= most[0]; });
        give_back();
    }
    for (const std::string& name : fake_cuda::called()) {
        to.line("call " + name + " " + std::to_string(fake_cuda::calls(name.c_str())));
    }
    fake_cuda::fail_no_more();
    if (!is_sticky) {
        settle();
        try {
            if (!what.run()) {
                wrong += " the next time the result is wrong;";
            }
        } catch (const error& told) {
            const std::string message = told.what();
            const bool is_for_good = message.find("does not start") != std::string::npos;
            wrong += is_for_good ? "" : " the next time it fails: " + message + ";";
        }
        settle();
        const counts left = left_behind(most);
        for (std::size_t i = 0; i < left.size(); ++i) {
            if (left[i] > most[i]) {
                wrong += " leaves " + std::to_string(left[i]) + " " + names_of_counted[i] + ", not " +
                         std::to_string(what.keeps[i]) + ";";
            }
        }
    }
    if (!wrong.empty()) {
        to.line("wrong" + wrong);
    }
    to.line("over");
    std::exit(0);
}

/// A child that runs a program.
struct started {
    failure one;
    pid_t id = 0;
    int from = 0;
};

started start(const program& what, const failure* one) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) {
        throw std::runtime_error("no pipe");
    }
    std::fflush(nullptr);
    const pid_t id = ::fork();
    if (id == 0) {
        ::close(ends[0]);
        child(what, one, writer(ends[1]));
    }
    ::close(ends[1]);
    return {one != nullptr ? *one : failure(), id, ends[0]};
}

/// Waits for its end.
report outcome_of(const started& one) {
    std::string all;
    std::array<char, 4096> part{};
    for (ssize_t n = 0; (n = ::read(one.from, part.data(), part.size())) > 0;) {
        all.append(part.data(), static_cast<std::size_t>(n));
    }
    ::close(one.from);
    int status = 0;
    ::waitpid(one.id, &status, 0);
    report got;
    bool is_over = false;
    for (std::size_t at = 0, end = 0; (end = all.find('\n', at)) != std::string::npos; at = end + 1) {
        const std::string line = all.substr(at, end - at);
        const std::size_t last = line.rfind(' ');
        if (line.rfind("call ", 0) == 0) {
            got.calls[line.substr(5, last - 5)] = std::stoull(line.substr(last + 1));
        } else if (line.rfind("wrong", 0) == 0) {
            got.wrong = line.substr(5);
        } else {
            is_over = line == "over";
        }
    }
    if (!is_over || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        got.wrong += WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM
                         ? " it hangs"
                         : " it ended with status " + std::to_string(status) + (is_over ? " at its exit" : "");
    }
    return got;
}

// --- the sweep -----------------------------------------------------------------------------------------------------

/// How often these functions are called depends on timing: their first few calls stand for all.
constexpr unsigned long long most_times = 4;
bool is_asked_again_and_again(std::string_view function) {
    constexpr std::array asked = {
        "cuEventQuery",    "cuEventSynchronize", "cuStreamQuery", "cuThreadExchangeStreamCaptureMode",
        "cuCtxGetCurrent", "cuCtxSetCurrent",    "cuEventRecord"};
    return std::find(asked.begin(), asked.end(), function) != asked.end();
}

/// Children at the same time: most of the time they wait for the watcher.
constexpr std::size_t most_at_once = 8;

class CudaEachCall : public ::testing::Test {
protected:
    void SetUp() override {
        if (!fake_cuda::in_use()) {
            GTEST_SKIP() << "needs a driver that fails when it is told to";
        }
    }
    static void expect_sound(const program& what) {
        // Everything that exists once for the process: streams of each device, and chunks of memory for copies.
        const report clean = outcome_of(start(what, nullptr));
        ASSERT_EQ(clean.wrong, "");
        std::size_t positions = 0;
        std::deque<started> running;
        const auto end_one = [&running] {
            const report got = outcome_of(running.front());
            EXPECT_EQ(got.wrong, "") << running.front().one.text();
            running.pop_front();
        };
        for (const auto& [function, times] : clean.calls) {
            const unsigned long long last = is_asked_again_and_again(function) ? std::min(times, most_times) : times;
            for (unsigned long long nth = 1; nth <= last; ++nth, ++positions) {
                for (const int error : {refused, out_of_room, sticky[positions % sticky.size()]}) {
                    if (running.size() == most_at_once) {
                        end_one();
                    }
                    const failure one{function, nth, error};
                    running.push_back(start(what, &one));
                }
            }
        }
        while (!running.empty()) {
            end_one();
        }
        std::printf("%zu positions in %zu functions\n", positions, clean.calls.size());
    }
};

TEST_F(CudaEachCall, FailsOnceInAProgramThatUsesThePool) {
    expect_sound({sweep::uses_the_pool, {1, 0, 2, 4, 0, 0, 0}});
}
TEST_F(CudaEachCall, FailsOnceInAProgramThatUsesTheDriversPool) {
    expect_sound({sweep::uses_the_drivers_pool, {1, 0, 2, 2, 0, 0, 0}});
}
TEST_F(CudaEachCall, FailsOnceInAProgramThatUsesPinnedAndManagedMemory) {
    expect_sound({sweep::uses_memory_of_both, {1, 0, 0, 2, 0, 0, 0}});
}
TEST_F(CudaEachCall, FailsOnceInAProgramThatUsesStreamsOfOthers) {
    expect_sound({sweep::uses_streams_of_others, {2, 0, 2, 2, 0, 0, 0}, sweep::makes_a_stream_of_others});
}
TEST_F(CudaEachCall, FailsOnceInAProgramThatUsesTwoDevices) {
    expect_sound({sweep::uses_two_devices, {2, 0, 4, 2, 0, 0, 0}});
}
TEST_F(CudaEachCall, FailsOnceInAProgramThatTransforms) { expect_sound({sweep::transforms, {1, 0, 2, 2, 0, 0, 0}}); }
TEST_F(CudaEachCall, FailsOnceInAProgramThatLoadsKernels) {
    expect_sound({sweep::loads_kernels, {1, 0, 2, 1, 0, 0, 0}});
}

}  // namespace
}  // namespace weir::test
