// Traces of real programs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "observe/observers.hpp"
#include "trace/collector.hpp"
#include "trace/summary.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

class noted {
public:
    noted() { observe::observers::add(told); }
    ~noted() { observe::observers::remove(told); }
    noted(const noted&) = delete;
    noted& operator=(const noted&) = delete;

    trace::collector told;
};

template <class Record>
std::vector<Record> all(const trace::collector& told) {
    return told.read([](const trace::log& kept) {
        std::vector<Record> found;
        for (const trace::record& one : kept.records) {
            if (const auto* record = std::get_if<Record>(&one.what)) {
                found.push_back(*record);
            }
        }
        return found;
    });
}

void use(const on& where, const array& read, array write) {
    access(
        where, [](auto&&...) {}, in(read), out(write));
}

TEST(TraceRuntime, V2_everything_that_ran_has_its_times) {
    const noted trace;
    const stream s(cpu(), {0, "only"});
    array x = zeros({16}, dtype::float32, s);
    array y = zeros({16}, dtype::float32, s);
    use(on(s).label("use"), x, y);
    s.synchronize();
    const auto ran = all<trace::execution>(trace.told);
    ASSERT_EQ(ran.size(), 3U);
    for (std::size_t i = 0; i < ran.size(); ++i) {
        EXPECT_EQ(ran[i].at.stream, s.unique_id());
        EXPECT_LE(ran[i].start, ran[i].end);
        EXPECT_TRUE(i == 0 || ran[i - 1].end <= ran[i].start);
    }
    const auto operations = all<trace::operation>(trace.told);
    ASSERT_EQ(operations.size(), 3U);
    EXPECT_STREQ(operations[2].from.label, "use");
    EXPECT_NE(std::string(operations[2].from.where.file).find("trace_runtime_test"), std::string::npos);
    EXPECT_EQ(all<trace::allocation>(trace.told).size(), 2U);
    EXPECT_EQ(all<trace::host_wait>(trace.told).size(), 1U);
}

/// The last operation's accesses in the log.
std::vector<observe::observed_access> last_accesses(const noted& trace) {
    const auto operations = all<trace::operation>(trace.told);
    return operations.empty() ? std::vector<observe::observed_access>() : operations.back().accesses;
}

TEST(TraceRuntime, V2_an_operation_that_names_the_same_elements_twice_uses_them_once) {
    const noted trace;
    const stream s(cpu());
    array x = zeros({16}, dtype::float32, s);
    array y = zeros({16}, dtype::float32, s);
    access(
        s, [](auto&&...) {}, in(x), in(x), out(y));
    auto seen = last_accesses(trace);
    ASSERT_EQ(seen.size(), 2U);
    EXPECT_EQ(seen[0].resource, x.buffer().unique_id());
    EXPECT_EQ(seen[0].mode, order::access_mode::read);
    EXPECT_EQ(seen[1].mode, order::access_mode::write);

    access(
        s, [](auto&&...) {}, in(x), out(x));
    seen = last_accesses(trace);
    ASSERT_EQ(seen.size(), 1U);
    EXPECT_EQ(seen[0].mode, order::access_mode::write) << "read before, and written";

    access(
        s, [](auto&&...) {}, out(x), in(x));
    seen = last_accesses(trace);
    ASSERT_EQ(seen.size(), 1U);
    EXPECT_EQ(seen[0].mode, order::access_mode::write) << "written, and read behind";
    s.synchronize();
}

TEST(TraceRuntime, V2_an_operation_that_names_overlapping_elements_uses_both) {
    const noted trace;
    const stream s(cpu());
    array x = zeros({16}, dtype::float32, s);
    access(
        s, [](auto&&...) {}, in(x.slice(0, 9)), in(x.slice(1, 10)));
    EXPECT_EQ(last_accesses(trace).size(), 2U);
    access(
        s, [](auto&&...) {}, in(x.slice(0, 9)), out(x.slice(1, 10)));
    EXPECT_EQ(last_accesses(trace).size(), 2U);
    s.synchronize();
}

TEST(TraceRuntime, V2_streams_that_live_already_are_known_by_their_names) {
    const stream idle(cpu(), {0, "idle"});
    { const stream gone(cpu(), {0, "gone"}); }
    const noted trace;
    std::vector<std::string> names;
    for (const auto& one : all<trace::stream_made>(trace.told)) {
        names.emplace_back(one.name);
    }
    EXPECT_EQ(std::count(names.begin(), names.end(), "idle"), 1);
    EXPECT_EQ(std::count(names.begin(), names.end(), "gone"), 0);
}

TEST(TraceRuntime, V2_allocations_say_where_the_memory_is) {
    struct : observe::observer {
        void allocated(const observe::observed_allocation& what) override { seen.push_back(what); }
        std::vector<observe::observed_allocation> seen;
    } told;
    observe::observers::add(told);
    const stream s(cpu(), {0, "only"});
    const buffer first(256, s);
    const buffer second(100, s);
    observe::observers::remove(told);
    ASSERT_EQ(told.seen.size(), 2U);
    EXPECT_EQ(told.seen[0].resource, first.unique_id());
    EXPECT_EQ(told.seen[1].address, reinterpret_cast<std::uintptr_t>(second.data()));
    EXPECT_EQ(told.seen[1].bytes, 100U);
    EXPECT_EQ(told.seen[1].device, "cpu");
    EXPECT_EQ(told.seen[1].stream->id, s.unique_id());
}

TEST(TraceRuntime, O10_a_timeline_that_is_used_again_has_another_stream) {
    const noted trace;
    std::vector<std::uint64_t> ids;
    for (int i = 0; i < 3; ++i) {
        const stream s(cpu(), {0, "short-lived"});
        ids.push_back(s.unique_id());
        array x = zeros({16}, dtype::float32, s);
        s.synchronize();
    }
    std::vector<std::uint64_t> ran;
    for (const auto& one : all<trace::execution>(trace.told)) {
        ran.push_back(one.at.stream);
    }
    EXPECT_EQ(ran, ids);
}

TEST(TraceRuntime, O10_while_nothing_is_over_the_waits_issued_are_the_fewest) {
    std::mt19937 random(3);  // NOLINT: the same programs every time
    const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
    for (int program = 0; program < 100; ++program) {
        std::vector<stream> streams;
        for (std::size_t i = 0; i < 2 + below(4); ++i) {
            streams.emplace_back(cpu(), stream_options{0, "s"});
        }
        std::vector<array> arrays;
        for (std::size_t i = 0; i < 4; ++i) {
            arrays.push_back(zeros({16}, dtype::float32));
        }
        cpu().synchronize();
        testing::gate gate;
        for (const stream& each : streams) {
            gate.hold(each);
        }
        trace_scope trace;
        for (std::size_t i = 0; i < 30; ++i) {
            const auto first = static_cast<std::int64_t>(below(4) * 4);
            use(streams[below(streams.size())], arrays[below(4)], arrays[below(4)].slice(first, first + 4));
        }
        const trace_summary sum = trace.summary();
        gate.open();
        cpu().synchronize();
        ASSERT_EQ(sum.waits_issued, sum.waits_minimal) << "program " << program;
        ASSERT_EQ(sum.operations, 30U);
    }
}

}  // namespace
}  // namespace weir
