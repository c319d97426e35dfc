// Failures are counted exactly and none is lost, even when no memory is left to record them (rule K4).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "backend/timeline.hpp"
#include "frontier/point.hpp"
#include "runtime/failures/failure.hpp"
#include "runtime/failures/failures.hpp"
#include "support/scarce_memory.hpp"
#include "weir/error.hpp"

namespace weir::test {
namespace {

using runtime::failures;
using ::testing::HasSubstr;
using ::testing::Not;

/// As many as can be recorded without memory.
constexpr int reserve = 16;
/// As many of those that give way are kept; the rest is counted.
constexpr int kept = 16;

class K4Failures : public ::testing::Test {
protected:
    K4Failures() { failures::arm(); }
    ~K4Failures() override {
        failures::no_longer_awaited(failures::awaited());
        for (const frontiers::timeline_id each : {one_, other_, third_}) {
            backend::timeline_table::instance().release(each);
        }
    }

    static runtime::failure_ptr made(frontiers::point at) {
        const std::string text = "failure " + std::to_string(at.timeline) + "/" + std::to_string(at.at);
        return runtime::failure::make(at, {"test", {}}, std::make_exception_ptr(std::runtime_error(text)));
    }
    /// Failures of the first `count` operations of a timeline.
    static std::vector<runtime::failure_ptr> made(frontiers::timeline_id timeline, int count) {
        std::vector<runtime::failure_ptr> all;
        for (int i = 1; i <= count; ++i) {
            all.push_back(made({timeline, static_cast<frontiers::epoch>(i)}));
        }
        return all;
    }
    static void note(const std::vector<runtime::failure_ptr>& all) {
        for (const runtime::failure_ptr& each : all) {
            failures::note(each->at, each);
        }
    }
    /// The failures that are reported if the program asks about the timeline until there are no more.
    static std::vector<std::string> reports(frontiers::timeline_id timeline) {
        std::vector<std::string> all;
        while (all.size() < 1000) {
            try {
                failures::throw_first_unreported({timeline, 1000});
                break;
            } catch (const operation_error& one) {
                all.emplace_back(one.what());
            }
        }
        return all;
    }
    static int told(frontiers::timeline_id timeline) { return static_cast<int>(reports(timeline).size()); }

    frontiers::timeline_id one_ = backend::timeline_table::instance().acquire();
    frontiers::timeline_id other_ = backend::timeline_table::instance().acquire();
    frontiers::timeline_id third_ = backend::timeline_table::instance().acquire();
};

// One test, since its failures stay in the list: one that was reported is dropped first.
TEST_F(K4Failures, NoneIsLostWithoutMemory) {
    {
        const std::vector<runtime::failure_ptr> first = made(one_, reserve);
        const std::vector<runtime::failure_ptr> more = made(other_, kept + 3);
        allow_allocations(0);
        note(first);
        note(more);
        allow_all_allocations();
        const std::vector<std::string> gave_way = reports(third_);
        ASSERT_EQ(gave_way.size(), kept) << "those that gave way, at the next questions";
        for (std::size_t i = 0; i < gave_way.size(); ++i) {
            const std::string text = "failure " + std::to_string(one_) + "/" + std::to_string(i + 1) + ".";
            EXPECT_THAT(gave_way[i], HasSubstr(text));
        }
        EXPECT_THAT(gave_way.front(), HasSubstr("3 more operations failed"));
        EXPECT_THAT(gave_way.back(), Not(HasSubstr("more operations failed"))) << "once";
        EXPECT_EQ(told(other_), kept);
        EXPECT_EQ(told(one_), 0);
        EXPECT_EQ(told(third_), 0) << "once";
    }
    failures::no_longer_awaited(failures::awaited());
    const runtime::failure_ptr fills = made({third_, 1});
    failures::note(fills->at, fills);  // there is a reserve again
    EXPECT_EQ(told(third_), 1);
    {
        std::vector<runtime::failure_ptr> first = made(one_, 2 * reserve);
        first.erase(first.begin(), first.begin() + reserve);
        const runtime::failure_ptr last = made({other_, 2});
        allow_allocations(0);
        note(first);
        allow_allocations(1);
        failures::note(last->at, last);
        allow_all_allocations();
        EXPECT_EQ(told(one_), reserve);
        EXPECT_EQ(told(other_), 1) << "its room was the last memory there was";
        EXPECT_EQ(told(third_), 0) << "control";
    }
}

}  // namespace
}  // namespace weir::test
