// The evidence logs of random programs, audited by the independent verifier and held against the model (rule V4).
#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <set>
#include <sstream>

#include "random_programs/census.hpp"
#include "random_programs/complete.hpp"
#include "random_programs/generate.hpp"
#include "random_programs/interpret.hpp"
#include "random_programs/oracle.hpp"
#include "random_programs/settings.hpp"
#include "random_programs/strip.hpp"
#include "trace/collector.hpp"
#include "trace/log_writer.hpp"
#include "verify/auditor.hpp"
#include "verify/reader.hpp"
#include "verify/report.hpp"

namespace random_programs {
namespace {

namespace audit = weir_verify;

/// Notes what happens while it lives.
class noted {
public:
    noted() {
        weir::runtime::observers::add(told_);
        told_.knows_all_streams();
    }
    ~noted() { weir::runtime::observers::remove(told_); }
    noted(const noted&) = delete;
    noted& operator=(const noted&) = delete;

    /// The log so far, as it would be written.
    [[nodiscard]] std::string text() const {
        std::ostringstream text;
        told_.read([&](const weir::trace::log& kept) { weir::trace::write_log(text, kept); });
        return text.str();
    }

private:
    weir::trace::collector told_;
};

/// Audits a log whose records are changed first.
audit::auditor audited(
    const std::string& text, audit::audit_options options,
    const std::function<void(audit::record&)>& change = [](audit::record&) {}) {
    static audit::text_store texts;  // for what was found
    std::istringstream from(text);
    audit::log_reader reader(from, texts);
    audit::auditor auditor(options);
    while (auto one = reader.next()) {
        change(*one);
        auditor.take(*one);
    }
    return auditor;
}

std::string to_string(const audit::findings& found) {
    std::string said;
    for (const audit::finding& one : found.all()) {
        said += one.weight == audit::severity::information ? "" : to_string(one, "log");
    }
    return said;
}

/// Whether the audit found nothing; prints what it found, and the log, otherwise.
::testing::AssertionResult is_proved(const audit::auditor& auditor, const std::string& log) {
    const auto count = auditor.found().count(audit::severity::violation) + auditor.found().count(audit::severity::note);
    return count == 0 ? ::testing::AssertionSuccess()
                      : ::testing::AssertionFailure() << to_string(auditor.found()) << "\n"
                                                      << log;
}

using pair_set = std::set<std::pair<int, int>>;

pair_set pairs_of(const audit::findings& found) {
    pair_set pairs;
    for (const audit::finding& one : found.all()) {
        const std::string kind = one.kind;
        if ((kind == "unordered" || kind == "host") && *one.here.from.file == "program") {
            pairs.emplace(static_cast<int>(one.other->from.line), static_cast<int>(one.here.from.line));
        }
    }
    return pairs;
}

std::string to_string(const pair_set& pairs) {
    std::string text;
    for (const auto& [first, second] : pairs) {
        text += " #" + std::to_string(first) + "-#" + std::to_string(second);
    }
    return text.empty() ? " none" : text;
}

/// What is wrong; empty if each pair that is reported is unordered, and each unordered one is reported, unless an access
/// in between stands for its first one.
std::string compare(const pair_set& reported, const std::vector<unordered_pair>& unordered) {
    pair_set missing;
    pair_set wrong = reported;
    for (const unordered_pair& one : unordered) {
        wrong.erase({one.first, one.second});
        if (one.certain && !reported.contains({one.first, one.second})) {
            missing.emplace(one.first, one.second);
        }
    }
    if (missing.empty() && wrong.empty() && reported.empty() == unordered.empty()) {
        return {};
    }
    return "not found:" + to_string(missing) + "; found but ordered:" + to_string(wrong) + "\n";
}

/// Leaves of a log the program's own order alone: what Weir added is taken out.
void take_out_what_weir_did(audit::record& one) {
    if (auto* const operation = std::get_if<audit::operation_record>(&one.what)) {
        operation->waits.clear();
        operation->elisions.clear();
        for (const audit::moment& after : operation->after) {
            operation->waits.push_back({after, false});
        }
    } else if (auto* const wait = std::get_if<audit::stream_wait_record>(&one.what)) {
        wait->issued = true;
    } else if (auto* const access = std::get_if<audit::host_access_record>(&one.what)) {
        access->what.manual = true;
    }
}

/// What is answered to a question whether work is over, and so what it orders, depends on luck.
program without_questions(program raw) {
    for (auto& phase : raw.phases) {
        for (auto& thread : phase) {
            std::erase_if(thread, [](const step& one) { return one.kind == step_kind::query; });
        }
    }
    return raw;
}

constexpr audit::audit_options own_order_only{.as_automatic = true, .trust_completion = false};

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
        // Forgetting what is over changes nothing.
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
        const std::vector<unordered_pair> unordered = unordered_pairs(model_of(completed, {.automatic = false}));
        EXPECT_EQ(compare(pairs_of(auditor.found()), unordered), "") << replay_command(seed, name) << "\n"
                                                                     << to_string(completed) << log;
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
        // What comes out is wrong or right by luck.
        const expectation wanted = expected(bare);
        static_cast<void>(run(bare, wanted, {.racing = true}));
        counted.count(bare, wanted, 0);
        const std::string log = trace.text();
        // Waits for former owners of memory are Weir's in any mode: not the program's order.
        const audit::auditor auditor = audited(log, own_order_only, take_out_what_weir_did);
        const std::vector<unordered_pair> unordered = unordered_pairs(model_of(bare, {.automatic = false}));
        EXPECT_EQ(compare(pairs_of(auditor.found()), unordered), "") << replay_command(seed, name) << "\n"
                                                                     << to_string(bare) << log;
        // Left to the program, nothing of it is wrong but for memory, which Weir does guard.
        const audit::auditor lenient = audited(log, {});
        EXPECT_EQ(lenient.found().count(audit::severity::violation), 0U)
            << to_string(lenient.found()) << replay_command(seed, name) << "\n"
            << log;
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
        // Luck may hide what is wrong from the results, not from the audit.
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
