// A model of backend::raw_hot_mutex (backend/hot_mutex.hpp, .cpp), step for step, in memory with store buffers.
#include <gtest/gtest.h>

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>

#include "support/model_checker.hpp"

namespace weir::test::model {
namespace {

constexpr std::size_t threads = 3;

enum class at : std::uint8_t {
    lock,           ///< lock: state_.exchange
    spin_load,      ///< lock_slowly: spin_until(try_lock), the load
    spin_exchange,  ///< and its exchange
    say,            ///< sleepers_.fetch_add
    barrier,        ///< process_barrier
    load,           ///< try_lock in the loop, the load
    exchange,       ///< and its exchange
    sleep,          ///< sleep_while: the system compares and sleeps
    asleep,
    unsay,  ///< sleepers_.fetch_sub
    inside,
    let_go,  ///< let_go: state_.store
    look,    ///< let_go: sleepers_.load
    wake,    ///< wake_one
    over
};

enum variable : std::size_t { held, sleepers, variables };

struct mutex_state {
    buffered_memory<threads, variables> memory;
    std::array<at, threads> where{};
    std::array<std::uint8_t, threads> rounds{};
    auto operator<=>(const mutex_state&) const = default;
};

/// One step that is left out or made wrongly.
enum class mutex_fault : std::uint8_t {
    none,
    no_barrier,             ///< the sleeper does not call membarrier
    no_look_for_sleepers,   ///< the owner releases the lock and does not check for sleepers
    no_compare,             ///< the sleeper sleeps although the lock is free
    says_it_after_trying,   ///< the sleeper counts itself after the last try and before it sleeps
    takes_it_by_two_steps,  ///< a load and a store in place of the exchange
};

struct mutex_model {
    mutex_fault fault = mutex_fault::none;
    bool has_process_barrier = true;  ///< else sleepers try again every millisecond
    std::size_t used_threads = threads;
    std::uint8_t rounds = 1;

    [[nodiscard]] mutex_state first() const {
        mutex_state begin;
        begin.where.fill(at::over);
        for (std::size_t i = 0; i < used_threads; ++i) {
            begin.where[i] = at::lock;
            begin.rounds[i] = rounds;
        }
        return begin;
    }

    void steps(const mutex_state& now, moves<mutex_state>& possible) const {
        for (std::size_t i = 0; i < threads; ++i) {
            if (!now.memory.is_drained(i)) {
                mutex_state next = now;
                next.memory.drain_one(i);
                possible.add(i, "(its write reaches the memory)", next);
            }
            step(now, i, possible);
        }
    }

    void step(const mutex_state& now, std::size_t i, moves<mutex_state>& possible) const {
        mutex_state next = now;
        at& where = next.where[i];
        const char* name = "";
        switch (now.where[i]) {
            case at::lock:
                name = "lock: exchange";
                where = next.memory.exchange(i, held, 1) == 0 ? at::inside : at::spin_load;
                break;
            case at::spin_load:
                name = "spin: load";
                where = next.memory.load(i, held) == 0 ? at::spin_exchange : at::say;
                break;
            case at::spin_exchange:
                name = "spin: exchange";
                where = take(next, i) ? at::inside : at::say;
                break;
            case at::say:
                name = "sleepers += 1";
                next.memory.add(i, sleepers, 1);
                where = fault == mutex_fault::says_it_after_trying ? at::asleep : at::barrier;
                break;
            case at::barrier:
                name = "barrier";
                if (has_process_barrier && fault != mutex_fault::no_barrier) {
                    next.memory.barrier();
                }
                where = at::load;
                break;
            case at::load:
                name = "try: load";
                where = next.memory.load(i, held) == 0 ? at::exchange : at::sleep;
                break;
            case at::exchange:
                name = "try: exchange";
                where = take(next, i) ? at::unsay : at::sleep;
                break;
            case at::sleep:
                name = "sleep";
                next.memory.fence(i);  // the system call's own fence
                where = next.memory.in_memory(held) == 1 || fault == mutex_fault::no_compare ? at::asleep : at::load;
                break;
            case at::asleep:
                if (has_process_barrier) {
                    return;  // until it is woken
                }
                name = "(a millisecond has passed)";
                where = at::load;
                break;
            case at::unsay:
                name = "sleepers -= 1";
                next.memory.add(i, sleepers, -1);
                where = at::inside;
                break;
            case at::inside:
                name = "is inside";
                where = at::let_go;
                break;
            case at::let_go:
                name = "unlock: store";
                next.memory.store(i, held, 0);
                where = at::look;
                break;
            case at::look:
                name = "unlock: looks for sleepers";
                where = next.memory.load(i, sleepers) != 0 && fault != mutex_fault::no_look_for_sleepers
                            ? at::wake
                            : again(next, i);
                break;
            case at::wake:
                wake(now, i, possible);
                return;
            case at::over:
                return;
        }
        possible.add(i, name, next);
    }

    /// An atomic exchange; or, with the fault, two steps that are no lock.
    [[nodiscard]] bool take(mutex_state& next, std::size_t i) const {
        if (fault == mutex_fault::takes_it_by_two_steps) {
            next.memory.store_at_once(i, held, 1);  // the load before it said that the lock is free
            return true;
        }
        return next.memory.exchange(i, held, 1) == 0;
    }

    /// The system wakes any one of those that sleep.
    void wake(const mutex_state& now, std::size_t i, moves<mutex_state>& possible) const {
        bool is_any_asleep = false;
        for (std::size_t sleeper = 0; sleeper < threads; ++sleeper) {
            if (now.where[sleeper] == at::asleep) {
                is_any_asleep = true;
                mutex_state next = now;
                next.memory.fence(i);
                next.where[sleeper] = at::load;
                next.where[i] = again(next, i);
                possible.add(i, "wakes one", next);
            }
        }
        if (!is_any_asleep) {
            mutex_state next = now;
            next.memory.fence(i);
            next.where[i] = again(next, i);
            possible.add(i, "wakes none", next);
        }
    }

    [[nodiscard]] static at again(mutex_state& next, std::size_t i) {
        --next.rounds[i];
        return next.rounds[i] == 0 ? at::over : at::lock;
    }

    [[nodiscard]] const char* wrong(const mutex_state& now) const {
        int inside = 0;
        for (const at where : now.where) {
            inside += where == at::inside || where == at::let_go || where == at::unsay ? 1 : 0;
        }
        return inside > 1 ? "two threads are inside" : nullptr;
    }

    [[nodiscard]] const char* wrong_at_the_end(const mutex_state& now) const {
        for (const at where : now.where) {
            if (where != at::over) {
                return "a thread sleeps and is not woken";
            }
        }
        if (now.memory.in_memory(held) != 0) {
            return "the lock is still held";
        }
        return now.memory.in_memory(sleepers) != 0 ? "a thread still counts as asleep" : nullptr;
    }
};

TEST(HotMutexModel, OneThreadIsInsideAndEachSleeperIsWoken) {
    const verdict three = check(mutex_model{});
    EXPECT_EQ(three.wrong, "") << three.way;
    EXPECT_GT(three.states, 1'000U);
    const verdict often = check(mutex_model{.used_threads = 2, .rounds = 3});
    EXPECT_EQ(often.wrong, "") << often.way;
}

TEST(HotMutexModel, WithoutAProcessBarrierSleepersLookAgain) {
    const verdict found = check(mutex_model{.has_process_barrier = false});
    EXPECT_EQ(found.wrong, "") << found.way;
}

TEST(HotMutexModel, ControlEachStepIsNeeded) {
    for (const mutex_fault fault : {mutex_fault::no_barrier, mutex_fault::no_look_for_sleepers, mutex_fault::no_compare,
                                    mutex_fault::says_it_after_trying}) {
        EXPECT_EQ(check(mutex_model{.fault = fault}).wrong, "a thread sleeps and is not woken")
            << static_cast<int>(fault);
    }
    EXPECT_EQ(check(mutex_model{.fault = mutex_fault::takes_it_by_two_steps}).wrong, "two threads are inside");
}

}  // namespace
}  // namespace weir::test::model
