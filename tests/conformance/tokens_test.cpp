// Rule K5: a token is an operand without memory, and is ordered, checked and explained like one that has some.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/devices.hpp"
#include "support/scratch_folder.hpp"
#include "weir/borrow.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using test::here;
using ::testing::ElementsAre;
using testing::gate;
using ::testing::HasSubstr;
using ::testing::Not;

/// What ran, in the order in which it did.
class journal {
public:
    void note(std::string what) {
        const std::lock_guard lock(mutex_);
        entries_.push_back(std::move(what));
    }
    [[nodiscard]] std::vector<std::string> entries() const {
        const std::lock_guard lock(mutex_);
        return entries_;
    }

private:
    mutable std::mutex mutex_;
    std::vector<std::string> entries_;
};

/// A host task that writes its name into the journal and declares the token so.
completion enter(const on& where, journal& into, const char* name, token_argument&& use) {
    return host_task(
        where, [&into, name] { into.note(name); }, std::move(use));
}

device another() { return here() == cpu() ? sim(0) : cpu(); }

WEIR_CONFORMANCE(K5, AWriteOnOneStreamComesBeforeUsesOnOthers) {
    journal log;
    const token slot("slot");
    const stream a(here());
    const stream b(here());
    const stream c(another());
    gate held;
    held.hold(a);
    enter(a, log, "first", inout(slot));
    const completion second = enter(b, log, "second", in(slot));
    const completion third = enter(c, log, "third, on another device", inout(slot));
    EXPECT_EQ(explain(slot).waits.size(), 1U) << "the third waits for the second alone\n" << explain(slot).to_string();
    EXPECT_FALSE(second.done() || third.done());
    held.open();
    third.synchronize();
    EXPECT_THAT(log.entries(), ElementsAre("first", "second", "third, on another device"));
}

WEIR_CONFORMANCE(K5, ControlWithoutOrderingTheOthersDoNotWait) {
    const ordering_scope manual(ordering_mode::manual);
    journal log;
    const token slot("slot");
    const stream a(here());
    const stream b(here());
    gate held;
    held.hold(a);
    const completion first = enter(a, log, "first", inout(slot));
    enter(b, log, "second", in(slot)).synchronize();
    EXPECT_FALSE(first.done());
    held.open();
    first.synchronize();
    EXPECT_THAT(log.entries(), ElementsAre("second", "first"));
}

WEIR_CONFORMANCE(K5, ReadersDoNotWaitForEachOtherAndAWriterForAllOfThem) {
    journal log;
    const token slot;
    const stream a(here());
    const stream b(here());
    const stream c(here());
    gate held;
    held.hold(a);
    const completion first = enter(a, log, "one reader", in(slot));
    enter(b, log, "another reader", in(slot)).synchronize();
    EXPECT_FALSE(first.done());
    const completion last = enter(c, log, "writer", out(slot));
    EXPECT_FALSE(last.done());
    held.open();
    last.synchronize();
    EXPECT_THAT(log.entries(), ElementsAre("another reader", "one reader", "writer"));
}

WEIR_CONFORMANCE(K5, TwoTokensDoNotOrderEachOther) {
    journal log;
    const token one("same name");
    const token other("same name");
    const stream a(here());
    const stream b(here());
    gate held;
    held.hold(a);
    const completion first = enter(a, log, "first", inout(one));
    enter(b, log, "second", inout(other)).synchronize();
    EXPECT_FALSE(first.done());
    EXPECT_FALSE(one == other);
    const token copy = one;  // NOLINT(performance-unnecessary-copy-initialization): a copy is what it is about
    EXPECT_TRUE(copy == one);
    const completion third = enter(b, log, "third", inout(copy));
    EXPECT_FALSE(third.done());
    held.open();
    third.synchronize();
    EXPECT_THAT(log.entries(), ElementsAre("second", "first", "third"));
}

WEIR_CONFORMANCE(K5, BodiesGetNothingForATokenWhereverItStands) {
    const token t("settings");
    const stream s(here());
    array x = zeros(4, dtype::float64, s);
    array y = zeros(4, dtype::float64, s);
    parallel_for(
        s, 4, [](std::size_t i, std::span<double> to) { to[i] = static_cast<double>(i); }, in(t), out<double>(x));
    parallel_for(
        s, 4, [](std::size_t i, std::span<const double> from, std::span<double> to) { to[i] = from[i] + 1; },
        in<double>(x), inout(t), out<double>(y));
    int seen = 0;
    access(
        s, [&seen](const native_stream&) { ++seen; }, inout(t));
    host_task(
        s, [&seen] { ++seen; }, inout(t));
    s.synchronize();
    EXPECT_EQ(seen, 2);
    EXPECT_EQ(y.read<double>()[3], 4.0);
}

WEIR_CONFORMANCE(K5, OneDroppedWhileItIsPendingKeepsTheOrderThatThereIs) {
    journal log;
    const stream a(here());
    const stream b(here());
    gate held;
    held.hold(a);
    std::optional<token> slot(std::in_place, "slot");
    enter(a, log, "first", inout(*slot));
    const completion second = enter(b, log, "second", inout(*slot));
    slot.reset();
    const token next("slot");  // perhaps at the same address
    const stream c(here());
    enter(c, log, "not ordered", inout(next)).synchronize();
    EXPECT_FALSE(second.done());
    held.open();
    second.synchronize();
    EXPECT_THAT(log.entries(), ElementsAre("not ordered", "first", "second"));
}

WEIR_CONFORMANCE(K5, ExplainSaysWhichOperationsDeclareIt) {
    const token slot("slot 3");
    const stream a(here(), {.priority = 0, .name = "a"});
    const stream b(here(), {.priority = 0, .name = "b"});
    EXPECT_EQ(explain(slot).to_string(), "<weir.token \"slot 3\">\n  pending: nothing\n  waits for: nothing");
    gate held;
    held.hold(a);
    host_task(
        on(a).label("fill"), [] {}, out(slot));
    host_task(
        on(b).label("drain"), [] {}, in(slot));
    const explanation said = explain(slot);
    ASSERT_EQ(said.pending.size(), 2U) << said.to_string();
    EXPECT_THAT(said.pending[0], HasSubstr("\"fill\""));
    EXPECT_THAT(said.pending[0], HasSubstr("writes it on the stream \"a\""));
    EXPECT_THAT(said.pending[1], HasSubstr("reads it on the stream \"b\""));
    ASSERT_EQ(said.waits.size(), 1U) << said.to_string();
    EXPECT_THAT(said.waits[0], HasSubstr("waits for \"fill\""));
}

WEIR_CONFORMANCE(K5, CheckNamesTheTokenOfARace) {
    const token before("made before the check began");
    const check_scope scope;
    const ordering_scope manual(ordering_mode::manual);
    const token slot("slot 3");
    const stream a(here(), {.priority = 0, .name = "a"});
    const stream b(here(), {.priority = 0, .name = "b"});
    host_task(
        on(a).label("fill"), [] {}, out(slot));
    host_task(
        on(b).label("drain"), [] {}, in(slot));
    host_task(
        a, [] {}, inout(before));
    host_task(
        b, [] {}, inout(before));
    const report found = scope.report();
    ASSERT_EQ(found.size(), 2U) << found.to_string();
    const race& one = found.races()[0];
    EXPECT_EQ(one.kind, "RAW");
    EXPECT_EQ(one.certainty, "definite");
    EXPECT_TRUE(one.second.is_token);
    EXPECT_THAT(one.second.array, HasSubstr("token \"slot 3\", made at "));
    EXPECT_THAT(found.to_string(), HasSubstr("two operations use the same token"));
    EXPECT_THAT(found.to_string(), HasSubstr("RAW race on token \"slot 3\""));
    EXPECT_THAT(found.to_string(), HasSubstr("reads  the token in \"drain\""));
    EXPECT_THAT(found.to_string(), HasSubstr("\"drain\" may begin before \"fill\" is over"));
    EXPECT_THAT(found.to_string(), Not(HasSubstr("bytes [0, 1)")));
    EXPECT_EQ(found.races()[1].second.array, "token \"made before the check began\"");
}

WEIR_CONFORMANCE(K5, CheckHasNothingToSayOfTokensThatAreOrderedOrDropped) {
    const check_scope scope;
    {
        const token slot("slot");
        const stream a(here());
        const stream b(here());
        host_task(
            a, [] {}, out(slot));
        host_task(
            b, [] {}, in(slot));
        const ordering_scope manual(ordering_mode::manual);
        const token last("dropped while it is in use");
        host_task(
            a, [] {}, inout(last));
    }
    EXPECT_TRUE(scope.report().empty()) << scope.report().to_string();
    EXPECT_TRUE(scope.report().unseen().empty());
}

WEIR_CONFORMANCE(K5, CheckHasNothingToSayOfATokenThatWasThereBefore) {
    std::optional<token> slot(std::in_place, "slot");
    const check_scope scope;
    const ordering_scope manual(ordering_mode::manual);
    const stream a(here());
    gate held;
    held.hold(a);
    host_task(
        a, [] {}, inout(*slot));
    slot.reset();
    EXPECT_TRUE(scope.report().empty()) << scope.report().to_string();
    EXPECT_TRUE(scope.report().unseen().empty()) << scope.report().to_string();
}

WEIR_CONFORMANCE(K5, TheEvidenceLogHasTheNameAlsoOfATokenThatIsGone) {
    const test::scratch_folder folder;
    const std::filesystem::path file = folder.path() / "tokens.weirlog";
    {
        trace_scope trace(file);
        const stream a(here());
        const stream b(here());
        const token slot("slot 3");
        host_task(
            on(a).label("fill"), [] {}, out(slot));
        host_task(
            on(b).label("drain"), [] {}, in(slot))
            .synchronize();
    }
    std::ifstream log(file);
    const std::string text((std::istreambuf_iterator<char>(log)), std::istreambuf_iterator<char>());
    EXPECT_THAT(text, HasSubstr(R"("mode":"write","ordering":"automatic","token":"slot 3"})"));
    EXPECT_THAT(text, HasSubstr(R"("mode":"read","ordering":"automatic","token":"slot 3"})"));
}

WEIR_CONFORMANCE(K5, AFailureGoesOnToWhatNamesTheTokenNext) {
    journal log;
    const token connection("connection");
    const stream a(here());
    const stream b(here());
    const completion failed = host_task(
        on(a).label("open"), [] { throw std::runtime_error("refused"); }, inout(connection));
    const completion next = enter(b, log, "next", in(connection));
    EXPECT_THROW(next.synchronize(), operation_error);
    EXPECT_THROW(failed.synchronize(), operation_error);
    enter(b, log, "anew", out(connection)).synchronize();
    enter(a, log, "after that", in(connection)).synchronize();
    EXPECT_THAT(log.entries(), ElementsAre("anew", "after that"));
}

WEIR_CONFORMANCE(K5, OneTokenMayBeToldHowToBeOrdered) {
    journal log;
    const token slot("slot");
    slot.set_ordering(ordering_mode::manual);
    EXPECT_EQ(slot.ordering(), ordering_mode::manual);
    const stream a(here());
    const stream b(here());
    gate held;
    held.hold(a);
    const completion first = enter(a, log, "first", inout(slot));
    enter(b, log, "second", inout(slot)).synchronize();
    EXPECT_FALSE(first.done());
    slot.set_ordering(std::nullopt);
    const completion third = enter(b, log, "third", inout(slot));
    EXPECT_FALSE(third.done());
    held.open();
    third.synchronize();
    EXPECT_THAT(log.entries(), ElementsAre("second", "first", "third"));
}

WEIR_CONFORMANCE(K5, ABorrowOrdersTheWorkOfOthersByATokenAlone) {
    journal log;
    const token queue("a queue of another library");
    const stream a(here());
    const stream theirs(here());
    const stream b(here());
    gate held;
    held.hold(a);
    enter(a, log, "before", inout(queue));
    completion last;
    {
        exchange::borrow scope(theirs, {.tokens = {.writes = {queue}}});
        host_task(theirs, [&log] { log.note("theirs"); });  // stands for work that declares nothing
        last = enter(b, log, "after", in(queue));           // enqueued before the scope ends
    }
    EXPECT_FALSE(last.done());
    held.open();
    last.synchronize();
    EXPECT_THAT(log.entries(), ElementsAre("before", "theirs", "after"));
}

WEIR_CONFORMANCE(K5, OneThatWasMovedFromIsRefused) {
    token slot("slot");
    const token kept = std::move(slot);
    const stream s(here());
    try {
        host_task(
            s, [] {}, inout(slot));  // NOLINT(bugprone-use-after-move): that is what it is about
        ADD_FAILURE() << "it was taken";
    } catch (const argument_error& refused) {
        EXPECT_THAT(refused.what(), HasSubstr("moved from"));
    }
    EXPECT_EQ(slot.to_string(), "<weir.token of nothing>");
    EXPECT_EQ(kept.name(), "slot");
    EXPECT_EQ(slot.unique_id(), 0U);
    EXPECT_THAT(token().to_string(), HasSubstr("<weir.token #"));
}

}  // namespace
}  // namespace weir
