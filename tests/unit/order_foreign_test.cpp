// Peers: streams of packages that share memory with Weir (rules O2, X6, X7).
#include "order/foreign.hpp"

#include <gtest/gtest.h>

#include "order_support.hpp"

namespace weir::order::test {
namespace {

/// As the runtime does: a fresh point, unless the operation runs on the package's own stream.
void enter(plan& into, sequencer& package) {
    if (into.self() != package.timeline()) {
        const mark entry = package.enter_foreign();  // the package keeps its clock
        into.need(entry, reason::entry);
    }
}

// One operation of `stream` on an operand that is shared with the package whose current stream is `package`.
struct bracket {
    std::size_t entries = 0;
    std::size_t exits = 0;
};

bracket run(sequencer& stream, sequencer& package, const watermarks& completed) {
    plan entry = stream.next(completed);
    enter(entry, package);
    entry.resolve();
    const mark done = stream.reserve(entry.clock_after());
    plan exit = hand_back(package, done, completed);
    if (!exit.waits().empty()) {
        package.reserve(exit.clock_after());
    }
    return {entry.waits().size(), exit.waits().size()};
}

TEST(X6, AnOperationWaitsForThePackageAndThePackageForTheOperation) {
    const nothing_completes completed;
    sequencer stream{1};
    sequencer package{2};
    for (int i = 0; i < 3; ++i) {
        const bracket waits = run(stream, package, completed);
        EXPECT_EQ(waits.entries, 1U) << "each time anew: the package may have enqueued more";
        EXPECT_EQ(waits.exits, 1U);
    }
    EXPECT_TRUE(package.known()->covers(stream.record().at));
}

TEST(X6, OnThePackagesOwnStreamItCostsNothing) {
    const nothing_completes completed;
    sequencer package{2};
    const bracket waits = run(package, package, completed);
    EXPECT_EQ(waits.entries + waits.exits, 0U);
    EXPECT_EQ(package.tail(), 1U) << "the operation's own epoch and no other";
}

TEST(X6, ReasonsSayEntryAndExit) {
    const nothing_completes completed;
    sequencer stream{1};
    sequencer package{2};
    plan p = stream.next(completed);
    enter(p, package);
    ASSERT_EQ(p.waits().size(), 1U);
    EXPECT_EQ(p.waits()[0].why, reason::entry);
    plan exit = hand_back(package, stream.reserve(), completed);
    ASSERT_EQ(exit.waits().size(), 1U);
    EXPECT_EQ(exit.waits()[0].why, reason::exit);
}

TEST(X6, AnOperationThatIsOverNeedsNoExit) {
    set_watermarks completed;
    sequencer stream{1};
    sequencer package{2};
    const mark done = stream.reserve();
    completed.set(1, done.at.at);
    EXPECT_TRUE(hand_back(package, done, completed).waits().empty());
}

TEST(X6, TheEntryImpliesWhatThePackageAlreadyWaitedFor) {
    const nothing_completes completed;
    sequencer first{1};
    sequencer package{2};
    run(first, package, completed);
    sequencer second{3};
    plan p = second.next(completed);
    enter(p, package);
    const mark done = first.record();
    p.need(done, reason::read_after_write);
    p.resolve();
    ASSERT_EQ(p.waits().size(), 1U) << "the package handed back after the first operation";
    EXPECT_EQ(p.waits()[0].why, reason::entry);
}

}  // namespace
}  // namespace weir::order::test
