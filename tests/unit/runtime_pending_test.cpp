// A stream's record of its pending operations.
#include <gtest/gtest.h>

#include <initializer_list>
#include <span>
#include <vector>

#include "runtime/submission/pending.hpp"
#include "support/tracked.hpp"

namespace weir {
namespace {

using runtime::pending_kind;
using runtime::pending_operations;
using test::tracked;

class Pending : public ::testing::Test {
protected:
    /// Adds an operation that writes `x`, reads [0, at) of `y`, waits for one point and depends on two.
    void add(frontiers::epoch at) {
        const std::vector<runtime::access_request> accesses{x.writes(), y.reads(0, at)};
        const std::vector<completion> after{{detail::key, 7, at, nullptr}, {detail::key, 8, at, nullptr}};
        const std::vector<order::wait> waits{{{{6, at}, nullptr}, order::reason::reuse}};
        pending.reserve(2, 3, [&] { return completed; });
        pending_operations::addition added = pending.begin(at, {{}, {"label", {"file", "function", 3}}});
        for (const runtime::access_request& access : accesses) {
            added.add(access);
        }
        added.end(waits, after);
    }
    void expect_entry(frontiers::epoch at) {
        const auto found = pending.find(at);
        ASSERT_TRUE(found) << at;
        EXPECT_EQ(found->at(), at);
        EXPECT_STREQ(found->from().label, "label");
        ASSERT_EQ(found->accesses(), 2U);
        EXPECT_EQ(found->access(0).resource, x.id());
        EXPECT_TRUE(found->access(0).writes());
        EXPECT_EQ(found->access(1).of->owner, y.id());
        EXPECT_EQ(found->access(1).where.end, at);
        EXPECT_FALSE(found->access(1).writes());
        ASSERT_EQ(found->waits(), 1U);
        EXPECT_EQ(found->wait(0), (frontiers::point{6, at}));
        ASSERT_EQ(found->dependencies(), 2U);
        EXPECT_EQ(found->dependency(1), (frontiers::point{8, at}));
    }

    tracked x;
    tracked y{1 << 20};
    pending_operations pending;
    frontiers::epoch completed = 0;
};

TEST_F(Pending, NothingThatIsNotOverIsForgotten) {
    for (frontiers::epoch at = 1; at <= 5000; ++at) {
        add(at);
        completed = at / 2;
    }
    for (frontiers::epoch at = completed + 1; at <= 5000; ++at) {
        expect_entry(at);
    }
    EXPECT_FALSE(pending.find(5001));
    EXPECT_FALSE(pending.find(0));
}

TEST_F(Pending, ItStaysSmallAsLongAsTheWorkIsDone) {
    for (frontiers::epoch at = 1; at <= 100000; ++at) {
        add(at);
        completed = at < 10 ? 0 : at - 10;
        ASSERT_LE(pending.size(), 128U);
    }
    expect_entry(100000);
    expect_entry(99991);
}

TEST_F(Pending, AfterABurstItComesBackToItsSize) {
    for (frontiers::epoch at = 1; at <= 100000; ++at) {
        add(at);
    }
    for (frontiers::epoch at = 100001; at <= 1000000; ++at) {
        completed = at - 1;
        add(at);
    }
    EXPECT_LE(pending.size(), 40000U);
    expect_entry(1000000);
}

TEST_F(Pending, AnOperationWithOneAccessIsNotedAsAnyOther) {
    const std::vector<order::wait> waits{{{{6, 1}, nullptr}, {}}, {{{7, 2}, nullptr}, {}}, {{{8, 3}, nullptr}, {}}};
    frontiers::epoch at = 0;
    for (const std::size_t count : std::initializer_list<std::size_t>{0, 1, 3, 1, 0}) {
        const std::span<const order::wait> some = std::span(waits).first(count);
        for (const bool alone : {false, true}) {
            const detail::operation what{{}, {"label", {"file", "function", 3}}};
            ++at;
            pending.reserve(1, count, [&] { return completed; });
            if (alone) {
                pending.add_one(at, what, y.reads(2, 9), some);
            } else {
                pending_operations::addition added = pending.begin(at, what);
                added.add(y.reads(2, 9));
                added.end(some, {});
            }
            const auto found = pending.find(at);
            ASSERT_TRUE(found) << at;
            EXPECT_STREQ(found->from().label, "label");
            EXPECT_EQ(found->kind(), pending_kind::operation);
            ASSERT_EQ(found->accesses(), 1U);
            EXPECT_EQ(found->access(0).of->owner, y.id());
            EXPECT_EQ(found->access(0).where, (order::footprint{2, 9}));
            EXPECT_FALSE(found->access(0).writes());
            EXPECT_EQ(found->dependencies(), 0U);
            ASSERT_EQ(found->waits(), count);
            for (std::size_t i = 0; i < count; ++i) {
                EXPECT_EQ(found->wait(i), waits[i].target.at) << at;
            }
        }
    }
}

TEST_F(Pending, EntriesAreVisitedFromTheFirstThatIsNotOver) {
    const frontiers::point opened{9, 1};
    pending.reserve(0, 1, [] { return frontiers::epoch{0}; });
    pending.add(1, {"gate", {}}, pending_kind::gate, &opened);
    add(3);
    pending.reserve(0, 0, [] { return frontiers::epoch{0}; });
    pending.add(4, {"moment", {}}, pending_kind::moment, nullptr);
    std::vector<frontiers::epoch> seen;
    pending.each(1, [&](const pending_operations::entry& one) {
        seen.push_back(one.at());
        return true;
    });
    EXPECT_EQ(seen, (std::vector<frontiers::epoch>{3, 4}));
    EXPECT_EQ(pending.find(1)->wait(0), opened);
    EXPECT_EQ(pending.find(1)->dependencies(), 0U);
    EXPECT_EQ(pending.find(4)->waits(), 0U);
    expect_entry(3);
}

}  // namespace
}  // namespace weir
