// The three versions of an ordering scenario (SCENARIOS): Weir orders; nobody does; the program does, by hand.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <utility>

#include "runtime/observer.hpp"
#include "weir/check.hpp"
#include "weir/event.hpp"
#include "weir/ordering.hpp"
#include "weir/stream.hpp"
#include "weir/testing.hpp"

namespace weir::test {

/// Who orders the streams of a scenario. `nobody_checked` is nobody, under check, which keeps it safe.
enum class version { weir, nobody, nobody_checked, program };

/// What a scenario has to work with: two streams, and a gate that holds one of them back until everything is enqueued, and
/// if nothing orders them, until the other one is through. So what can go wrong does.
class scenario_run {
public:
    explicit scenario_run(version which)
        : which_(which), ordering_(which == version::weir ? ordering_mode::automatic : ordering_mode::manual) {}

    stream s1{cpu(), {0, "s1"}};
    stream s2{cpu(), {0, "s2"}};

    void hold(const stream& late) {
        other_ = late == s1 ? s2 : s1;
        gate_.hold(late);
    }
    /// What the author writes in the version that is mended by hand.
    void by_hand(const stream& waits, const stream& awaited) const {
        if (which_ == version::program) {
            waits.wait(awaited.record());
        }
    }
    void finish() {
        if (which_ == version::nobody) {
            other_.synchronize();  // a wait of Weir's would hang here
        }
        gate_.open();
        s1.synchronize();
        s2.synchronize();
    }

private:
    version which_;
    ordering_scope ordering_;
    stream other_{s1};
    testing::gate gate_;
};

/// Counts the waits that Weir adds to operations by itself while it lives.
class added_waits final : public runtime::observer {
public:
    added_waits() { runtime::observers::add(*this); }
    ~added_waits() override { runtime::observers::remove(*this); }
    added_waits(const added_waits&) = delete;
    added_waits& operator=(const added_waits&) = delete;

    void operation(const runtime::observed_operation& one) override {
        const auto added = [](const runtime::observed_wait& w) { return w.why != order::reason::dependency; };
        count += static_cast<std::size_t>(std::count_if(one.waits.begin(), one.waits.end(), added));
    }
    std::size_t count = 0;
};

/// Labels of the two operations of a race, the one enqueued first before the other.
using pair_of_labels = std::pair<std::string, std::string>;

/// Runs all versions of `scenario(scenario_run&) -> result`, which enqueues, calls finish, and reads its result. The
/// races that check finds must be `races`, with lines of the file `file`.
template <class Result, class Scenario>
void expect_three_versions(const Result& right, const std::set<pair_of_labels>& races, const std::string& file,
                           Scenario&& scenario) {
    const auto run_as = [&](version which) {
        scenario_run run(which);
        return scenario(run);
    };
    {
        const check_scope check;
        EXPECT_EQ(run_as(version::weir), right) << "ordered by Weir";
        EXPECT_TRUE(check.report().empty()) << "ordered by Weir\n" << check.report().to_string();
    }
    EXPECT_NE(run_as(version::nobody), right) << "control: without ordering it must be wrong";
    {
        const check_scope check;
        EXPECT_EQ(run_as(version::nobody_checked), right) << "check keeps the program safe";
        std::set<pair_of_labels> found;
        for (const race& one : check.report()) {
            found.emplace(one.first.label, one.second.label);
            for (const race_access& access : {one.first, one.second}) {
                EXPECT_EQ(access.file, file);
                EXPECT_GT(access.line, 0U);
            }
            EXPECT_NE(one.mend.find(".wait("), std::string::npos);
        }
        EXPECT_EQ(found, races) << check.report().to_string();
    }
    {
        const check_scope check;
        const added_waits added;
        EXPECT_EQ(run_as(version::program), right) << "ordered by hand";
        EXPECT_TRUE(check.report().empty()) << "ordered by hand\n" << check.report().to_string();
        EXPECT_EQ(added.count, 0U) << "ordered by hand, Weir adds nothing";
    }
}

}  // namespace weir::test
