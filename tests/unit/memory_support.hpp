// Shared by the unit tests of memory/: a pool on which marks stand for streams.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <vector>

#include "memory/pool.hpp"
#include "order_support.hpp"
#include "support/fake_driver.hpp"

namespace weir::memory::test {

using order::mark;
using order::test::mark_at;
using order::test::set_watermarks;

inline constexpr std::size_t kib = 1024;
inline constexpr std::size_t mib = 1024 * kib;

using weir::test::fake_driver;

/// A pool whose streams are timelines that the test advances by hand.
class PoolTest : public ::testing::Test {
protected:
    /// Asks as a stream does; null if the pool has nothing to give now.
    block* ask(std::size_t bytes, frontiers::timeline_id line, std::initializer_list<frontiers::point> known = {}) {
        if (block* const recent = tested.take_recent(bytes, line)) {
            return recent;
        }
        const pool::answer answer = tested.take(bytes, {line, order::test::clock_of(known)});
        wait_for = answer.wait_for;
        return answer.taken;
    }
    block& get(std::size_t bytes, frontiers::timeline_id line, std::initializer_list<frontiers::point> known = {}) {
        block* const b = ask(bytes, line, known);
        if (b == nullptr) {
            throw std::runtime_error("the pool gave nothing");
        }
        return *b;
    }
    /// An operation at `when` writes all of the block.
    void use(block& b, const mark& when) {
        b.history.reserve(1);
        b.history.record({0, b.size()}, order::access_mode::write, when, completed);
    }
    void drop(block& b) { tested.put(b); }
    /// The points that a first access on `line` would wait for.
    std::vector<frontiers::point> waits_of(const block& b, frontiers::timeline_id line,
                                           std::initializer_list<frontiers::point> known = {}) {
        const order::clock clock = order::test::clock_of(known);
        order::plan plan(line, 0, clock, completed, false);
        b.history.require(plan, {0, b.size()}, order::access_mode::write,
                          false);  // manual ordering: reuse alone counts
        plan.resolve();
        std::vector<frontiers::point> points;
        for (const order::wait& one : plan.waits()) {
            EXPECT_EQ(one.why, order::reason::reuse);
            points.push_back(one.target.at);
        }
        return points;
    }

    fake_driver driver;
    set_watermarks completed;
    pool tested{driver, completed};
    std::optional<frontiers::point> wait_for;
};

}  // namespace weir::memory::test
