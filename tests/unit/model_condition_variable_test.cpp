// A model of detail::condition_variable (weir/detail/mutex.hpp, base/condition_variable.cpp), step for step, in memory with store buffers:
// threads that each wait for one thing, and threads that each give one and notify one thread.
#include <gtest/gtest.h>

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>

#include "support/model_checker.hpp"

namespace weir::test::model {
namespace {

constexpr std::size_t waiting_threads = 2;
constexpr std::size_t threads = 2 * waiting_threads;

enum class at : std::uint8_t {
    // a waiting thread: wait, wait_once
    lock,
    look_for_it,     ///< over(), which takes the thing
    count,           ///< waiters_.fetch_add
    read,            ///< sequence_.load
    unlock_to_wait,  ///< held.unlock
    sleep,           ///< sleep_while: the system compares and sleeps
    asleep,
    uncount,      ///< waiters_.fetch_sub
    unlock_last,  ///< with what it waited for
    // a notifying thread
    lock_to_give,
    give,
    unlock_given,
    look_for_waiters,  ///< notify: waiters_.load
    change,            ///< wake: sequence_.fetch_add
    wake,              ///< wake: the system wakes a thread
    over
};

enum variable : std::size_t { held, things, waiters, sequence, variables };

struct condition_state {
    buffered_memory<threads, variables> memory;
    std::array<at, threads> where{};
    std::array<std::uint8_t, threads> seen{};  ///< sequence_ as the thread has read it
    auto operator<=>(const condition_state&) const = default;
};

/// One step that is left out or made wrongly.
enum class condition_fault : std::uint8_t {
    none,
    counts_after_unlock,  ///< the waiting thread increments waiters_ after it has unlocked the mutex
    reads_after_unlock,   ///< the waiting thread reads sequence_ after it has unlocked the mutex
    no_compare,           ///< the waiting thread sleeps although sequence_ has changed
    no_change,            ///< the notifying thread leaves sequence_ as it is
    no_wake,              ///< the notifying thread only changes sequence_
    notifies_first,       ///< the notifying thread notifies before it gives
};

struct condition_model {
    condition_fault fault = condition_fault::none;

    [[nodiscard]] condition_state first() const {
        condition_state begin;
        begin.where.fill(fault == condition_fault::notifies_first ? at::look_for_waiters : at::lock_to_give);
        for (std::size_t i = 0; i < waiting_threads; ++i) {
            begin.where[i] = at::lock;
        }
        return begin;
    }

    void steps(const condition_state& now, moves<condition_state>& possible) const {
        for (std::size_t i = 0; i < threads; ++i) {
            if (!now.memory.is_drained(i)) {
                condition_state next = now;
                next.memory.drain_one(i);
                possible.add(i, "(its write reaches the memory)", next);
            }
            step(now, i, possible);
        }
    }

    void step(const condition_state& now, std::size_t i, moves<condition_state>& possible) const {
        condition_state next = now;
        at& where = next.where[i];
        const char* name = "";
        switch (now.where[i]) {
            case at::lock:
            case at::lock_to_give:
                name = "lock";
                if (now.memory.in_memory(held) != 0) {
                    return;  // until it is unlocked
                }
                next.memory.exchange(i, held, 1);
                where = where == at::lock ? at::look_for_it : at::give;
                break;
            case at::look_for_it:
                name = "looks for what it waits for";
                if (const auto there = next.memory.load(i, things); there != 0) {
                    next.memory.store(i, things, static_cast<std::uint8_t>(there - 1));
                    where = at::unlock_last;
                } else {
                    where = fault == condition_fault::counts_after_unlock ? at::read : at::count;
                }
                break;
            case at::count:
                name = "waiters_ += 1";
                next.memory.add(i, waiters, 1);
                where = fault == condition_fault::counts_after_unlock  ? at::sleep
                        : fault == condition_fault::reads_after_unlock ? at::unlock_to_wait
                                                                       : at::read;
                break;
            case at::read:
                name = "reads sequence_";
                next.seen[i] = next.memory.load(i, sequence);
                where = fault == condition_fault::reads_after_unlock ? at::sleep : at::unlock_to_wait;
                break;
            case at::unlock_to_wait:
                name = "unlock";
                next.memory.store(i, held, 0);
                where = fault == condition_fault::counts_after_unlock  ? at::count
                        : fault == condition_fault::reads_after_unlock ? at::read
                                                                       : at::sleep;
                break;
            case at::sleep:
                name = "sleep";
                next.memory.fence(i);  // the system call's own fence
                where = next.memory.in_memory(sequence) == now.seen[i] || fault == condition_fault::no_compare
                            ? at::asleep
                            : at::uncount;
                break;
            case at::asleep:
                return;  // until it is woken
            case at::uncount:
                name = "waiters_ -= 1";
                next.memory.add(i, waiters, -1);
                where = at::lock;
                break;
            case at::unlock_last:
                name = "unlock";
                next.memory.store(i, held, 0);
                where = at::over;
                break;
            case at::give:
                name = "gives one";
                next.memory.store(i, things, static_cast<std::uint8_t>(next.memory.load(i, things) + 1));
                where = at::unlock_given;
                break;
            case at::unlock_given:
                name = "unlock";
                next.memory.store(i, held, 0);
                where = fault == condition_fault::notifies_first ? at::over : at::look_for_waiters;
                break;
            case at::look_for_waiters:
                name = "reads waiters_";
                where = next.memory.load(i, waiters) != 0 ? at::change : after_notification();
                break;
            case at::change:
                name = "sequence_ += 1";
                next.memory.add(i, sequence, fault == condition_fault::no_change ? 0 : 1);
                where = fault == condition_fault::no_wake ? after_notification() : at::wake;
                break;
            case at::wake:
                wake(now, i, possible);
                return;
            case at::over:
                return;
        }
        possible.add(i, name, next);
    }

    /// The system wakes any one of those that sleep.
    void wake(const condition_state& now, std::size_t i, moves<condition_state>& possible) const {
        bool is_any_asleep = false;
        for (std::size_t sleeper = 0; sleeper < waiting_threads; ++sleeper) {
            if (now.where[sleeper] == at::asleep) {
                is_any_asleep = true;
                condition_state next = now;
                next.memory.fence(i);
                next.where[sleeper] = at::uncount;
                next.where[i] = after_notification();
                possible.add(i, "wakes one", next);
            }
        }
        if (!is_any_asleep) {
            condition_state next = now;
            next.memory.fence(i);
            next.where[i] = after_notification();
            possible.add(i, "wakes none", next);
        }
    }

    [[nodiscard]] at after_notification() const {
        return fault == condition_fault::notifies_first ? at::lock_to_give : at::over;
    }

    [[nodiscard]] const char* wrong(const condition_state& /*now*/) const { return nullptr; }

    [[nodiscard]] const char* wrong_at_the_end(const condition_state& now) const {
        for (const at where : now.where) {
            if (where != at::over) {
                return "a thread sleeps and is not woken";
            }
        }
        return now.memory.in_memory(waiters) != 0 ? "a thread still counts as waiting" : nullptr;
    }
};

TEST(ConditionVariableModel, EachThreadThatWaitsIsWoken) {
    const verdict found = check(condition_model{});
    EXPECT_EQ(found.wrong, "") << found.way;
    EXPECT_GT(found.states, 1'000U);
}

TEST(ConditionVariableModel, ControlEachStepIsNeeded) {
    for (const condition_fault fault :
         {condition_fault::counts_after_unlock, condition_fault::reads_after_unlock, condition_fault::no_compare,
          condition_fault::no_change, condition_fault::no_wake, condition_fault::notifies_first}) {
        EXPECT_EQ(check(condition_model{fault}).wrong, "a thread sleeps and is not woken") << static_cast<int>(fault);
    }
}

}  // namespace
}  // namespace weir::test::model
