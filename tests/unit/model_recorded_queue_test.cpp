// A model of how backend::recorded_queue and backend::cuda::submission_queue hand work over (recorded_queue.hpp, .cpp, fast_path.cpp,
// queue.cpp), step for step: two threads enqueue into one stream, and one operation waits for what a third thread completes.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "support/model_checker.hpp"

namespace weir::test::model {
namespace {

constexpr std::size_t programs = 2;
[[maybe_unused]] constexpr std::size_t waited_for =
    programs;  ///< the thread that completes what an operation waits for, and then submits the operation
constexpr std::size_t threads = programs + 1;
constexpr std::uint8_t each = 2;  ///< operations of each thread
constexpr std::uint8_t operations = programs * each;
/// The last operation of the second thread waits.
constexpr std::size_t waiting_thread = 1;

enum class at : std::uint8_t {
    lock,            ///< stream_state::mutex
    ask_if_pending,  ///< submission_queue::claim_if_free
    claim,           ///< claim_alone
    carry_out,
    rest_alone,
    record,  ///< recorded_queue::submit: records_.commit
    count,   ///< pending_.fetch_add, schedule
    unlock,
    ask_if_unclaimed,  ///< flush: the load
    take_unclaimed,    ///< and the exchange
    // work_off
    look,    ///< look_past
    passes,  ///< pass: the wait is over, or its end will be notified (hold_until, timeline::wait)
    work,
    rest,
    complete,  ///< by the thread that completes
    over
};

struct record {
    std::uint8_t epoch = 0;
    bool waits = false;
    auto operator<=>(const record&) const = default;
};

struct queue_state {
    std::array<at, threads> where{};
    std::array<std::uint8_t, threads> left{};   ///< operations that the thread will enqueue
    std::array<std::uint8_t, threads> epoch{};  ///< the epoch that the thread is enqueuing
    std::array<bool, threads> works{};          ///< the thread works off the queue
    std::array<bool, threads> on_fast_path{};
    std::array<record, operations> records{};
    std::uint8_t recorded = 0;
    std::uint8_t taken = 0;
    std::int8_t ran = 0;  ///< ran_, of the thread that works off the queue
    std::int8_t pending = 0;
    bool unclaimed = false;
    bool locked = false;
    bool is_over = false;      ///< the operation that is waited for
    bool is_held = false;      ///< the waiting operation is held until it is notified
    std::uint8_t last = 0;     ///< epoch
    std::uint8_t entered = 0;  ///< up to this
    bool is_out_of_order = false;
    auto operator<=>(const queue_state&) const = default;
};

enum class queue_fault : std::uint8_t {
    none,
    claims_what_is_pending,  ///< claim does not check whether another thread works off the queue
    leaves_what_came,        ///< carry_out does not continue with what was recorded meanwhile
    takes_it_by_a_load,      ///< flush does not take `unclaimed_` by an exchange
    rests_with_a_store,      ///< rest sets the counter to 0 and ignores what was counted meanwhile
    schedules_always,        ///< submit schedules the queue also if another thread works it off
};

struct queue_model {
    queue_fault fault = queue_fault::none;

    [[nodiscard]] queue_state first() const {
        queue_state begin;
        begin.where = {at::lock, at::lock, at::complete};
        begin.left = {each, each, 0};
        return begin;
    }

    void steps(const queue_state& now, moves<queue_state>& possible) const {
        for (std::size_t i = 0; i < threads; ++i) {
            queue_state next = now;
            const char* name = enqueue(next, i);
            name = name == nullptr ? work_off(next, i) : name;
            if (name != nullptr) {
                possible.add(i, name, next);
            }
        }
    }

    /// Null if the thread is not at one of these steps.
    [[nodiscard]] const char* enqueue(queue_state& next, std::size_t i) const {
        at& where = next.where[i];
        switch (where) {
            case at::lock:
                if (next.locked) {
                    return nullptr;
                }
                next.locked = true;
                next.epoch[i] = ++next.last;
                --next.left[i];
                where = waits(next, i) ? at::record : at::ask_if_pending;
                return "locks the stream";
            case at::ask_if_pending:
                where = next.pending != 0 && fault != queue_fault::claims_what_is_pending ? at::record : at::claim;
                return "claim: is anything pending?";
            case at::claim:
                next.pending = 1;
                next.works[i] = true;
                next.on_fast_path[i] = true;
                where = at::unlock;
                return "claim: takes the queue";
            case at::record:
                next.records[next.recorded++] = {next.epoch[i], waits(next, i)};
                where = at::count;
                return "submit: records it";
            case at::count:
                if (next.pending++ == 0 || fault == queue_fault::schedules_always) {
                    next.unclaimed = true;
                }
                where = at::unlock;
                return "submit: counts it";
            case at::unlock:
                next.locked = false;
                where = next.on_fast_path[i] ? at::carry_out : at::ask_if_unclaimed;
                return "unlocks the stream";
            case at::carry_out:
                enter(next, next.epoch[i]);
                where = at::rest_alone;
                return "carry_out: puts it into the driver's stream";
            case at::rest_alone: {
                const bool rests = next.pending-- == 1 || fault == queue_fault::leaves_what_came;
                next.on_fast_path[i] = false;
                next.works[i] = !rests;
                where = rests ? again(next, i) : at::look;
                return "carry_out: rests";
            }
            case at::ask_if_unclaimed:
                where = next.unclaimed ? at::take_unclaimed : again(next, i);
                return "flush: has any thread the queue?";
            case at::take_unclaimed: {
                const bool is_mine = next.unclaimed || fault == queue_fault::takes_it_by_a_load;
                next.unclaimed = false;
                next.works[i] = is_mine;
                where = is_mine ? at::look : again(next, i);
                return "flush: takes the queue";
            }
            default:
                return nullptr;
        }
    }

    [[nodiscard]] const char* work_off(queue_state& next, std::size_t i) const {
        at& where = next.where[i];
        switch (where) {
            case at::complete:
                next.is_over = true;
                where = next.is_held ? at::passes : at::over;
                next.works[i] = next.is_held;
                next.is_held = false;
                return "completes what is waited for";
            case at::look:
                if (next.taken == next.recorded) {
                    where = at::rest;
                    return "works off: nothing is left";
                }
                where = next.records[next.taken].waits ? at::passes : at::work;
                return "works off: looks what comes next";
            case at::passes:
                next.records[next.taken].waits = false;
                if (next.is_over) {
                    where = at::look;
                    return "works off: the wait is over";
                }
                next.is_held = true;
                next.works[i] = false;
                where = again(next, i);
                return "works off: is told when the wait is over";
            case at::work:
                enter(next, next.records[next.taken].epoch);
                next.records[next.taken++] = {};
                ++next.ran;
                where = at::look;
                return "works off: puts one into the driver's stream";
            case at::rest: {
                const std::int8_t ran = std::exchange(next.ran, std::int8_t{0});
                const bool is_more = next.pending > ran && fault != queue_fault::rests_with_a_store;
                next.pending = static_cast<std::int8_t>(next.pending - ran);
                next.works[i] = is_more;
                where = is_more ? at::look : again(next, i);
                return "works off: rests";
            }
            default:
                return nullptr;
        }
    }

    [[nodiscard]] static bool waits(const queue_state& now, std::size_t i) {
        return i == waiting_thread && now.left[i] == 0;
    }
    [[nodiscard]] static at again(queue_state& next, std::size_t i) {
        next.epoch[i] = 0;
        return next.left[i] == 0 ? at::over : at::lock;
    }
    static void enter(queue_state& next, std::uint8_t epoch) {
        next.is_out_of_order = next.is_out_of_order || epoch != next.entered + 1;
        next.entered = epoch;
    }

    [[nodiscard]] const char* wrong(const queue_state& now) const {
        if (now.is_out_of_order) {
            return "operations enter the driver's stream out of order";
        }
        return std::count(now.works.begin(), now.works.end(), true) > 1 ? "two threads have the queue" : nullptr;
    }

    [[nodiscard]] const char* wrong_at_the_end(const queue_state& now) const {
        if (now.entered != operations) {
            return "an operation is left lying";
        }
        return now.pending != 0 || now.unclaimed || now.is_held ? "the queue counts as busy" : nullptr;
    }
};

TEST(RecordedQueueModel, OneThreadHasTheQueueAndNoOperationIsLeftLying) {
    const verdict found = check(queue_model{});
    EXPECT_EQ(found.wrong, "") << found.way;
    EXPECT_GT(found.states, 500U);
}

TEST(RecordedQueueModel, ControlEachStepIsNeeded) {
    struct control {
        queue_fault fault;
        const char* wrong;
    };
    for (const control& one : {
             control{queue_fault::claims_what_is_pending, "two threads have the queue"},
             control{queue_fault::leaves_what_came, "an operation is left lying"},
             control{queue_fault::takes_it_by_a_load, "two threads have the queue"},
             control{queue_fault::rests_with_a_store, "an operation is left lying"},
             control{queue_fault::schedules_always, "two threads have the queue"},
         }) {
        const verdict found = check(queue_model{.fault = one.fault});
        EXPECT_EQ(found.wrong, one.wrong) << static_cast<int>(one.fault) << "\n" << found.way;
    }
}

}  // namespace
}  // namespace weir::test::model
