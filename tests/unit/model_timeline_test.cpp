// A model of backend::timeline (backend/timeline.hpp, .cpp), step for step: one thread completes epochs, others begin to wait.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>

#include "support/model_checker.hpp"

namespace weir::test::model {
namespace {

constexpr std::size_t waiters = 3;
constexpr std::size_t completer = waiters;  ///< the last thread
constexpr std::array<std::uint8_t, waiters> wanted{1, 2, 2};
constexpr std::uint8_t last_epoch = 2;

enum class at : std::uint8_t {
    // timeline::wait
    ask,        ///< completed() >= at
    add,        ///< add: the exchange that succeeds
    ask_again,  ///< completed_.load
    // timeline::tell_newcomers
    take,      ///< newcomers_.exchange
    see,       ///< completed_.load
    put_back,  ///< add of the rest
    tell,      ///< tell_all, one waiter a step
    compare,   ///< completed_.load() < earliest
    // timeline::complete
    complete,  ///< completed_.store
    look,      ///< newcomers_.load, and the first that waits
    // timeline::tell
    collect,  ///< newcomers_.exchange, and insert
    tell_in_order,
    over
};

/// A set of waiters, a bit each. A list in the code; no step depends on its order.
using set = std::uint8_t;

struct timeline_state {
    buffered_memory<waiters + 1, 1> completed;
    set newcomers = 0;
    set in_order = 0;  ///< of the completing thread: first_ to last_
    std::array<at, waiters + 1> where{};
    std::array<set, waiters + 1> in_hand{};        ///< the waiters that the thread is to notify
    std::array<set, waiters> rest{};               ///< the waiters that the thread is to put back
    std::array<std::uint8_t, waiters> earliest{};  ///< the earliest epoch that the rest wants
    std::array<std::uint8_t, waiters> told{};      ///< how often each waiter was notified
    std::array<bool, waiters> is_kept{};           ///< wait returned true
    std::uint8_t epoch = 0;                        ///< the last epoch whose completion was begun
    bool is_early = false;                         ///< a waiter was notified too early
    auto operator<=>(const timeline_state&) const = default;
};

enum class timeline_fault : std::uint8_t {
    none,
    no_second_ask,              ///< wait does not check again once it is in the list
    looks_before_it_completes,  ///< complete checks for newcomers first
    plain_store,                ///< completed_ is written with release order alone
    no_last_compare,            ///< tell_newcomers does not check again after it has put the rest back
    forgets_the_rest,           ///< tell_newcomers does not put it back
};

struct timeline_model {
    timeline_fault fault = timeline_fault::none;

    [[nodiscard]] timeline_state first() const {
        timeline_state begin;
        begin.where.fill(at::ask);
        begin.where[completer] = at::complete;
        return begin;
    }

    void steps(const timeline_state& now, moves<timeline_state>& possible) const {
        if (!now.completed.is_drained(completer)) {
            timeline_state next = now;
            next.completed.drain_one(completer);
            possible.add(completer, "(its write reaches the memory)", next);
        }
        for (std::size_t i = 0; i < waiters; ++i) {
            step_of_a_waiter(now, i, possible);
        }
        step_of_the_completer(now, possible);
    }

    void step_of_a_waiter(const timeline_state& now, std::size_t i, moves<timeline_state>& possible) const {
        timeline_state next = now;
        at& where = next.where[i];
        const std::uint8_t completed = now.completed.load(i, 0);
        const auto self = static_cast<set>(1U << i);
        const char* name = "";
        switch (now.where[i]) {
            case at::ask:
                name = "wait: completed?";
                where = completed >= wanted[i] ? at::over : at::add;
                break;
            case at::add:
                name = "wait: add";
                next.newcomers |= self;
                next.is_kept[i] = true;
                where = fault == timeline_fault::no_second_ask ? at::over : at::ask_again;
                break;
            case at::ask_again:
                name = "wait: completed now?";
                where = completed >= wanted[i] ? at::take : at::over;
                break;
            case at::take:
                name = "tell_newcomers: takes them";
                next.rest[i] = std::exchange(next.newcomers, set{0});
                where = at::see;
                break;
            case at::see:
                name = "tell_newcomers: completed?";
                next.in_hand[i] = up_to(now.rest[i], completed);
                next.rest[i] = static_cast<set>(now.rest[i] & ~next.in_hand[i]);
                next.earliest[i] = earliest_of(next.rest[i]);
                where = next.rest[i] != 0 && fault != timeline_fault::forgets_the_rest ? at::put_back : at::tell;
                break;
            case at::put_back:
                name = "tell_newcomers: puts the rest back";
                next.newcomers |= std::exchange(next.rest[i], set{0});
                where = at::tell;
                break;
            case at::tell:
                name = "tell_newcomers: tells one";
                where = tell_one(next, i) ? at::tell : at::compare;
                break;
            case at::compare:
                name = "tell_newcomers: completed meanwhile?";
                where = completed < now.earliest[i] || fault == timeline_fault::no_last_compare ? at::over : at::take;
                next.earliest[i] = 0;
                break;
            default:
                return;
        }
        possible.add(i, name, next);
    }

    void step_of_the_completer(const timeline_state& now, moves<timeline_state>& possible) const {
        timeline_state next = now;
        at& where = next.where[completer];
        const char* name = "";
        const bool looks_first = fault == timeline_fault::looks_before_it_completes;
        switch (now.where[completer]) {
            case at::complete:
                name = "complete: store";
                if (fault == timeline_fault::plain_store) {
                    next.completed.store(completer, 0, static_cast<std::uint8_t>(now.epoch + 1));
                } else {
                    next.completed.store_at_once(completer, 0, static_cast<std::uint8_t>(now.epoch + 1));
                }
                ++next.epoch;
                where = looks_first ? (now.in_hand[completer] != 0 ? at::collect : after(next)) : at::look;
                next.in_hand[completer] = 0;
                break;
            case at::look:
                name = "complete: looks for those who wait";
                if (looks_first) {
                    const auto soon = static_cast<std::uint8_t>(now.epoch + 1);
                    next.in_hand[completer] = now.newcomers != 0 || up_to(now.in_order, soon) != 0 ? 1 : 0;
                    where = at::complete;
                    break;
                }
                where = now.newcomers != 0 || up_to(now.in_order, now.epoch) != 0 ? at::collect : after(next);
                break;
            case at::collect:
                name = "tell: takes the newcomers";
                next.in_order |= std::exchange(next.newcomers, set{0});
                next.in_hand[completer] = up_to(next.in_order, now.epoch);
                next.in_order = static_cast<set>(next.in_order & ~next.in_hand[completer]);
                where = at::tell_in_order;
                break;
            case at::tell_in_order:
                name = "tell: tells one";
                where = tell_one(next, completer) ? at::tell_in_order : after(next);
                break;
            default:
                return;
        }
        possible.add(completer, name, next);
    }

    [[nodiscard]] at after(const timeline_state& next) const {
        if (next.epoch == last_epoch) {
            return at::over;
        }
        return fault == timeline_fault::looks_before_it_completes ? at::look : at::complete;
    }

    [[nodiscard]] static set up_to(set of, std::uint8_t epoch) {
        set found = 0;
        for (std::size_t i = 0; i < waiters; ++i) {
            found = static_cast<set>(found | (wanted[i] <= epoch ? of & (1U << i) : 0U));
        }
        return found;
    }
    [[nodiscard]] static std::uint8_t earliest_of(set of) {
        std::uint8_t earliest = last_epoch + 1;
        for (std::size_t i = 0; i < waiters; ++i) {
            earliest = (of & (1U << i)) != 0 ? std::min(earliest, wanted[i]) : earliest;
        }
        return earliest;
    }

    /// False if the thread has no waiter left to notify.
    [[nodiscard]] static bool tell_one(timeline_state& next, std::size_t by) {
        for (std::size_t i = 0; i < waiters; ++i) {
            const auto one = static_cast<set>(1U << i);
            if ((next.in_hand[by] & one) != 0) {
                next.in_hand[by] = static_cast<set>(next.in_hand[by] & ~one);
                ++next.told[i];
                next.is_early = next.is_early || next.completed.load(by, 0) < wanted[i];
                return next.in_hand[by] != 0;
            }
        }
        return false;
    }

    [[nodiscard]] const char* wrong(const timeline_state& now) const {
        if (now.is_early) {
            return "a waiter is told before its epoch is over";
        }
        for (std::size_t i = 0; i < waiters; ++i) {
            if (now.told[i] > 1) {
                return "a waiter is told twice";
            }
            // The waiter may be gone: it must be in no list.
            if (now.told[i] == 1 && ((now.newcomers | now.in_order) & (1U << i)) != 0) {
                return "a waiter that was told is still in a list";
            }
        }
        return nullptr;
    }

    [[nodiscard]] const char* wrong_at_the_end(const timeline_state& now) const {
        for (std::size_t i = 0; i < waiters; ++i) {
            if (now.told[i] != (now.is_kept[i] ? 1 : 0)) {
                return "a waiter is not told";
            }
        }
        return (now.newcomers | now.in_order) != 0 ? "a waiter is left in a list" : nullptr;
    }
};

TEST(TimelineModel, EachWaiterIsToldOnceAndNotTooEarly) {
    const verdict found = check(timeline_model{});
    EXPECT_EQ(found.wrong, "") << found.way;
    EXPECT_GT(found.states, 500U);
}

TEST(TimelineModel, ControlEachStepIsNeeded) {
    for (const timeline_fault fault :
         {timeline_fault::no_second_ask, timeline_fault::looks_before_it_completes, timeline_fault::plain_store,
          timeline_fault::no_last_compare, timeline_fault::forgets_the_rest}) {
        EXPECT_EQ(check(timeline_model{.fault = fault}).wrong, "a waiter is not told") << static_cast<int>(fault);
    }
}

}  // namespace
}  // namespace weir::test::model
