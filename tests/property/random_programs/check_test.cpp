// What check reports, and how many waits Weir issues, compared with a brute-force model of each program.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <mutex>
#include <set>

#include "observe/observers.hpp"
#include "random_programs/census.hpp"
#include "random_programs/complete.hpp"
#include "random_programs/generate.hpp"
#include "random_programs/interpret.hpp"
#include "random_programs/oracle.hpp"
#include "random_programs/settings.hpp"
#include "random_programs/strip.hpp"
#include "support/step_pairs.hpp"
#include "weir/check.hpp"
#include "weir/trace.hpp"

namespace random_programs {
namespace {

program without(program raw, const std::set<step_kind>& kinds) {
    for (auto& phase : raw.phases) {
        for (auto& thread : phase) {
            std::erase_if(thread, [&](const step& one) { return kinds.count(one.kind) != 0; });
        }
    }
    return raw;
}

using weir::test::compare_pairs;
using weir::test::order_races;
using weir::test::pair_set;
using weir::test::pairs_of;
const std::set<std::string> drops{"use-after-free"};
const std::set<std::string> reuses{"early-reuse"};

/// Records where memory lies while it lives.
class address_book final : public weir::observe::observer {
public:
    address_book() { weir::observe::observers::add(*this); }
    ~address_book() override { weir::observe::observers::remove(*this); }

    void allocated(const weir::observe::observed_allocation& what) override {
        const std::lock_guard lock(mutex_);
        addresses_[static_cast<int>(what.from.line)] = static_cast<std::int64_t>(what.address / sizeof(double));
    }
    /// Of the memory that a step allocated, in elements.
    [[nodiscard]] std::int64_t operator()(int step) const { return addresses_.at(step); }

private:
    std::mutex mutex_;
    std::map<int, std::int64_t> addresses_;
};

std::string compare(const weir::report& found, const order_model& model, const address_book& addresses) {
    const pair_set pairs = pairs_of(found, order_races);
    const pair_set reused = pairs_of(found, reuses);
    const pair_set dropped = pairs_of(found, drops);
    pair_set both = pairs;
    both.insert(reused.begin(), reused.end());
    const std::vector<unordered_pair> unordered = unordered_pairs(model);
    // Among several that stand for each other at least one must be found.
    const std::string silent = both.empty() && !unordered.empty() ? "nothing reported\n" : "";
    return silent + compare_pairs(pairs, both, unordered) +
           compare_pairs(reused, both, early_reuses(model, std::cref(addresses))) +
           compare_pairs(dropped, dropped, unordered_drops(model));
}

TEST(random_programs_check, a_program_that_is_ordered_has_nothing_but_drops_to_report) {
    const std::string name = "random_programs_check.a_program_that_is_ordered_has_nothing_but_drops_to_report";
    watchdog dog(name);
    census counted;
    for (std::uint64_t i = 0; i < wanted_programs(10); ++i) {
        const std::uint64_t seed = first_seed() + i;
        dog.start(seed);
        const program completed = complete(generate(seed));
        const weir::check_scope scope;
        const expectation wanted = expected(completed);
        const outcome result = run(completed, wanted);
        counted.count(completed, wanted, result.reuses);
        EXPECT_TRUE(result.ok()) << result.wrong << "\n" << replay_command(seed, name);
        // Where the program orders accesses itself, it does not order drops after them.
        const weir::report found = scope.report();
        ASSERT_TRUE(pairs_of(found, order_races).empty()) << found.to_string() << replay_command(seed, name) << "\n"
                                                          << to_string(completed);
    }
    EXPECT_EQ(counted.rare_features(), "");
}

TEST(random_programs_check, of_drops_exactly_those_are_reported_that_manual_accesses_are_not_ordered_before) {
    const std::string name =
        "random_programs_check.of_drops_exactly_those_are_reported_that_manual_accesses_are_not_ordered_before";
    watchdog dog(name);
    std::size_t reported = 0;
    for_each_serial_seed(10, [&](std::uint64_t seed) {
        dog.start(seed);
        const program completed = complete(without(generate(seed), {step_kind::query}));
        const weir::check_scope scope;
        const address_book addresses;
        const outcome result = run(completed, expected(completed));
        EXPECT_TRUE(result.ok()) << result.wrong << "\n" << replay_command(seed, name);
        const std::string wrong = compare(scope.report(), model_of(completed, {.automatic = true}), addresses);
        EXPECT_EQ(wrong, "") << replay_command(seed, name) << "\n" << to_string(completed);
        reported += pairs_of(scope.report(), drops).size();
    });
    std::printf("%zu drops came too early\n", reported);
}

TEST(random_programs_check, without_any_ordering_exactly_the_unordered_pairs_are_reported) {
    const std::string name = "random_programs_check.without_any_ordering_exactly_the_unordered_pairs_are_reported";
    watchdog dog(name);
    census counted;
    int races = 0;
    std::size_t reused = 0;
    for_each_serial_seed(10, [&](std::uint64_t seed) {
        dog.start(seed);
        const program bare = strip(complete(generate(seed)), gate_opening::as_written).steps;
        const weir::check_scope scope;
        const address_book addresses;
        // Under check the program is safe, and its results are right, although nothing orders its accesses.
        const expectation wanted = expected(bare);
        const outcome result = run(bare, wanted);
        counted.count(bare, wanted, result.reuses);
        EXPECT_TRUE(result.ok()) << result.wrong << "\n" << replay_command(seed, name);
        const order_model model = model_of(bare, {.automatic = false});
        const std::string wrong = compare(scope.report(), model, addresses);
        EXPECT_EQ(wrong, "") << replay_command(seed, name) << "\n" << to_string(bare);
        races += unordered_pairs(model).empty() ? 0 : 1;
        reused += pairs_of(scope.report(), reuses).size();
    });
    EXPECT_EQ(counted.rare_features(), counted.programs() < 500 ? "" : "telling; ")
        << "the host does not wait for streams";
    std::printf("%d programs raced, %zu accesses came upon earlier owners'\n", races, reused);
}

TEST(random_programs_check, assuming_manual_exactly_what_the_program_itself_leaves_unordered_is_reported) {
    const std::string name =
        "random_programs_check.assuming_manual_exactly_what_the_program_itself_leaves_unordered_is_reported";
    watchdog dog(name);
    census counted;
    int races = 0;
    for_each_serial_seed(10, [&](std::uint64_t seed) {
        dog.start(seed);
        // The answer to a query whether work is complete, and so what it orders, depends on timing.
        const program completed = complete(without(generate(seed), {step_kind::query}));
        const weir::check_scope scope({.assume_manual = true});
        const address_book addresses;
        const expectation wanted = expected(completed);
        const outcome result = run(completed, wanted);
        counted.count(completed, wanted, result.reuses);
        EXPECT_TRUE(result.ok()) << result.wrong << "\n" << replay_command(seed, name);
        const order_model model = model_of(completed, {.automatic = false});
        const std::string wrong = compare(scope.report(), model, addresses);
        EXPECT_EQ(wrong, "") << replay_command(seed, name) << "\n" << to_string(completed);
        races += unordered_pairs(model).empty() ? 0 : 1;
    });
    EXPECT_EQ(counted.rare_features(), "");
    std::printf("%d programs leave something to Weir\n", races);
}

/// Counts, for each operation, the waits that Weir issued for the program's accesses and `after`.
class wait_counter final : public weir::observe::observer {
public:
    wait_counter() { weir::observe::observers::add(*this); }
    ~wait_counter() override { weir::observe::observers::remove(*this); }

    void operation(const weir::observe::observed_operation& what) override {
        const std::lock_guard lock(mutex_);
        for (const weir::observe::observed_wait& wait : what.waits) {
            // Waits for former owners of memory are counted apart (rule O10).
            issued_[what.from.where.line] += wait.why != weir::order::reason::reuse ? 1 : 0;
        }
    }
    [[nodiscard]] int issued(int number) const { return issued_.at(static_cast<std::size_t>(number)); }

private:
    std::mutex mutex_;
    std::array<int, most_steps> issued_{};
};

/// The fewest waits that order an operation: for the latest points that it must come after and its stream does not.
int fewest_waits(const order_model& model, const order_model::node& operation) {
    step_set missing = operation.past & ~operation.tail;
    missing.reset(static_cast<std::size_t>(operation.number));
    const step_set all = missing;
    for (const order_model::node& past : model.nodes()) {
        const auto number = static_cast<std::size_t>(past.number);
        if (all.test(number)) {
            step_set before = past.past;
            before.reset(number);
            missing &= ~before;
        }
    }
    return static_cast<int>(missing.count());
}

TEST(random_programs_evidence, no_operation_waits_for_more_than_is_minimal) {
    const std::string name = "random_programs_evidence.no_operation_waits_for_more_than_is_minimal";
    watchdog dog(name);
    census counted;
    int issued = 0;
    int minimal = 0;
    for_each_serial_seed(10, [&](std::uint64_t seed) {
        dog.start(seed);
        const program completed = complete(generate(seed));
        wait_counter counter;
        const expectation wanted = expected(completed);
        const outcome result = run(completed, wanted);
        counted.count(completed, wanted, result.reuses);
        EXPECT_TRUE(result.ok()) << result.wrong << "\n" << replay_command(seed, name);
        const order_model model = model_of(completed, {.automatic = true});
        for (const order_model::node& one : model.nodes()) {
            if (one.stream == none || one.touches.empty()) {
                continue;
            }
            const int fewest = fewest_waits(model, one);
            EXPECT_LE(counter.issued(one.number), fewest) << "operation #" << one.number << "\n"
                                                          << replay_command(seed, name) << "\n"
                                                          << to_string(completed);
            issued += counter.issued(one.number);
            minimal += fewest;
        }
    });
    EXPECT_EQ(counted.rare_features(), "");
    std::printf("%d waits issued where %d are minimal, had nothing been over by luck\n", issued, minimal);
}

TEST(random_programs_evidence, the_minimum_that_a_trace_states_is_that_of_the_model) {
    const std::string name = "random_programs_evidence.the_minimum_that_a_trace_states_is_that_of_the_model";
    watchdog dog(name);
    for_each_serial_seed(10, [&](std::uint64_t seed) {
        dog.start(seed);
        // Without the program's own waits, which need not be minimal, and without what depends on timing.
        const program completed =
            complete(without(generate(seed), {step_kind::wait_event, step_kind::wait_stream, step_kind::wait_operation,
                                              step_kind::order_array, step_kind::order_stream, step_kind::order_scope,
                                              step_kind::order_process, step_kind::query}));
        const weir::trace_scope trace;
        const outcome result = run(completed, expected(completed));
        EXPECT_TRUE(result.ok()) << result.wrong << "\n" << replay_command(seed, name);
        const order_model model = model_of(completed, {.automatic = true});
        int minimal = 0;
        for (const order_model::node& one : model.nodes()) {
            minimal += one.stream == none ? 0 : fewest_waits(model, one);
        }
        const weir::trace_summary summary = trace.summary();
        EXPECT_EQ(summary.waits_minimal, static_cast<std::uint64_t>(minimal)) << replay_command(seed, name) << "\n"
                                                                              << to_string(completed);
        EXPECT_LE(summary.waits_issued, summary.waits_minimal) << replay_command(seed, name);
    });
}

}  // namespace
}  // namespace random_programs
