#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/observer.hpp"
#include "trace/collector.hpp"
#include "weir/weir.hpp"

namespace weir::testing {

/// The three versions of every ordering scenario.
enum class version : std::uint8_t {
    weirs,      ///< Weir orders everything
    taken_out,  ///< the program orders itself, and has forgotten a wait
    by_hand,    ///< the program orders itself, and has not
};

/// One run of a scenario: what the program and its harness share.
class run {
public:
    run(version which, bool watched) : which_(which), is_watched_(watched) {}

    [[nodiscard]] bool ordered_by_hand() const noexcept { return which_ == version::by_hand; }
    /// Whether the program asks for waits at all.
    [[nodiscard]] bool is_manual() const noexcept { return which_ != version::weirs; }

    /// What is enqueued on `stream` from now on stays back until `finish`: a racy program then goes wrong for certain.
    void hold(const stream& stream) { gate_.hold(stream); }

    /// Where an operation of the scenario goes; notes the line of the call under the label.
    template <std::size_t N>
    [[nodiscard]] on at(const stream& where, const char (&label)[N],
                        source_location line = source_location::current()) {
        lines_.emplace_back(label, line.line);
        return on(where, line).label(label);
    }
    [[nodiscard]] std::uint32_t line_of(const std::string& label) const {
        for (const auto& [known, line] : lines_) {
            if (known == label) {
                return line;
            }
        }
        ADD_FAILURE() << "no operation is called " << label;
        return 0;
    }

    /// Ends the program. If nothing keeps `early` from running before what is held back, it has run by then.
    void finish(const std::vector<completion>& early) {
        if (which_ == version::taken_out && !is_watched_) {
            for (const completion& one : early) {
                one.synchronize();
            }
        }
        gate_.open();
        cpu().synchronize();
    }

    static constexpr std::int64_t size = 64;

    static array make(double value) {
        array made = full({size}, value, dtype::float64);
        current_stream().synchronize();
        return made;
    }
    static completion set(const on& where, const array& x, double value) {
        return parallel_for(
            where, size, [value](std::size_t i, std::span<double> to) { to[i] = value; }, out(x.view<double>()));
    }
    static completion duplicate(const on& where, const array& from, const array& to) {
        return parallel_for(
            where, size,
            [](std::size_t i, std::span<const double> source, std::span<double> target) { target[i] = source[i]; },
            in(from.view<double>()), out(to.view<double>()));
    }
    /// The last element, once everything is over.
    static double last(const array& x) { return x.read<double>()[size - 1]; }

private:
    version which_;
    bool is_watched_;
    gate gate_;
    std::vector<std::pair<std::string, std::uint32_t>> lines_;
};

/// A race that a scenario expects, by the labels of its two operations.
struct expected_race {
    std::string kind;
    std::string first;
    std::string second;
};

using scenario = std::function<std::vector<double>(run&)>;

/// Notes the waits that Weir adds, for the sake of safety, to those that the program asks for.
class added_waits {
public:
    added_waits() { runtime::observers::add(told_); }
    ~added_waits() { runtime::observers::remove(told_); }
    added_waits(const added_waits&) = delete;
    added_waits& operator=(const added_waits&) = delete;

    [[nodiscard]] std::size_t count() const {
        return told_.read([](const trace::log& kept) {
            std::size_t added = 0;
            for (const trace::record& one : kept.records) {
                if (const auto* operation = std::get_if<trace::operation>(&one.what)) {
                    for (const trace::issued_wait& wait : operation->waits) {
                        added += wait.for_check ? 1U : 0U;
                    }
                }
            }
            return added;
        });
    }

private:
    trace::collector told_;
};

/// Runs a scenario in its three versions.
inline void prove(const scenario& program, const std::vector<double>& right, const std::vector<expected_race>& races) {
    {
        SCOPED_TRACE("with Weir's ordering");
        check_scope scope;
        run automatic(version::weirs, true);
        EXPECT_EQ(program(automatic), right);
        EXPECT_TRUE(scope.report().empty()) << scope.report().to_string();
    }
    const ordering_scope manual(ordering_mode::manual);
    {
        SCOPED_TRACE("with the ordering taken out, alone");
        run alone(version::taken_out, false);
        EXPECT_NE(program(alone), right);
    }
    {
        SCOPED_TRACE("with the ordering taken out, under check");
        check_scope scope;
        const added_waits added;
        run watched(version::taken_out, true);
        EXPECT_EQ(program(watched), right);
        EXPECT_GT(added.count(), 0U);
        const report found = scope.report();
        EXPECT_EQ(found.size(), races.size()) << found.to_string();
        for (const expected_race& expected : races) {
            const bool is_found = std::any_of(found.begin(), found.end(), [&](const race& one) {
                return one.kind == expected.kind && one.first.line == watched.line_of(expected.first) &&
                       one.first.label == expected.first && one.second.line == watched.line_of(expected.second) &&
                       one.second.label == expected.second;
            });
            EXPECT_TRUE(is_found) << expected.kind << " of " << expected.first << " and " << expected.second
                                  << " is missing in\n"
                                  << found.to_string();
        }
    }
    {
        SCOPED_TRACE("mended by hand, alone");
        run alone(version::by_hand, false);
        EXPECT_EQ(program(alone), right);
    }
    {
        SCOPED_TRACE("mended by hand, under check");
        check_scope scope;
        const added_waits added;
        run watched(version::by_hand, true);
        EXPECT_EQ(program(watched), right);
        EXPECT_TRUE(scope.report().empty()) << scope.report().to_string();
        EXPECT_EQ(added.count(), 0U);
    }
}

}  // namespace weir::testing
