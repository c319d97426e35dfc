// WEIR_CHECK: a process that is checked from its start, without code for it. Each test runs this program again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <string>

#include "check_support.hpp"
#include "weir/error.hpp"
#include "weir/launch.hpp"

namespace weir {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// A kernel that races with another one of its kind, as far as Weir knows; to the language its elements are atomic.
completion racing_set(const stream& where, array& x, double value) {
    return parallel_for(
        where, x.size(),
        [value](std::size_t i, std::span<double> to) {
            std::atomic_ref(to[i]).store(value, std::memory_order::relaxed);
        },
        out(x.view<double>()));
}

/// The program that is run: it has a race and no check_scope.
TEST(CheckEnvironment, DISABLED_a_program_with_a_race) {
    const ordering_scope manual(ordering_mode::manual);
    const stream load(cpu(), {0, "load"});
    const stream work(cpu(), {0, "work"});
    array x = empty({test::size}, dtype::float64, load);
    racing_set(load, x, 1);
    try {
        racing_set(work, x, 2);
        std::puts("nothing raised");
    } catch (const race_error&) {
        std::puts("raised");
    }
    cpu().synchronize();
    std::puts("the program ends");
    std::fflush(stdout);
}
TEST(CheckEnvironment, DISABLED_a_program_without) { const stream idle; }

/// What `test` prints with WEIR_CHECK set to `value`.
std::string output_with(const std::string& value, const std::string& test) {
    std::array<char, 4096> self{};
    EXPECT_GT(readlink("/proc/self/exe", self.data(), self.size() - 1), 0);
    const std::string command = "WEIR_CHECK='" + value + "' '" + self.data() +
                                "' --gtest_also_run_disabled_tests --gtest_filter=CheckEnvironment.DISABLED_" + test +
                                " 2>&1";
    std::FILE* const child = popen(command.c_str(), "r");
    if (child == nullptr) {
        ADD_FAILURE() << "cannot run " << command;
        return {};
    }
    std::string text;
    std::array<char, 4096> part{};
    while (std::fgets(part.data(), static_cast<int>(part.size()), child) != nullptr) {
        text += part.data();
    }
    EXPECT_EQ(pclose(child), 0) << text;
    return text;
}

TEST(CheckEnvironment, V1_reports_at_the_exit) {
    for (const char* value : {"1", "collect"}) {
        const std::string text = output_with(value, "a_program_with_a_race");
        EXPECT_THAT(text, AllOf(HasSubstr("nothing raised"), HasSubstr("1 race found"), HasSubstr("WAW race on memory"),
                                HasSubstr("work.wait(e)")));
        EXPECT_LT(text.find("the program ends"), text.find("WAW race"));
    }
    EXPECT_THAT(output_with("1", "a_program_without"), HasSubstr("no races found"));
}

TEST(CheckEnvironment, V1_warns_at_once) {
    const std::string text = output_with("warn", "a_program_with_a_race");
    EXPECT_LT(text.find("WAW race"), text.find("1 race found"));
}

TEST(CheckEnvironment, V1_raises) {
    EXPECT_THAT(output_with("raise", "a_program_with_a_race"),
                AllOf(Not(HasSubstr("nothing raised")), HasSubstr("raised"), HasSubstr("1 race found")));
}

TEST(CheckEnvironment, V1_says_what_it_does_not_understand) {
    EXPECT_THAT(output_with("yes please", "a_program_with_a_race"),
                AllOf(HasSubstr("WEIR_CHECK=yes please: nothing is checked"), Not(HasSubstr("race found"))));
}

TEST(CheckEnvironment, V1_control_without_it_nothing_is_reported) {
    for (const char* value : {"", "0"}) {
        EXPECT_THAT(output_with(value, "a_program_with_a_race"), Not(HasSubstr("race found")));
    }
}

}  // namespace
}  // namespace weir
