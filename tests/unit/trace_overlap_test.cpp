// What a trace shows of streams that execute at once: on a simulated accelerator under the virtual clock, by the log.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "trace/log_reader.hpp"
#include "weir/launch.hpp"
#include "weir/testing.hpp"
#include "weir/trace.hpp"

namespace weir {
namespace {

constexpr int streams = 6;
constexpr int operations = 8;

/// A trace of six streams that have nothing to do with each other, on sim:0 with so many engines.
class TraceOverlap : public ::testing::TestWithParam<int> {
protected:
    TraceOverlap() {
        trace_scope trace(file("weirlog"));
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
    ~TraceOverlap() override { std::filesystem::remove(file("weirlog")); }

    static std::filesystem::path file(const std::string& ending) {
        return std::filesystem::temp_directory_path() / ("weir_overlap_" + std::to_string(GetParam()) + "." + ending);
    }

    static std::vector<trace::execution> executions() {
        std::ifstream from(file("weirlog"));
        const trace::log log = trace::read_log(from);
        std::vector<trace::execution> found;
        for (const trace::record& one : log.records) {
            if (const auto* ran = std::get_if<trace::execution>(&one.what)) {
                found.push_back(*ran);
            }
        }
        return found;
    }
};

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

// Four engines: at least three streams at once. One engine is the control: the same program, never two.
INSTANTIATE_TEST_SUITE_P(Engines, TraceOverlap, ::testing::Values(1, 4), ::testing::PrintToStringParamName());

}  // namespace
}  // namespace weir
