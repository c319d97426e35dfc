// V2: explain says what an array and an event wait for; a wait_log reports each wait.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "weir/weir.hpp"

namespace weir {
namespace {

using testing::gate;

std::string at(unsigned line) { return "explain_test.cpp:" + std::to_string(line) + ")"; }

bool has(const std::string& text, const std::vector<std::string>& parts) {
    std::size_t from = 0;
    for (const std::string& part : parts) {
        const std::size_t found = text.find(part, from);
        if (found == std::string::npos) {
            ADD_FAILURE() << "\"" << part << "\" is not in its place in:\n" << text;
            return false;
        }
        from = found + part.size();
    }
    return true;
}

class Explain : public ::testing::Test {
protected:
    const stream load{cpu(), {.priority = 0, .name = "load"}};
    const stream compute{cpu(), {.priority = 0, .name = "compute"}};
    array x = zeros(8, dtype::float32, load);
    array y = zeros(8, dtype::float32, compute);
    gate held;

    Explain() {
        load.synchronize();
        compute.synchronize();
    }
    void square() {
        parallel_for(
            on(compute).label("square"), 8, [](std::size_t i, auto from, auto to) { to[i] = from[i] * from[i]; },
            in<float>(x), out<float>(y));
    }
};

TEST_F(Explain, V2_nothing_is_pending_of_an_array_at_rest) {
    const explanation said = explain(x);
    EXPECT_TRUE(said.pending.empty());
    EXPECT_TRUE(said.waits.empty());
    EXPECT_EQ(said.protocol, "none");
    EXPECT_FALSE(said.copied || said.host_blocked);
    EXPECT_EQ(said.to_string(), x.to_string() + "\n  pending: nothing\n  waits for: nothing");
    EXPECT_TRUE(explain(array()).pending.empty());
    EXPECT_TRUE(explain(event()).pending.empty());
}

TEST_F(Explain, V2_tells_what_is_pending_and_what_that_waits_for) {
    held.hold(load);
    fill(on(load).label("fill"), x, 3);
    const unsigned fill_line = __LINE__ - 1;
    square();
    const explanation of_x = explain(x);
    ASSERT_EQ(of_x.pending.size(), 2U) << of_x.to_string();
    has(of_x.pending[0], {"\"fill\"", at(fill_line), "writes bytes [0, 32)", "stream \"load\" of cpu"});
    has(of_x.pending[1], {"\"square\"", "reads bytes [0, 32)", "stream \"compute\" of cpu"});
    const explanation of_y = explain(y);
    ASSERT_EQ(of_y.pending.size(), 1U) << of_y.to_string();
    ASSERT_EQ(of_y.waits.size(), 1U) << of_y.to_string();
    has(of_y.waits[0], {"\"square\"", "\"compute\"", "waits for \"fill\"", at(fill_line), "\"load\""});
    EXPECT_TRUE(explain(y.slice(0, 0)).pending.empty()) << "no element, no access";
    held.open();
    static_cast<void>(y.read<float>());
    EXPECT_TRUE(explain(y).waits.empty());
}

TEST_F(Explain, O2_stats_count_what_is_enqueued_and_the_waits_that_it_needs) {
    const ordering_statistics before = stats();
    const auto counted = [&before] {
        const ordering_statistics now = stats();
        return std::vector<std::uint64_t>{now.operations - before.operations, now.waits_issued - before.waits_issued,
                                          now.waits_elided - before.waits_elided};
    };
    using counts = std::vector<std::uint64_t>;
    held.hold(load);
    fill(load, x, 3);
    fill(load, x, 4);
    EXPECT_EQ(counted(), (counts{3, 0, 0})) << "the gate and two operations of one stream";
    square();
    EXPECT_EQ(counted(), (counts{4, 1, 0}));
    square();
    EXPECT_EQ(counted(), (counts{5, 1, 1})) << "the stream is ordered after the fill already";
    compute.wait(load);
    EXPECT_EQ(counted(), (counts{5, 1, 2})) << "so is a wait that the program asks for";
    held.open();
    load.synchronize();
    compute.synchronize();
}

TEST_F(Explain, V2_of_a_part_only_what_touches_that_part) {
    held.hold(load);
    fill(load, x.slice(0, 4), 1);
    EXPECT_EQ(explain(x.slice(0, 4)).pending.size(), 1U);
    EXPECT_EQ(explain(x.slice(4, 8)).pending.size(), 0U);
    EXPECT_EQ(explain(x).pending.size(), 1U);
}

TEST_F(Explain, V2_tells_what_holds_up_an_event) {
    held.hold(load);
    const unsigned gate_line = __LINE__ - 1;
    fill(on(load).label("fill"), x, 3);
    square();
    const event done = compute.record();
    const explanation said = explain(done);
    ASSERT_EQ(said.pending.size(), 1U);
    has(said.to_string(), {"<weir.event", "pending:", "\"square\"", "\"compute\"", "waits for:", "\"fill\"", "\"load\"",
                           "a gate", at(gate_line), "not open"});
    held.open();
    done.wait();
    EXPECT_TRUE(explain(done).pending.empty());
    EXPECT_TRUE(explain(done).waits.empty());
}

TEST_F(Explain, V2_each_wait_that_is_issued_is_told_of_with_its_reason) {
    std::vector<std::string> lines;
    held.hold(load);
    fill(load, x, 1);
    square();  // waits, before the log begins
    {
        const wait_log log([&](const std::string& line) { lines.push_back(line); });
        // Waits for the squares, which read. They were enqueued before the log began.
        fill(on(load).label("fill"), x, 3);
        const unsigned fill_line = __LINE__ - 1;
        square();
        fill(load, x, 4);
        load.wait(compute);  // implied: none is issued
        const stream third(cpu(), {.priority = 0, .name = "third"});
        third.wait(load);
        const unsigned wait_line = __LINE__ - 1;
        ASSERT_EQ(lines.size(), 4U);
        has(lines[0], {"\"fill\"", at(fill_line), "\"load\"", "waits for what came before on", "\"compute\"",
                       "it writes memory", "which that reads"});
        has(lines[1], {"\"square\"", "stream \"compute\" of cpu", "waits for \"fill\"", at(fill_line),
                       "stream \"load\" of cpu", "it reads bytes [0, 32) of memory #", "which that writes"});
        has(lines[3], {"the program", at(wait_line), "makes the stream \"third\"", "wait for", "\"load\""});
    }
    held.open();
    square();
    EXPECT_EQ(lines.size(), 4U) << "the log is over";
    EXPECT_THROW(wait_log({}), argument_error);
}

}  // namespace
}  // namespace weir
