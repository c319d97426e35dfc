// The evidence logs of random programs, audited by the independent verifier and compared with the model (rule V4).
#include <gtest/gtest.h>

#include <cstdio>

#include "random_programs/census.hpp"
#include "random_programs/complete.hpp"
#include "random_programs/generate.hpp"
#include "random_programs/interpret.hpp"
#include "random_programs/oracle.hpp"
#include "random_programs/settings.hpp"
#include "random_programs/strip.hpp"
#include "support/evidence.hpp"

namespace random_programs {
namespace {

namespace audit = weir_verify;
using weir::test::audited;
using weir::test::compare_pairs;
using weir::test::is_proved;
using weir::test::noted;
using weir::test::own_order_only;
using weir::test::pairs_of;
using weir::test::take_out_what_weir_did;

/// The answer to a query whether work is complete, and so what it orders, depends on timing.
program without_questions(program raw) {
    for (auto& phase : raw.phases) {
        for (auto& thread : phase) {
            std::erase_if(thread, [](const step& one) { return one.kind == step_kind::query; });
        }
    }
    return raw;
}

TEST(random_programs_verify, V4_what_Weir_orders_is_proved_by_its_log) {
    const std::string name = "random_programs_verify.V4_what_Weir_orders_is_proved_by_its_log";
    watchdog dog(name);
    census counted;
    audit::audit_summary all;
    for (std::uint64_t i = 0; i < wanted_programs(10); ++i) {
        const std::uint64_t seed = first_seed() + i;
        dog.start(seed);
        const program completed = complete(generate(seed));
        const noted trace;
        const expectation wanted = expected(completed);
        const outcome result = run(completed, wanted);
        counted.count(completed, wanted, result.reuses);
        EXPECT_TRUE(result.ok()) << result.wrong << "\n" << replay_command(seed, name);
        const std::string log = trace.text();
        const audit::auditor auditor = audited(log, {});
        ASSERT_TRUE(is_proved(auditor, log)) << replay_command(seed, name) << "\n" << to_string(completed);
        all.operations += auditor.summary().operations;
        all.waits += auditor.summary().waits;
        all.elisions += auditor.summary().elisions;
        all.conflicts += auditor.summary().conflicts;
        all.by_completion += auditor.summary().by_completion;
        // Forgetting what is complete changes nothing.
        ASSERT_TRUE(is_proved(audited(log, {.window = 1 + seed % 7}), log)) << replay_command(seed, name);
    }
    EXPECT_EQ(counted.rare_features(), "");
    std::printf("%llu operations, %llu waits, %llu elisions; %llu conflicts, %llu of them in order by completion\n",
                static_cast<unsigned long long>(all.operations), static_cast<unsigned long long>(all.waits),
                static_cast<unsigned long long>(all.elisions), static_cast<unsigned long long>(all.conflicts),
                static_cast<unsigned long long>(all.by_completion));
}

TEST(random_programs_verify, V4_without_Weirs_waits_exactly_what_the_program_leaves_unordered_is_found) {
    const std::string name =
        "random_programs_verify.V4_without_Weirs_waits_exactly_what_the_program_leaves_unordered_is_found";
    watchdog dog(name);
    census counted;
    int races = 0;
    for_each_serial_seed(10, [&](std::uint64_t seed) {
        dog.start(seed);
        const program completed = complete(without_questions(generate(seed)));
        const noted trace;
        const expectation wanted = expected(completed);
        const outcome result = run(completed, wanted);
        counted.count(completed, wanted, result.reuses);
        EXPECT_TRUE(result.ok()) << result.wrong << "\n" << replay_command(seed, name);
        const std::string log = trace.text();
        const audit::auditor auditor = audited(log, own_order_only, take_out_what_weir_did);
        // Among several that stand for each other at least one is found.
        const std::vector<unordered_pair> unordered = unordered_pairs(model_of(completed, {.automatic = false}));
        const auto found = pairs_of(auditor.found());
        EXPECT_EQ(compare_pairs(found, found, unordered), "") << replay_command(seed, name) << "\n"
                                                              << to_string(completed) << log;
        EXPECT_EQ(found.empty(), unordered.empty()) << replay_command(seed, name);
        races += unordered.empty() ? 0 : 1;
    });
    EXPECT_EQ(counted.rare_features(), "");
    std::printf("%d programs leave something to Weir\n", races);
}

TEST(random_programs_verify, V4_in_programs_that_nobody_orders_exactly_the_unordered_pairs_are_found) {
    const std::string name =
        "random_programs_verify.V4_in_programs_that_nobody_orders_exactly_the_unordered_pairs_are_found";
    watchdog dog(name);
    census counted;
    int races = 0;
    for_each_serial_seed(10, [&](std::uint64_t seed) {
        dog.start(seed);
        const program bare = strip(complete(generate(seed)), gate_opening::late).steps;
        const noted trace;
        // Whether the results are right depends on timing.
        const expectation wanted = expected(bare);
        static_cast<void>(run(bare, wanted, {.racing = true}));
        counted.count(bare, wanted, 0);
        const std::string log = trace.text();
        // Waits for former owners of memory are Weir's in any mode, and are not the program's order.
        const audit::auditor auditor = audited(log, own_order_only, take_out_what_weir_did);
        // Among several that stand for each other at least one is found.
        const std::vector<unordered_pair> unordered = unordered_pairs(model_of(bare, {.automatic = false}));
        const auto found = pairs_of(auditor.found());
        EXPECT_EQ(compare_pairs(found, found, unordered), "") << replay_command(seed, name) << "\n"
                                                              << to_string(bare) << log;
        // Where the program orders, the verifier finds nothing wrong except for memory, which Weir does guard.
        const audit::auditor lenient = audited(log, {});
        EXPECT_EQ(lenient.found().count(audit::severity::violation), 0U)
            << weir::test::to_string(lenient.found()) << replay_command(seed, name) << "\n"
            << log;
        EXPECT_EQ(found.empty(), unordered.empty()) << replay_command(seed, name);
        races += unordered.empty() ? 0 : 1;
    });
    EXPECT_EQ(counted.rare_features(), counted.programs() < 500 ? "" : "telling; ")
        << "the host does not wait for streams";
    std::printf("%d programs raced\n", races);
}

TEST(random_programs_verify, L1_memory_that_is_handed_on_too_early_is_found) {
    const std::string name = "random_programs_verify.L1_memory_that_is_handed_on_too_early_is_found";
    watchdog dog(name);
    int programs = 0;
    int found = 0;
    for_each_serial_seed(50, [&](std::uint64_t seed) {
        dog.start(seed);
        program completed = complete(generate_reuse(seed));
        completed.tight.reset();
        const expectation wanted = expected(completed);
        {
            const noted trace;
            EXPECT_TRUE(run(completed, wanted, {.racing = true}).ok()) << replay_command(seed, name);
            const std::string log = trace.text();
            EXPECT_TRUE(is_proved(audited(log, {}), log)) << replay_command(seed, name);
        }
        const noted trace;
        const bool failed = !run(completed, wanted, {.racing = true, .forget_frontiers = true}).ok();
        const audit::auditor auditor = audited(trace.text(), {});
        bool reuse = false;
        for (const audit::finding& one : auditor.found().all()) {
            reuse = reuse || std::string(one.kind) == "reuse";
        }
        // By chance the results may be right, but the audit still finds the error.
        EXPECT_TRUE(reuse || !failed) << replay_command(seed, name) << "\n" << trace.text();
        ++programs;
        found += reuse ? 1 : 0;
    });
    std::printf("without death frontiers, memory was reused too early in %d of %d programs\n", found, programs);
    if (programs >= 100) {
        EXPECT_GT(found, 0);
    }
}

}  // namespace
}  // namespace random_programs
