// What the verifier proves, and what it finds: each rule with a log that breaks it and one that does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "verify_support.hpp"

namespace weir_verify::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

story two_streams() { return story().stream(1).stream(2); }

TEST(Verify, O1_conflicting_accesses_must_be_ordered) {
    EXPECT_THAT(two_streams().operation({1, 1}, {writes(7)}).operation({2, 1}, {reads(7)}).audit(),
                ElementsAre(Pair("unordered", 1)));
    EXPECT_THAT(two_streams().operation({1, 1}, {writes(7)}).operation({2, 1}, {reads(7)}, {{1, 1}}).audit(),
                IsEmpty());
    EXPECT_THAT(two_streams().operation({1, 1}, {reads(7)}).operation({2, 1}, {writes(7)}).audit(),
                ElementsAre(Pair("unordered", 1)));
    EXPECT_THAT(two_streams().operation({1, 1}, {reads(7)}).operation({2, 1}, {reads(7)}).audit(), IsEmpty());
    EXPECT_THAT(two_streams().operation({1, 1}, {writes(7)}).operation({1, 2}, {writes(7)}).audit(), IsEmpty());
}

TEST(Verify, O2_order_is_transitive) {
    story told = two_streams().stream(3);
    told.operation({1, 1}, {writes(7)}).operation({2, 1}, {writes(8)}, {{1, 1}});
    told.operation({3, 1}, {writes(7)}, {{2, 1}}, {{{1, 1}, witness_kind::other_wait, {2, 1}, false}});
    EXPECT_THAT(told.audit(), IsEmpty());
}

TEST(Verify, O3_only_what_overlaps_conflicts) {
    EXPECT_THAT(two_streams().operation({1, 1}, {writes(7, 0, 32)}).operation({2, 1}, {writes(7, 32, 64)}).audit(),
                IsEmpty());
    const auto column = [](std::uint64_t first) {
        return access{7, 64, {first, first + 52, 4, {{16, 4}}}, true, false};
    };
    EXPECT_THAT(two_streams().operation({1, 1}, {column(0)}).operation({2, 1}, {column(4)}).audit(), IsEmpty());
    EXPECT_THAT(two_streams().operation({1, 1}, {column(0)}).operation({2, 1}, {column(2)}).audit(),
                ElementsAre(Pair("unordered", 1)));
}

TEST(Verify, O5_what_the_program_orders_is_information_unless_it_is_asked_for) {
    const story told = two_streams().operation({1, 1}, {writes(7)}).operation({2, 1}, {manual(reads(7))});
    EXPECT_THAT(told.audit(), ElementsAre(Pair("manual", 1)));
    EXPECT_THAT(told.audit({.as_automatic = true}), ElementsAre(Pair("unordered", 1)));
    EXPECT_THAT(two_streams().operation({1, 1}, {manual(writes(7))}).operation({2, 1}, {reads(7)}).audit(),
                ElementsAre(Pair("unordered", 1)))
        << "going back to automatic is safe at once";
}

TEST(Verify, S6_what_the_device_orders_by_itself_is_order) {
    const auto audited = [](const char* first, const char* second, const char* device = "cuda:0") {
        story told = story().ordered_stream(1, first).ordered_stream(2, second, device);
        told.operation({1, 1}, {writes(7)}).device_order({2, 1}, {1, 1}).operation({2, 2}, {reads(7)});
        return told.audit();
    };
    EXPECT_THAT(audited("legacy", "blocking"), IsEmpty());
    EXPECT_THAT(audited("blocking", "legacy"), IsEmpty());
    EXPECT_THAT(audited("blocking", "blocking"), ElementsAre(Pair("witness", 1)));
    EXPECT_THAT(audited("legacy", "blocking", "cuda:1"), ElementsAre(Pair("witness", 1)));
    story plain = two_streams();
    plain.operation({1, 1}, {writes(7)}).device_order({2, 1}, {1, 1}).operation({2, 2}, {reads(7)});
    EXPECT_THAT(plain.audit(), ElementsAre(Pair("witness", 1)));
}

TEST(Verify, S3_waits_of_the_program_order) {
    story told = two_streams();
    told.operation({1, 1}, {writes(7)}).event(5, {1, 1}).wait({2, 1}, {1, 1}, true, 5).operation({2, 2}, {reads(7)});
    EXPECT_THAT(told.audit(), IsEmpty());
    story early = two_streams();
    early.operation({1, 1}, {}).event(5, {1, 1}).operation({1, 2}, {writes(7)}).wait({2, 1}, {1, 1}, true, 5);
    early.operation({2, 2}, {reads(7)});
    EXPECT_THAT(early.audit(), ElementsAre(Pair("unordered", 1))) << "what comes after the record is not covered";
    EXPECT_THAT(two_streams()
                    .operation({1, 1}, {})
                    .event(5, {1, 1})
                    .operation({1, 2}, {})
                    .wait({2, 1}, {1, 2}, true, 5)
                    .audit(),
                ElementsAre(Pair("event", 1)));
    EXPECT_THAT(two_streams().operation({1, 1}, {}).wait({2, 1}, {1, 1}, false).audit(),
                ElementsAre(Pair("witness", 1)));
}

TEST(Verify, O6_the_host_orders_by_waits_that_returned) {
    story told = two_streams();
    told.operation({1, 1}, {writes(7)}).ran({1, 1}).host_wait({1, 1}).operation({2, 1}, {reads(7)});
    EXPECT_THAT(told.audit({.trust_completion = false}), IsEmpty());
    EXPECT_THAT(two_streams().operation({1, 1}, {writes(7)}).host_wait({1, 1}).audit(),
                ElementsAre(Pair("host-wait", 1)))
        << "nothing shows that it was over";
}

TEST(Verify, O6_the_host_comes_after_what_conflicts) {
    EXPECT_THAT(two_streams().operation({1, 1}, {writes(7)}).host_access(reads(7)).audit(),
                ElementsAre(Pair("host", 1)));
    EXPECT_THAT(two_streams().operation({1, 1}, {reads(7)}).host_access(reads(7)).audit(), IsEmpty());
    EXPECT_THAT(two_streams().operation({1, 1}, {writes(7)}).ran({1, 1}).host_access(reads(7)).audit(), IsEmpty());
    EXPECT_THAT(two_streams().operation({1, 1}, {writes(7)}).host_access(manual(reads(7))).audit(),
                ElementsAre(Pair("manual", 1)));
}

TEST(Verify, O10_what_had_run_comes_before_unless_that_is_not_to_count) {
    const story told = two_streams().operation({1, 1}, {writes(7)}).ran({1, 1}).operation({2, 1}, {reads(7)});
    EXPECT_THAT(told.audit(), IsEmpty());
    EXPECT_THAT(told.audit({.trust_completion = false}), ElementsAre(Pair("unordered", 1)));
    EXPECT_THAT(two_streams().operation({1, 1}, {writes(7)}).operation({2, 1}, {reads(7)}).ran({1, 1}).audit(),
                ElementsAre(Pair("unordered", 1)))
        << "what ran later proves nothing";
}

TEST(Verify, O2_every_kind_of_witness_is_checked) {
    const auto judge_claim = [](witness_kind because, moment target, moment witness) {
        story told = two_streams().stream(3);
        told.operation({1, 1}, {}).operation({1, 2}, {}).operation({3, 1}, {}, {{1, 1}}).ran({1, 1});
        told.operation({2, 1}, {}, {{1, 1}});
        told.operation({2, 2}, {}, {{3, 1}}, {{target, because, witness, false}});
        return told.audit();
    };
    const auto is_valid = IsEmpty();
    const auto is_wrong = ElementsAre(Pair("witness", 1));
    using enum witness_kind;
    EXPECT_THAT(judge_claim(same_stream, {2, 1}, {2, 1}), is_valid);
    EXPECT_THAT(judge_claim(same_stream, {1, 1}, {2, 1}), is_wrong);
    EXPECT_THAT(judge_claim(known, {1, 1}, {2, 1}), is_valid);
    EXPECT_THAT(judge_claim(known, {1, 2}, {2, 1}), is_wrong);
    EXPECT_THAT(judge_claim(known, {3, 1}, {2, 1}), is_wrong) << "its own wait is no earlier order";
    EXPECT_THAT(judge_claim(known, {1, 1}, {1, 1}), is_wrong) << "the witness is another stream's moment";
    EXPECT_THAT(judge_claim(complete, {1, 1}, {1, 1}), is_valid);
    EXPECT_THAT(judge_claim(complete, {1, 2}, {1, 2}), is_wrong);
    EXPECT_THAT(judge_claim(complete, {1, 1}, {1, 2}), is_wrong);
    EXPECT_THAT(judge_claim(other_wait, {1, 1}, {3, 1}), is_valid);
    EXPECT_THAT(judge_claim(other_wait, {1, 2}, {3, 1}), is_wrong) << "the other wait does not imply it";
    EXPECT_THAT(judge_claim(other_wait, {1, 1}, {1, 2}), is_wrong) << "there is no such wait";
    EXPECT_THAT(judge_claim(complete, {9, 9}, {9, 9}), ElementsAre(Pair("moment", 1)));
}

TEST(Verify, O2_other_waits_are_followed_to_one_that_was_issued) {
    const auto judge_claims = [](std::vector<elision> claims) {
        story told = two_streams().stream(3).stream(4);
        told.operation({1, 1}, {}).operation({2, 1}, {}, {{1, 1}}).operation({3, 1}, {}, {{2, 1}});
        told.operation({4, 1}, {}, {{3, 1}}, std::move(claims));
        return told.audit();
    };
    using enum witness_kind;
    EXPECT_THAT(judge_claims({{{1, 1}, other_wait, {2, 1}, false}, {{2, 1}, other_wait, {3, 1}, false}}), IsEmpty());
    EXPECT_THAT(judge_claims({{{1, 1}, other_wait, {2, 1}, false}}), ElementsAre(Pair("witness", 1)));
    story circle = two_streams().stream(3);
    circle.operation({1, 1}, {}).operation({2, 1}, {}, {{1, 1}});
    circle.operation({3, 1}, {}, {}, {{{1, 1}, other_wait, {1, 1}, false}, {{1, 1}, other_wait, {1, 1}, false}});
    EXPECT_THAT(circle.audit(), ElementsAre(Pair("witness", 2)));
}

TEST(Verify, O2_a_wait_that_is_implied_is_noted) {
    story told = two_streams();
    told.operation({1, 1}, {}).operation({2, 1}, {}, {{1, 1}}).operation({2, 2}, {}, {{1, 1}});
    EXPECT_THAT(told.audit(), ElementsAre(Pair("redundant-wait", 1)));
    EXPECT_THAT(
        two_streams().operation({1, 1}, {}).operation({1, 2}, {}).operation({2, 1}, {}, {{1, 1}, {1, 2}}).audit(),
        ElementsAre(Pair("redundant-wait", 1)));
}

// Threads report their operations after they have planned them: another thread's wait may come in between.
TEST(Verify, O2_what_another_thread_waited_for_meanwhile_makes_no_wait_redundant) {
    story told = two_streams().stream(3);
    told.operation({1, 1}, {}).operation({2, 1}, {}).ran({1, 1}).host_wait({1, 1});
    told.operation({3, 1}, {}, {{2, 1}, {1, 1}});
    EXPECT_THAT(told.audit(), IsEmpty());
}

TEST(Verify, D1_what_a_call_named_comes_first) {
    EXPECT_THAT(two_streams().operation({1, 1}, {}).operation({2, 1}, {}, {}, {}, {{1, 1}}).audit(),
                ElementsAre(Pair("after", 1)));
    EXPECT_THAT(two_streams().operation({1, 1}, {}).operation({2, 1}, {}, {{1, 1}}, {}, {{1, 1}}).audit(), IsEmpty());
}

TEST(Verify, L1_memory_is_reused_after_its_former_owner) {
    const auto reuse = [](std::uint64_t address, std::vector<moment> waits, access first) {
        story told = two_streams().allocate(7, 1000).operation({1, 1}, {writes(7)}).drop(7);
        told.allocate(8, address).operation({2, 1}, {first}, std::move(waits));
        return told.audit();
    };
    EXPECT_THAT(reuse(1000, {}, writes(8)), ElementsAre(Pair("reuse", 1)));
    EXPECT_THAT(reuse(1000, {}, manual(writes(8))), ElementsAre(Pair("reuse", 1))) << "not left to the program";
    EXPECT_THAT(reuse(1000, {}, reads(8)), ElementsAre(Pair("reuse", 1)));
    EXPECT_THAT(reuse(1000, {}, manual(reads(8))), ElementsAre(Pair("manual", 1)))
        << "the program orders its reads behind the new owner's writes, which are not left to it";
    const auto reuse_by_host = [](access first) {
        story told = two_streams().allocate(7, 1000).operation({1, 1}, {writes(7)}).drop(7);
        return told.allocate(8, 1000).host_access(first).audit();
    };
    EXPECT_THAT(reuse_by_host(writes(8)), ElementsAre(Pair("reuse", 1)));
    EXPECT_THAT(reuse_by_host(manual(writes(8))), ElementsAre(Pair("reuse", 1)));
    EXPECT_THAT(reuse_by_host(reads(8)), ElementsAre(Pair("reuse", 1)));
    EXPECT_THAT(reuse_by_host(manual(reads(8))), ElementsAre(Pair("manual", 1)));
    EXPECT_THAT(reuse(1000, {{1, 1}}, writes(8)), IsEmpty());
    EXPECT_THAT(reuse(1063, {}, writes(8)), ElementsAre(Pair("reuse", 1)));
    EXPECT_THAT(reuse(937, {}, writes(8)), ElementsAre(Pair("reuse", 1)));
    EXPECT_THAT(reuse(1064, {}, writes(8)), IsEmpty());
    EXPECT_THAT(reuse(1032, {}, writes(8, 32, 64)), IsEmpty()) << "of the part that is reused nothing is touched";
}

TEST(Verify, L1_reuse_through_an_owner_that_did_nothing) {
    story told = two_streams().allocate(7, 1000).operation({1, 1}, {writes(7)}).drop(7);
    told.allocate(8, 1000).drop(8).allocate(9, 1000).operation({2, 1}, {writes(9)});
    EXPECT_THAT(told.audit(), ElementsAre(Pair("reuse", 1)));
}

TEST(Verify, L1_a_write_of_the_new_owner_does_not_stand_for_the_former_one) {
    story told = two_streams().stream(3).allocate(7, 1000).operation({1, 1}, {writes(7)}).drop(7).allocate(8, 1000);
    told.operation({2, 1}, {writes(8)}, {{1, 1}}).operation({3, 1}, {manual(writes(8))});
    EXPECT_THAT(told.audit(), ElementsAre(Pair("manual", 1), Pair("reuse", 1)));
}

TEST(Verify, L1_nobody_owns_what_another_owns) {
    EXPECT_THAT(two_streams().allocate(7, 1000).allocate(8, 1063).audit(), ElementsAre(Pair("memory", 1)));
    EXPECT_THAT(two_streams().allocate(7, 1000).allocate(8, 1064).audit(), IsEmpty());
    EXPECT_THAT(two_streams().allocate(7, 1000).allocate(8, 1000, 64, 0).audit(), IsEmpty()) << "lent by others";
    EXPECT_THAT(two_streams().allocate(7, 1000, 64, 9).audit(), ElementsAre(Pair("stream", 1)));
    EXPECT_THAT(two_streams().allocate(7, 1000).allocate(7, 2000).audit(), ElementsAre(Pair("memory", 1)));
    EXPECT_THAT(two_streams().allocate(7, 1000).drop(7).drop(7).audit(), ElementsAre(Pair("memory", 1)));
    EXPECT_THAT(two_streams().allocate(7, 1000).drop(7).operation({1, 1}, {reads(7)}).audit(),
                ElementsAre(Pair("memory", 1)));
    EXPECT_THAT(two_streams().allocate(7, 1000, 32).operation({1, 1}, {reads(7)}).audit(),
                ElementsAre(Pair("memory", 1)));
    EXPECT_THAT(two_streams().operation({1, 1}, {reads(7, 32, 80)}).audit(), ElementsAre(Pair("memory", 1)));
}

TEST(Verify, S1_epochs_of_a_stream_follow_each_other) {
    EXPECT_THAT(two_streams().operation({1, 2}, {}).audit(), ElementsAre(Pair("epoch", 1)));
    EXPECT_THAT(two_streams().operation({1, 1}, {}).operation({1, 1}, {}).audit(), ElementsAre(Pair("epoch", 1)));
    EXPECT_THAT(two_streams().operation({1, 1}, {}).operation({1, 3}, {}).audit(), ElementsAre(Pair("epoch", 1)));
    EXPECT_THAT(story().stream(1, {}, false).operation({1, 9}, {}).operation({1, 10}, {}).audit(), IsEmpty());
    EXPECT_THAT(story().operation({1, 1}, {}).audit(), ElementsAre(Pair("stream", 1)));
    EXPECT_THAT(story().stream(1).stream(1).audit(), ElementsAre(Pair("stream", 1)));
}

TEST(Verify, S1_executions_follow_the_order_that_they_prove) {
    EXPECT_THAT(two_streams().ran({1, 1}).audit(), ElementsAre(Pair("execution", 1)));
    EXPECT_THAT(two_streams().operation({1, 1}, {}).ran({1, 1}).ran({1, 1}).audit(), ElementsAre(Pair("execution", 1)));
    EXPECT_THAT(two_streams().operation({1, 1}, {}).operation({1, 2}, {}).ran({1, 2}).ran({1, 1}).audit(),
                ElementsAre(Pair("execution", 1)));
    EXPECT_THAT(two_streams().operation({1, 1}, {}).operation({2, 1}, {}, {{1, 1}}).ran({2, 1}).ran({1, 1}).audit(),
                ElementsAre(Pair("execution", 1)))
        << "it did not wait";
    EXPECT_THAT(two_streams().operation({1, 1}, {}).wait({2, 1}, {1, 1}).ran({2, 1}).audit(),
                ElementsAre(Pair("execution", 1)));
}

TEST(Verify, S5_a_queue_that_is_adopted_again_goes_on_where_it_was) {
    const auto adopted = [](std::uint64_t queue) {
        story told = two_streams().operation({1, 1}, {writes(7)}).stream(3, {}, true, 5).wait({3, 1}, {1, 1});
        told.stream(9, {}, true, queue);  // in between, without anything to do
        told.stream(4, {}, true, queue).event(0, {4, 1}).wait({2, 1}, {4, 1}).operation({2, 2}, {writes(7)});
        return told.audit();
    };
    EXPECT_THAT(adopted(5), IsEmpty());
    EXPECT_THAT(adopted(6), ElementsAre(Pair("unordered", 1)));
}

TEST(Verify, K4_what_failed_is_over) {
    story told = two_streams().operation({1, 1}, {writes(7)}).operation({2, 1}, {writes(7)}, {{1, 1}});
    told.failed({1, 1}).ran({1, 1}).failed({2, 1}).host_wait({2, 1}).host_access(writes(7));
    EXPECT_THAT(told.audit(), IsEmpty());
    EXPECT_THAT(told.audit({.window = 1}), IsEmpty()) << "however soon what is over is forgotten";
    EXPECT_THAT(two_streams().operation({1, 1}, {}).failed({1, 1}).ran({1, 1}).ran({1, 1}).audit(),
                ElementsAre(Pair("execution", 1)));
    EXPECT_THAT(two_streams().failed({1, 1}).audit(), ElementsAre(Pair("execution", 1)));
}

TEST(Verify, S1_a_stream_that_goes_on_with_the_positions_of_another_comes_after_it) {
    const auto heir = [](bool is_over) {
        story told = two_streams().operation({1, 1}, {writes(7)});
        if (is_over) {
            told.ran({1, 1});
        }
        told.stream(3, {1, 1}).operation({3, 2}, {writes(7)}, {}, {{{1, 1}, witness_kind::same_stream, {1, 1}, false}});
        return told.audit();
    };
    EXPECT_THAT(heir(true), IsEmpty());
    EXPECT_THAT(heir(false), ElementsAre(Pair("stream", 1), Pair("unordered", 1)));
}

TEST(Verify, V4_a_gate_is_over_when_what_it_held_back_is) {
    story told = two_streams().operation({1, 1}, {writes(7)}).gate({1, 2}).ran({1, 1}).host_wait({1, 2});
    EXPECT_THAT(told.audit(), IsEmpty());
    EXPECT_THAT(told.gate({1, 3}).ran({1, 3}).audit(), ElementsAre(Pair("execution", 1)));
}

TEST(Verify, X6_a_mark_in_a_queue_that_others_use_takes_a_position_of_its_own) {
    story told = two_streams().operation({1, 1}, {writes(7)}).event(0, {1, 2}).operation({2, 1}, {reads(7)}, {{1, 2}});
    told.operation({1, 3}, {});
    EXPECT_THAT(told.audit(), IsEmpty());
    EXPECT_THAT(two_streams().operation({1, 1}, {}).event(0, {1, 3}).audit(), ElementsAre(Pair("moment", 1)));
}

TEST(Verify, V4_what_was_before_the_log_is_trusted_and_counted) {
    story told = story().stream(1, {}, false).stream(2, {}, false);
    told.operation({1, 50}, {reads(7)}, {{2, 8}}, {{{2, 7}, witness_kind::known, {1, 49}, false}});
    EXPECT_THAT(told.audit(), IsEmpty());
    auditor one;
    for (const record& each : told.records()) {
        one.take(each);
    }
    EXPECT_EQ(one.summary().trusted, 3U) << "a wait, an elision, a piece of memory";
}

TEST(Verify, V4_faults_are_reported_once_for_each_pair_of_lines) {
    story told = two_streams().operation({1, 1}, {writes(7), writes(8), writes(9)});
    told.operation({2, 1}, {writes(7), writes(8), writes(9)});
    auditor one;
    for (const record& each : told.records()) {
        one.take(each);
    }
    ASSERT_EQ(one.found().all().size(), 1U);
    const finding& found = one.found().all()[0];
    EXPECT_EQ(found.times, 3U);
    EXPECT_EQ(found.here.from.line, 201U);
    EXPECT_EQ(found.other->from.line, 101U);
    EXPECT_EQ(found.missing, "a wait for [1, 1] before [2, 1]");
    const std::string said = to_string(found, "run.weirlog");
    for (const char* const words : {"violation: unordered", "main.cpp:201", "main.cpp:101", "run.weirlog:5",
                                    "run.weirlog:4", "bytes [0, 64) of memory 7", "stream 2 \"s2\", epoch 1"}) {
        EXPECT_NE(said.find(words), std::string::npos) << said;
    }
}

}  // namespace
}  // namespace weir_verify::testing
