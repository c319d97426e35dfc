// Traces of streams of a CUDA device: the times are the device's, and the records state what happened.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "backend/cuda/device/device_context.hpp"
#include "backend/cuda/device/driver.hpp"
#include "runtime/devices/device_state.hpp"
#include "support/arrays.hpp"
#include "support/effort.hpp"
#include "support/evidence.hpp"
#include "support/fake_cuda.hpp"
#include "support/scratch_folder.hpp"
#include "support/time_limit.hpp"
#include "weir/weir.hpp"

namespace weir::test {
namespace {

using ::testing::Each;

/// Adds one, each thread to its element, after it has spun for `ticks` ticks of its clock.
const kernel& add_one() {
    static const auto* const one = new kernel(kernel::from_source(R"(
extern "C" __global__ void add_one(const float* x, float* y, long long ticks) {
    const long long end = clock64() + ticks;
    while (clock64() < end) {
    }
    y[threadIdx.x] = x[threadIdx.x] + 1;
}
)",
                                                                  "add_one"));
    return *one;
}
constexpr std::int64_t threads = 16;
constexpr long long ticks = 100'000;

void add(const on& where, const array& x, array& y, long long spins = ticks) {
    launch(where, add_one(), {1, threads}, in<float>(x), out<float>(y), spins);
}

using moment = std::pair<std::uint64_t, std::uint64_t>;  ///< stream and epoch
struct executed {
    moment at;
    std::int64_t start;
    std::int64_t end;
};

std::vector<nlohmann::json> records(const std::string& log, const std::string& type) {
    std::vector<nlohmann::json> found;
    std::istringstream lines(log);
    for (std::string line; std::getline(lines, line);) {
        auto one = nlohmann::json::parse(line);
        if (one.value("type", "") == type) {
            found.push_back(std::move(one));
        }
    }
    return found;
}
moment moment_of(const nlohmann::json& at) { return {at[0].get<std::uint64_t>(), at[1].get<std::uint64_t>()}; }
std::vector<executed> executions(const std::string& log) {
    std::vector<executed> all;
    for (const auto& one : records(log, "execution")) {
        all.push_back({moment_of(one["at"]), one["start"].get<std::int64_t>(), one["end"].get<std::int64_t>()});
    }
    return all;
}

/// The log with the records of the two executions exchanged: as if `early` had been reported where `late` was, and the reverse.
std::string with_executions_swapped(const std::string& log, const moment& early, const moment& late) {
    // Except the time of the record, with which the line begins.
    const auto told = [&](const moment& at) {
        const auto begin = log.find("\"type\":\"execution\",\"at\":[" + std::to_string(at.first) + "," +
                                    std::to_string(at.second) + "]");
        return std::pair(begin, log.find('\n', begin) - begin);
    };
    const auto [first, first_size] = told(early);
    const auto [second, second_size] = told(late);
    const auto between = first + first_size;
    return log.substr(0, first) + log.substr(second, second_size) + log.substr(between, second - between) +
           log.substr(first, first_size) + log.substr(second + second_size);
}

/// The last comparison of the device's clock with the host's, or a new one.
std::shared_ptr<const backend::cuda::clock_base> base_of_times(bool is_new) {
    backend::cuda::device_context& device = backend::cuda::context_of(cuda().state(detail::key).driver());
    const backend::cuda::in_context here(device);
    return is_new ? device.base({}) : device.base();
}

TEST(TraceCuda, V2_times_of_a_stream_follow_each_other_and_lie_within_the_run) {
    const stream s(cuda(), {0, "gpu"});
    array x = zeros({threads}, dtype::float32, s);
    array y = empty({threads}, dtype::float32, s);
    add(s, x, y);
    s.synchronize();
    constexpr int launches = 5;
    std::string log;
    std::int64_t clocks_differ = 0;
    std::int64_t whole = 0;
    std::int64_t since_last = 0;  // from before the last launch to the end
    for (std::shared_ptr<const backend::cuda::clock_base> base; base == nullptr || base_of_times(false) != base;) {
        // Again if a slow machine let the base get too old. The clocks are compared to within the time that the comparison takes.
        const auto asked = std::chrono::steady_clock::now();
        base = base_of_times(true);
        const auto before = std::chrono::steady_clock::now();
        const noted trace;
        auto last = before;
        for (int i = 0; i < launches; ++i) {
            last = std::chrono::steady_clock::now();
            add(on(s).label("add"), x, y);
        }
        s.synchronize();
        const auto after = std::chrono::steady_clock::now();
        clocks_differ = std::chrono::nanoseconds(before - asked).count();
        whole = std::chrono::nanoseconds(after - before).count();
        since_last = std::chrono::nanoseconds(after - last).count();
        log = trace.text();
    }
    const auto enqueued = records(log, "operation");
    const auto ran = executions(log);
    ASSERT_EQ(enqueued.size(), std::size_t{launches});
    ASSERT_EQ(ran.size(), std::size_t{launches});
    constexpr std::int64_t resolution = 2'000;  // of the device's clock
    for (std::size_t i = 0; i < ran.size(); ++i) {
        EXPECT_EQ(ran[i].at, moment_of(enqueued[i]["at"]));
        EXPECT_GT(ran[i].end, ran[i].start) << "the kernel spins";
        EXPECT_GE(ran[i].start, enqueued[i]["t"].get<std::int64_t>() - clocks_differ - resolution);
        EXPECT_TRUE(i == 0 || ran[i - 1].end <= ran[i].start);
    }
    EXPECT_LE(ran.back().end - ran.front().start, whole + resolution);
    EXPECT_LE(ran.back().end, enqueued.back()["t"].get<std::int64_t>() + since_last + clocks_differ + resolution);
    EXPECT_TRUE(is_proved(audited(log, {}), log));
}

TEST(TraceCuda, V2_an_operation_whose_times_cannot_be_had_runs_without_them) {
    if (!fake_cuda::in_use()) {
        GTEST_SKIP() << "needs a driver that fails when it is told to";
    }
    const stream s(cuda());
    array x = zeros({threads}, dtype::float32, s);
    const noted trace;
    for (const char* const call : {"cuEventCreate", "cuEventRecord", "cuEventSynchronize", "cuEventElapsedTime"}) {
        for (unsigned long long nth = 1; nth <= 4; ++nth) {
            array y = zeros({threads}, dtype::float32, s);
            s.synchronize();
            fake_cuda::fail(call, nth, 2);
            add(s, x, y, 0);
            s.synchronize();
            fake_cuda::fail_no_more();
            EXPECT_THAT(values_of<float>(y), Each(1.0F)) << call << " " << nth;
        }
    }
    const auto all = executions(trace.text()).size();
    EXPECT_GE(all, records(trace.text(), "operation").size() / 2) << "most have times";
}

TEST(TraceCuda, V2_nobody_waits_long_to_compare_the_clocks) {
    if (!fake_cuda::in_use()) {
        GTEST_SKIP() << "needs the gates of the fake driver";
    }
    const time_limit limit(sanitized ? 120 : 10, "a program that compares the clocks where the device does not answer");
    backend::cuda::device_context& device = backend::cuda::context_of(cuda().state(detail::key).driver());
    const backend::cuda::in_context here(device);
    const auto first = device.base();
    EXPECT_EQ(device.base(), first) << "it is new";
    {
        const fake_gate held(device.own_stream());
        EXPECT_EQ(device.base({}), first) << "that stream has got stuck";
    }
    auto later = device.base({});
    for (int i = 0; i < 100 && later == first; ++i) {  // on a busy machine the fake device may be late, too
        later = device.base({});
    }
    EXPECT_NE(later, first);
}

TEST(TraceCuda, V2_waits_are_seen_in_the_times) {
    if (!fake_cuda::in_use()) {
        GTEST_SKIP() << "it holds a stream by the fake driver's controls";
    }
    const stream left(cuda());
    const stream right(cuda());
    array x = zeros({threads}, dtype::float32, left);
    array y = empty({threads}, dtype::float32, left);
    add(left, x, y, 1);  // loads the kernel, which waits for the device
    left.synchronize();
    const noted trace;
    // Whichever thread polls, and whichever stream first: the log reports each operation after those that it waited for.
    for (int i = 0; i < 50; ++i) {
        fake_gate closed(left.handle());
        add(left, x, y, 1);
        add(right, y, x, 1);
        closed.open();
        (i % 2 == 0 ? right : left).synchronize();
    }
    left.synchronize();
    right.synchronize();
    const std::string log = trace.text();
    std::map<moment, executed> told;
    std::map<moment, std::vector<moment>> waits;
    std::size_t checked = 0;
    for (const auto& one : records(log, "operation")) {
        for (const auto& wait : one["waits"]) {
            waits[moment_of(one["at"])].push_back(moment_of(wait["target"]));
        }
    }
    for (const executed& one : executions(log)) {
        for (const moment& target : waits[one.at]) {
            ASSERT_TRUE(told.contains(target))
                << "told too early: stream " << one.at.first << ", epoch " << one.at.second;
            EXPECT_LE(told.at(target).end, one.start);
            ++checked;
        }
        told.emplace(one.at, one);
    }
    EXPECT_GE(checked, 50U);
    EXPECT_TRUE(is_proved(audited(log, {}), log));
    // The verifier refuses a log in which one of them comes too early.
    const auto [late, targets] =
        *std::find_if(waits.rbegin(), waits.rend(), [](const auto& one) { return !one.second.empty(); });
    const std::string swapped = with_executions_swapped(log, targets.front(), late);
    EXPECT_FALSE(is_proved(audited(swapped, {}), swapped));
}

/// The legacy default stream and a blocking one take turns with one array, without explicit waits.
TEST(TraceCuda, S6_order_that_the_driver_makes_is_proved) {
    const stream legacy = stream::adopt(native_stream{nullptr}, cuda());
    const stream blocking(cuda(), {.name = "blocking", .blocking = true});
    array x = zeros({threads}, dtype::float32, legacy);
    add(legacy, x, x, 1);
    cuda().synchronize();
    const noted trace;
    for (int i = 0; i < 5; ++i) {
        add(legacy, x, x);
        add(blocking, x, x);
    }
    blocking.synchronize();
    const std::string log = trace.text();
    for (const auto& one : records(log, "operation")) {
        EXPECT_TRUE(one["waits"].empty()) << one;
    }
    const auto followed = records(log, "stream_wait");
    ASSERT_GE(followed.size(), 9U);
    EXPECT_TRUE(
        std::all_of(followed.begin(), followed.end(), [](const auto& one) { return one["by_device"] == true; }));
    EXPECT_TRUE(is_proved(audited(log, {}), log));
    EXPECT_TRUE(is_proved(audited(log, own_order_only), log)) << "it is the program's own order";
    // Control: without the log's record of the driver's order there is no order.
    std::string silent = log;
    for (std::size_t at = 0; (at = silent.find("\"order\":\"blocking\"", at)) != std::string::npos;) {
        silent.replace(at, 18, "\"other\":\"blocking\"");
    }
    EXPECT_FALSE(is_proved(audited(silent, {}), silent));
}

/// The same where the blocking stream's part is the host's: a copy to memory that the device does not reach. It runs as soon as everything
/// before it is complete, and is reported at once.
TEST(TraceCuda, S6_work_of_the_host_in_an_order_that_the_driver_makes_is_told_after_what_it_follows) {
    const stream legacy = stream::adopt(native_stream{nullptr}, cuda());
    const stream blocking = stream::adopt(native_stream{reinterpret_cast<void*>(2)}, cuda());
    array z = zeros({threads}, dtype::float32, blocking);  // polled first
    array x = zeros({threads}, dtype::float32, legacy);
    array y = empty({threads}, dtype::float32, stream(cpu()));
    add(legacy, x, x, 1);
    cuda().synchronize();
    const noted trace;
    for (int i = 0; i < 20; ++i) {
        add(legacy, x, x, 1);
        copy(blocking, y, x);
    }
    EXPECT_THAT(values_of<float>(y), Each(21.0F));
    const std::string log = trace.text();
    EXPECT_TRUE(is_proved(audited(log, {}), log));
    // The verifier refuses a log in which one of them comes too early.
    const auto followed = records(log, "stream_wait");
    ASSERT_GE(followed.size(), 20U);
    const moment before = moment_of(followed.back()["target"]);
    const moment wait = moment_of(followed.back()["at"]);
    const std::string swapped = with_executions_swapped(log, before, {wait.first, wait.second + 1});
    EXPECT_FALSE(is_proved(audited(swapped, {}), swapped));
    std::string silent = log;
    for (std::size_t at = 0; (at = silent.find("\"order\":\"blocking\"", at)) != std::string::npos;) {
        silent.replace(at, 18, "\"other\":\"blocking\"");
    }
    EXPECT_FALSE(is_proved(audited(silent, {}), silent))
        << "without what the log says of the driver's order there is none";
}

/// A wait of the program's that the driver performs; behind it there is only the host, which waits for that alone.
TEST(TraceCuda, V2_what_a_stream_waited_for_is_told_before_the_host_knows_that_the_wait_is_over) {
    const stream left(cuda());
    const stream right(cuda());
    array x = zeros({threads}, dtype::float32, left);
    add(left, x, x, 1);  // loads the kernel, which waits for the device
    left.synchronize();
    const noted trace;
    for (int i = 0; i < 50; ++i) {
        add(left, x, x);
        right.wait(left);
        right.synchronize();
    }
    const std::string log = trace.text();
    std::size_t told = 0;
    std::size_t known = 0;
    std::istringstream lines(log);
    for (std::string line; std::getline(lines, line);) {
        if (line.find("\"type\":\"execution\"") != std::string::npos) {
            ++told;
        }
        if (line.find("\"type\":\"host_wait\"") != std::string::npos) {
            ++known;
            EXPECT_GE(told, known);
        }
    }
    EXPECT_EQ(known, 50U);
    EXPECT_TRUE(is_proved(audited(log, {}), log));
}

TEST(TraceCuda, V2_perfetto_and_the_page_show_what_the_log_has) {
    const scratch_folder folder;
    {
        const trace_scope trace({folder / "a.weirlog", folder / "a.json", folder / "a.html"});
        const stream s(cuda(), {0, "gpu"});
        array x = zeros({threads}, dtype::float32, s);
        add(on(s).label("spin"), x, x);
        s.synchronize();
    }
    const auto text_of = [&](const char* name) {
        std::ostringstream text;
        text << std::ifstream(folder / name).rdbuf();
        return text.str();
    };
    const std::string log = text_of("a.weirlog");
    const auto ran = executions(log);
    ASSERT_EQ(ran.size(), 2U) << "zeros and the launch";
    const nlohmann::json perfetto = nlohmann::json::parse(text_of("a.json"));
    std::size_t shown = 0;
    for (const auto& event : perfetto["traceEvents"]) {
        if (event["ph"] == "X" && event["name"] == "spin") {
            ++shown;
            EXPECT_NEAR(event["ts"].get<double>(), std::max(static_cast<double>(ran.back().start) / 1e3, 0.0), 1.1e-3);
            EXPECT_NEAR(event["dur"].get<double>(), static_cast<double>(ran.back().end - ran.back().start) / 1e3,
                        1.1e-3);
            EXPECT_GT(event["dur"].get<double>(), 0);
        }
    }
    EXPECT_EQ(shown, 1U);
    const std::string page = text_of("a.html");
    EXPECT_NE(page.find(records(log, "execution").back()["start"].dump()), std::string::npos)
        << "the page holds the log";
    EXPECT_NE(page.find("\"device\":\"cuda:0\""), std::string::npos);
}

}  // namespace
}  // namespace weir::test
