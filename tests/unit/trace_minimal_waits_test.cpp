// Rule O10: the transitive reduction, for known programs and compared with brute force.
#include "trace/minimal_waits.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "observer_script.hpp"
#include "trace/collector.hpp"
#include "trace/summary.hpp"

namespace weir::trace {
namespace {

using testing::automatic;
using testing::observer_script;
using testing::reads;
using testing::writes;

class MinimalWaits : public ::testing::Test {
protected:
    [[nodiscard]] std::uint64_t minimal() const {
        return told_.read([](const log& kept) { return minimal_waits(kept); });
    }

    collector told_;
    observer_script program_{told_};
    observer_script::stream& a_ = program_.make_stream("a");
    observer_script::stream& b_ = program_.make_stream("b");
    observer_script::stream& c_ = program_.make_stream("c");
    observer_script::stream& d_ = program_.make_stream("d");
};

TEST_F(MinimalWaits, O10_one_stream_needs_none) {
    for (int i = 0; i < 5; ++i) {
        program_.enqueue(a_, 1, {writes(1)});
    }
    EXPECT_EQ(minimal(), 0U);
}

TEST_F(MinimalWaits, S6_what_the_device_orders_by_itself_needs_none) {
    const auto written = program_.enqueue(a_, 1, {writes(1)});
    program_.follow(b_, written);
    program_.enqueue(b_, 2, {reads(1), writes(2)});
    program_.follow(c_, {b_.info.timeline, b_.tail});
    program_.enqueue(c_, 3, {reads(1), reads(2)});
    EXPECT_EQ(minimal(), 0U);
    program_.enqueue(d_, 4, {reads(1)});
    EXPECT_EQ(minimal(), 1U) << "control";
}

TEST_F(MinimalWaits, O10_a_diamond_needs_four) {
    program_.enqueue(a_, 1, {writes(1)});
    program_.enqueue(b_, 2, {reads(1), writes(2)});
    program_.enqueue(c_, 3, {reads(1), writes(3)});
    program_.enqueue(d_, 4, {reads(1), reads(2), reads(3)});
    EXPECT_EQ(minimal(), 4U);
}

TEST_F(MinimalWaits, O10_a_chain_needs_one_for_each_link) {
    program_.enqueue(a_, 1, {writes(1)});
    program_.enqueue(b_, 2, {writes(1)});
    program_.enqueue(c_, 3, {writes(1)});
    program_.enqueue(d_, 4, {writes(1)});
    EXPECT_EQ(minimal(), 3U);
}

TEST_F(MinimalWaits, O10_a_second_reader_of_the_stream_needs_none) {
    program_.enqueue(a_, 1, {writes(1)});
    program_.enqueue(b_, 2, {reads(1)});
    program_.enqueue(b_, 3, {reads(1)});
    EXPECT_EQ(minimal(), 1U);
}

TEST_F(MinimalWaits, O3_parts_that_are_overwritten_are_waited_for_once) {
    program_.enqueue(a_, 1, {writes(1, {0, 64})});
    program_.enqueue(b_, 2, {writes(1, {0, 32})});  // after a
    program_.enqueue(c_, 3, {reads(1, {0, 32})});   // after b
    program_.enqueue(d_, 4, {reads(1, {32, 64})});  // after a
    EXPECT_EQ(minimal(), 3U);
}

TEST_F(MinimalWaits, O10_waits_of_the_program_count_unless_they_are_implied) {
    const auto written = program_.enqueue(a_, 1, {writes(1)});
    program_.wait(b_, written);
    program_.enqueue(b_, 2, {reads(1)});
    EXPECT_EQ(minimal(), 1U);
    program_.wait(b_, written);
    program_.enqueue(b_, 3, {});
    EXPECT_EQ(minimal(), 1U);
}

TEST_F(MinimalWaits, O10_a_wait_that_stands_alone_counts_where_it_matters) {
    program_.enqueue(a_, 1, {writes(1)});
    program_.wait(b_, a_.at());
    program_.wait(c_, b_.at());
    program_.enqueue(c_, 2, {reads(1)});
    EXPECT_EQ(minimal(), 2U);
    program_.wait(d_, a_.at());  // nothing comes after it
    EXPECT_EQ(minimal(), 3U);
}

TEST_F(MinimalWaits, O6_what_the_host_knows_costs_nothing) {
    const auto written = program_.enqueue(a_, 1, {writes(1)});
    program_.host_waits(written);
    program_.enqueue(b_, 2, {writes(1)});
    program_.host_accesses(automatic(reads(1)), 3);
    program_.enqueue(c_, 4, {writes(1)});
    EXPECT_EQ(minimal(), 0U);
}

TEST_F(MinimalWaits, O10_the_summary_counts_waits_for_memory_apart) {
    const auto written = program_.enqueue(a_, 1, {writes(1)});
    program_.enqueue(b_, 2, {automatic(reads(1)), automatic(writes(2))}, {}, nullptr,
                     {{written, order::reason::read_after_write, false}, {{9, 1}, order::reason::reuse, false}});
    program_.enqueue(b_, 3, {automatic(reads(1))}, {}, nullptr, {},
                     {{written, order::reason::read_after_write, order::witness_kind::known, {}},
                      {b_.at(), order::reason::write_after_read, order::witness_kind::same_stream, {}}});
    const auto start = std::chrono::steady_clock::now();
    using std::chrono::nanoseconds;
    told_.executed({written, start, start + nanoseconds(100)});
    told_.executed({b_.at(), start + nanoseconds(150), start + nanoseconds(300)});
    const trace_summary sum = told_.read(summarise);
    EXPECT_EQ(sum.operations, 3U);
    EXPECT_EQ(sum.streams, 4U);
    EXPECT_EQ(sum.waits_issued, 1U);
    EXPECT_EQ(sum.waits_elided, 1U);
    EXPECT_EQ(sum.waits_minimal, 1U);
    EXPECT_EQ(sum.waits_for_memory, 1U);
    EXPECT_EQ(sum.span, nanoseconds(300));
}

/// The same by brute force: all edges, transitive closure, and each cross-stream edge that no path of two or more edges
/// replaces.
class brute_force {
public:
    void add(std::size_t stream, const std::vector<observer_script::access>& accesses,
             const std::vector<std::size_t>& after) {
        const std::size_t self = nodes_.size();
        nodes_.push_back({stream, accesses, std::vector<bool>(self + 1)});
        for (std::size_t other = 0; other < self; ++other) {
            nodes_[self].edges[other] = nodes_[other].stream == stream || conflict(nodes_[other].accesses, accesses);
        }
        for (const std::size_t other : after) {
            nodes_[self].edges[other] = true;
        }
    }

    [[nodiscard]] std::uint64_t count() const {
        std::vector<std::vector<bool>> reach;  // by a path of at least one edge
        std::uint64_t waits = 0;
        for (std::size_t self = 0; self < nodes_.size(); ++self) {
            std::vector<bool> direct = nodes_[self].edges;
            std::vector<bool> indirect(self + 1);
            for (std::size_t other = 0; other < self; ++other) {
                for (std::size_t before = 0; direct[other] && before < other; ++before) {
                    indirect[before] = indirect[before] || reach[other][before];
                }
            }
            for (std::size_t other = 0; other < self; ++other) {
                waits += direct[other] && !indirect[other] && nodes_[other].stream != nodes_[self].stream ? 1U : 0U;
                direct[other] = direct[other] || indirect[other];
            }
            reach.push_back(std::move(direct));
        }
        return waits;
    }

private:
    struct node {
        std::size_t stream;
        std::vector<observer_script::access> accesses;
        std::vector<bool> edges;
    };
    static bool conflict(const std::vector<observer_script::access>& a, const std::vector<observer_script::access>& b) {
        for (const auto& one : a) {
            for (const auto& other : b) {
                const bool write = one.mode == order::access_mode::write || other.mode == order::access_mode::write;
                if (write && one.resource == other.resource && overlap(one.where, other.where)) {
                    return true;
                }
            }
        }
        return false;
    }
    std::vector<node> nodes_;
};

TEST(MinimalWaitsRandom, O10_agrees_with_brute_force) {
    std::mt19937 random(7);  // NOLINT: the same programs every time
    const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
    for (int program = 0; program < 300; ++program) {
        collector told;
        observer_script script(told);
        brute_force expected;
        std::vector<observer_script::stream*> streams;
        const std::size_t width = 1 + below(6);
        for (std::size_t i = 0; i < width; ++i) {
            streams.push_back(&script.make_stream("s"));
        }
        std::vector<frontiers::point> points;
        const std::size_t length = 1 + below(40);
        const std::size_t resources = 1 + below(4);
        for (std::size_t i = 0; i < length; ++i) {
            std::vector<observer_script::access> accesses;
            for (std::size_t k = below(4); k > 0; --k) {
                const std::uint64_t begin = below(4) * 16;
                const order::footprint where{begin, begin + 16 * (1 + below(3))};
                accesses.push_back(below(3) == 0 ? writes(below(resources), where) : reads(below(resources), where));
            }
            std::vector<std::size_t> after;
            std::vector<frontiers::point> after_points;
            for (std::size_t k = i == 0 ? 0 : below(3); k > 1; --k) {
                after.push_back(below(i));
                after_points.push_back(points[after.back()]);
            }
            const std::size_t stream = below(width);
            points.push_back(script.enqueue(*streams[stream], 1, accesses, after_points));
            expected.add(stream, accesses, after);
        }
        ASSERT_EQ(told.read([](const log& kept) { return minimal_waits(kept); }), expected.count())
            << "program " << program;
    }
}

}  // namespace
}  // namespace weir::trace
