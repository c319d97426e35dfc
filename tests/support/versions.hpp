// The three versions of an ordering scenario (SCENARIOS): ordered by Weir; not ordered; ordered by the program, by hand.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "observe/observers.hpp"
#include "weir/check.hpp"
#include "weir/event.hpp"
#include "weir/launch.hpp"
#include "weir/memory.hpp"
#include "weir/memory_resource.hpp"
#include "weir/ordering.hpp"
#include "weir/stream.hpp"
#include "weir/testing.hpp"

namespace weir::test {

/// What orders the streams of a scenario. `nobody_checked`: nothing does, under check, which keeps the program safe.
enum class version : std::uint8_t { weir, nobody, nobody_checked, program };

/// The objects of a scenario: streams, and a gate that holds some of them until everything is enqueued and, if
/// nothing orders the other streams after them, until those have finished. So a possible error does happen.
class scenario_run {
public:
    scenario_run(version which, weir::device on)
        : device(on),
          s1(on, {0, "s1"}),
          s2(on, {0, "s2"}),
          s3(on, {0, "s3"}),
          which_(which),
          ordering_(which == version::weir ? ordering_mode::automatic : ordering_mode::manual) {}

    const weir::device device;
    stream s1;
    stream s2;
    stream s3;

    /// Whether the program asks for waits itself: all but the missing one.
    [[nodiscard]] bool is_manual() const noexcept { return which_ != version::weir; }
    /// Whether it also asks for the wait that is otherwise missing.
    [[nodiscard]] bool is_mended() const noexcept { return which_ == version::program; }

    /// What is enqueued on `late` from now on is held until `finish`.
    void hold(const stream& late) {
        gate_.hold(late);
        held_ = late;
    }
    /// The wait that the author writes in the version that is ordered by hand.
    void by_hand(const stream& waits, const stream& awaited) const {
        if (is_mended()) {
            waits.wait(awaited.record());
        }
    }
    /// Ends the program. If nothing orders the operations `early` after what is held, they have run by
    /// then; without `early`, everything on s1 or s2, whichever is not held.
    void finish(const std::vector<completion>& early = {}) {
        if (which_ == version::nobody) {
            // A wait of Weir's would hang here.
            for (const completion& one : early) {
                one.synchronize();
            }
            if (early.empty()) {
                (held_ == s1 ? s2 : s1).synchronize();
            }
        }
        gate_.open();
        device.synchronize();
    }

    /// While it lives, memory is freed as in other pools, so that a drop that comes too early causes an error; not where the
    /// program should be right although it drops too early.
    [[nodiscard]] std::unique_ptr<memory::use> free_on_allocating_stream() const {
        return free_on_allocating_stream(device);
    }
    [[nodiscard]] std::unique_ptr<memory::use> free_on_allocating_stream(weir::device of) const {
        const bool harmful = which_ == version::program || which_ == version::nobody;
        return harmful ? std::make_unique<memory::use>(memory::allocating_stream(), of) : nullptr;
    }

    /// The place of an operation of the scenario; records the line of the call under the label.
    [[nodiscard]] on at(const stream& where, weir::label label, source_location line = source_location::current()) {
        note(label.text(), line);
        return on(where, line).label(label);
    }
    /// The calling line, for a call that has no label: the expected races refer to it by `name`.
    source_location note(const std::string& name, source_location line = source_location::current()) {
        names_.emplace(line.line, name);
        return line;
    }
    /// The name of an access in the expected races.
    [[nodiscard]] std::string name_of(const race_access& access) const {
        const auto noted = names_.find(access.line);
        return noted == names_.end() ? access.label : noted->second;
    }

private:
    version which_;
    ordering_scope ordering_;
    stream held_{s1};
    testing::gate gate_;
    std::map<std::uint32_t, std::string> names_;
};

/// Counts the waits that Weir adds, while it lives, to those that a program asks for that orders itself; waits that
/// reused memory needs do not count.
class added_waits final : public observe::observer {
public:
    added_waits() { observe::observers::add(*this); }
    ~added_waits() override { observe::observers::remove(*this); }
    added_waits(const added_waits&) = delete;
    added_waits& operator=(const added_waits&) = delete;

    void operation(const observe::observed_operation& one) override {
        // Under check the wait itself says whether it is for the program's accesses: one wait may serve both purposes.
        const auto added = [checked = observe::observers::want_safety()](const observe::observed_wait& w) {
            return checked ? w.hazard_of_manual : w.why != order::reason::dependency && w.why != order::reason::reuse;
        };
        count += static_cast<std::size_t>(std::count_if(one.waits.begin(), one.waits.end(), added));
    }
    std::size_t count = 0;
};

/// A race that a scenario expects: the names of its two accesses, the one enqueued first before the other, and its kind,
/// empty if any kind will do.
struct expected_race {
    std::string first;
    std::string second;
    std::string kind{};
};

/// Expects that the races found are the expected ones, in lines of the file `file`.
inline void expect_races(const report& found, const std::vector<expected_race>& races, const std::string& file,
                         const scenario_run& run) {
    using names = std::pair<std::string, std::string>;
    std::map<names, std::string> expected;
    for (const expected_race& one : races) {
        expected.emplace(names(one.first, one.second), one.kind);
    }
    EXPECT_EQ(found.size(), expected.size()) << found.to_string();
    for (const race& one : found) {
        const names both(run.name_of(one.first), run.name_of(one.second));
        const auto known = expected.find(both);
        if (known == expected.end()) {
            ADD_FAILURE() << "unexpected: " << both.first << ", " << both.second << "\n" << found.to_string();
            continue;
        }
        EXPECT_TRUE(known->second.empty() || known->second == one.kind) << found.to_string();
        EXPECT_EQ(one.certainty, "definite");
        for (const race_access& access : {one.first, one.second}) {
            EXPECT_EQ(access.file, file);
            EXPECT_GT(access.line, 0U);
        }
        const bool on_host = one.second.stream_id == 0;
        EXPECT_NE(one.mend.find(on_host ? "e.wait()" : ".wait(e)"), std::string::npos) << one.mend;
    }
}

/// Runs all versions of `scenario(scenario_run&) -> result`, which enqueues, calls finish, and reads its result. The
/// races that check finds must be `races`, with lines of the file `file`. The streams are those of the device `on`.
template <class Result, class Scenario>
void expect_three_versions(const Result& right, const std::vector<expected_race>& races, const std::string& file,
                           Scenario&& scenario, weir::device on = cpu()) {
    const use current(stream(on, {0, "current"}));
    {
        SCOPED_TRACE("ordered by Weir");
        const check_scope check;
        scenario_run run(version::weir, on);
        EXPECT_EQ(scenario(run), right);
        EXPECT_TRUE(check.report().empty()) << check.report().to_string();
    }
    {
        SCOPED_TRACE("control: without ordering it must be wrong");
        scenario_run run(version::nobody, on);
        EXPECT_NE(scenario(run), right);
    }
    {
        SCOPED_TRACE("without ordering, but check keeps the program safe");
        const check_scope check;
        scenario_run run(version::nobody_checked, on);
        EXPECT_EQ(scenario(run), right);
        expect_races(check.report(), races, file, run);
    }
    {
        SCOPED_TRACE("ordered by hand, alone");
        scenario_run run(version::program, on);
        EXPECT_EQ(scenario(run), right);
    }
    {
        SCOPED_TRACE("ordered by hand");
        const check_scope check;
        const added_waits added;
        scenario_run run(version::program, on);
        EXPECT_EQ(scenario(run), right);
        EXPECT_TRUE(check.report().empty()) << check.report().to_string();
        EXPECT_EQ(added.count, 0U) << "Weir adds nothing";
    }
}

}  // namespace weir::test
