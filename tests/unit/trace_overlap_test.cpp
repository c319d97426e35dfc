// Streams that execute at once, as a trace shows them: on a simulated accelerator under the virtual clock, by the log.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "support/scratch_folder.hpp"
#include "trace/log_reader.hpp"
#include "trace/perfetto_writer.hpp"
#include "weir/launch.hpp"
#include "weir/testing.hpp"
#include "weir/trace.hpp"

namespace weir {
namespace {

constexpr int streams = 6;
constexpr int operations = 8;

/// A trace of six independent streams on sim:0 with a number of engines.
class TraceOverlap : public ::testing::TestWithParam<int> {
protected:
    TraceOverlap() {
        trace_scope trace(file());
        const testing::simulated device(sim(0), {.engines = GetParam(), .seed = 5, .virtual_clock = true});
        std::vector<stream> made;
        std::vector<array> arrays;
        for (int i = 0; i < streams; ++i) {
            made.emplace_back(sim(0));
            arrays.push_back(empty(64, dtype::float32, made.back()));
        }
        for (int k = 0; k < operations; ++k) {
            for (std::size_t i = 0; i < streams; ++i) {
                parallel_for(
                    made[i], arrays[i].size(), [](auto at, auto to) { to[at] = 1; }, out(arrays[i].view<float>()));
            }
        }
        sim(0).synchronize();
        arrays.clear();
        trace.close();
    }

    [[nodiscard]] trace::log logged() const {
        std::ifstream from(file());
        return trace::read_log(from);
    }

    [[nodiscard]] std::vector<trace::execution> executions() const {
        const trace::log log = logged();
        std::vector<trace::execution> found;
        for (const trace::record& one : log.records) {
            if (const auto* ran = std::get_if<trace::execution>(&one.what)) {
                found.push_back(*ran);
            }
        }
        return found;
    }

private:
    [[nodiscard]] std::filesystem::path file() const { return folder_ / "a.weirlog"; }

    test::scratch_folder folder_;
};

TEST_P(TraceOverlap, V2_the_log_says_that_the_clock_is_virtual) {
    for (const trace::execution& one : executions()) {
        EXPECT_EQ(one.by, trace::clock_kind::virtual_time);
    }
}

TEST(TraceClock, V2_the_same_device_has_a_virtual_clock_for_a_time) {
    const test::scratch_folder folder;
    const std::filesystem::path file = folder / "clocks.weirlog";
    {
        const stream s(sim(0));
        const stream other(cpu());
        const trace_scope trace(file);
        const auto both = [&] {
            parallel_for(s, 1, [](std::size_t) {});
            parallel_for(other, 1, [](std::size_t) {});
            s.synchronize();
            other.synchronize();
        };
        both();
        {
            const testing::simulated device(sim(0), {.virtual_clock = true});
            both();
        }
        both();
    }
    std::ifstream from(file);
    const trace::log log = trace::read_log(from);
    std::map<std::uint64_t, std::string> clocks;
    for (const trace::record& one : log.records) {
        if (const auto* ran = std::get_if<trace::execution>(&one.what)) {
            clocks[ran->at.stream] += ran->by == trace::clock_kind::virtual_time ? 'v' : 's';
        }
    }
    std::multiset<std::string> seen;
    for (const auto& [of, clock] : clocks) {
        seen.insert(clock);
    }
    EXPECT_EQ(seen, (std::multiset<std::string>{"sss", "svs"}));
}

TEST_P(TraceOverlap, V2_the_log_shows_as_many_streams_at_once_as_there_are_engines) {
    const std::vector<trace::execution> all = executions();
    ASSERT_EQ(all.size(), static_cast<std::size_t>(streams * operations));
    std::size_t most = 0;
    for (const trace::execution& one : all) {
        std::set<std::uint64_t> at_once;
        for (const trace::execution& other : all) {
            if (other.start <= one.start && one.start < other.end) {
                at_once.insert(other.at.stream);
            }
        }
        most = std::max(most, at_once.size());
    }
    EXPECT_EQ(most, static_cast<std::size_t>(GetParam()));
}

TEST_P(TraceOverlap, V2_perfetto_gets_the_memory_by_the_clock_of_the_device) {
    // The host's records take no time, however slow it was: only the device's clock is left.
    trace::log log = logged();
    std::chrono::nanoseconds start = std::chrono::nanoseconds::max();
    for (const trace::execution& one : executions()) {
        start = std::min(start, one.start);
    }
    for (trace::record& one : log.records) {
        one.when = start;
    }
    std::stringstream written;
    trace::write_perfetto(written, log);
    const auto events = nlohmann::json::parse(written)["traceEvents"];
    double first = 1e300;
    double last = 0;
    std::vector<double> memory;
    for (const auto& event : events) {
        if (event["ph"] == "X") {
            first = std::min(first, event["ts"].get<double>());
            last = std::max(last, event["ts"].get<double>() + event["dur"].get<double>());
        } else if (event["ph"] == "C") {
            memory.push_back(event["ts"].get<double>());
        }
    }
    ASSERT_EQ(memory.size(), 2U * streams);
    EXPECT_NEAR(memory.front(), first, 0.01);
    EXPECT_NEAR(memory.back(), last, 0.01) << "dropped once all was over";
}

// Four engines: at least three streams at once. One engine is the control: the same program, never two.
INSTANTIATE_TEST_SUITE_P(Engines, TraceOverlap, ::testing::Values(1, 4), ::testing::PrintToStringParamName());

}  // namespace
}  // namespace weir
