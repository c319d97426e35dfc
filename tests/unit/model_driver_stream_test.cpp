// A model of what backend::cuda::driver_stream does without a lock (driver_stream.hpp, driver_stream_progress.cpp), step for step, in
// memory with store buffers: one thread enqueues and drops the stream, two look for its progress, and its owner stays as long as it has
// work.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>

#include "support/model_checker.hpp"

namespace weir::test::model {
namespace {

constexpr std::size_t enqueuer = 0;
constexpr std::size_t watcher = 2;  ///< looks until everything is complete; the thread before it looks once at most
constexpr std::size_t threads = 3;
constexpr std::uint8_t operations = 2;

enum class at : std::uint8_t {
    // driver_stream::enqueued, or driver_stream::enters
    enter,
    ask_if_busy,  ///< in enqueued
    // driver_stream::submitted, or driver_stream::entered and recorded_queue::rest_alone
    submit,
    fence,
    ask_again,  ///< driver_stream::make_known, find_watcher
    // driver_stream::stay
    busy,
    mark_busy,
    was_busy,  ///< owner_->idle
    // driver_stream::stay_until
    ask_if_over,
    drop,  ///< the program drops the stream
    // driver_stream::look, and the functions like it
    see,
    // driver_stream::give_up in an earlier version: it reported to the owner before advance
    begin_to_tell,
    end_to_tell,
    // driver_stream::give_up
    raise_lost,
    // driver_stream::advance, driver_stream::complete
    raise,
    compare,
    compare_lost,  ///< the second half of end()
    take,          ///< completing_.exchange
    read_lost,
    read,
    tell,  ///< what the section does with the owner: let_go, tell_times, lost
    complete,
    clear,
    // driver_stream::leave_if_idle
    is_last,
    leave,
    is_still_last,
    is_still_submitted,
    come_back,
    ask_how_far,
    idle,
    over
};

enum variable : std::size_t { last, submitted, is_busy, reached, lost, completing, completed, variables };

struct lane_state {
    buffered_memory<threads, variables> memory;
    std::array<at, threads> where{};
    std::array<at, threads> then{};             ///< where a thread goes on after `stay` and `leave_if_idle`
    std::array<std::uint8_t, threads> upto{};   ///< the epoch that advance or leave_if_idle handles
    std::array<std::uint8_t, threads> done{};   ///< `over` in advance
    std::array<std::uint8_t, threads> first{};  ///< in give_up
    std::array<std::uint8_t, threads> sound{};  ///< in complete
    std::array<std::uint8_t, threads> bound{};  ///< `lost` in complete
    std::uint8_t enqueued = 0;
    std::uint8_t ended = 0;  ///< completed_
    std::uint8_t owners = 1;
    std::array<std::uint8_t, operations> told{};  ///< how often each operation was reported to the owner
    std::array<bool, operations>
        was_known{};  ///< whether each operation was known to be complete when it was found lost
    bool was_used_when_gone = false;
    bool went_too_early = false;
    bool was_lost_though_known = false;
    auto operator<=>(const lane_state&) const = default;
};

enum class lane_fault : std::uint8_t {
    none,
    no_second_look,           ///< leave_if_idle does not check the end again
    no_look_once_busy_again,  ///< advance does not compare again once it has let others complete
    no_second_compare,        ///< advance does not compare again once it has let other threads complete
    all_may_complete,         ///< advance does not keep other threads out
    raises_too_late,    ///< advance tries to become the completing thread before it has stored how far the stream is
    no_fence,           ///< no fence between the entry of an operation and the query whether the owner stays
    marks_before_busy,  ///< stay sets is_busy_ before it asks the owner to stay
    stays_for_nothing,  ///< stay_until does not check whether the operation is complete by now
    tells_outside,      ///< give_up reports to the owner before it enters the section, as an earlier version did
    reads_lost_last,    ///< complete reads how far the stream is before it reads how far the loss goes
};

struct lane_model {
    lane_fault fault = lane_fault::none;
    bool is_plain = true;  ///< the fast path (enters, entered), else the slow one (enqueued, submitted)
    bool looks_once =
        false;  ///< one thread sees each operation complete, and does not look again (driver_stream::finished)
    /// A thread that looks may find the context broken (driver_stream::give_up). The owner stays: without its steps, whose number
    /// would be multiplied.
    bool may_break = false;

    [[nodiscard]] lane_state first() const {
        lane_state begin;
        begin.where = {at::enter, at::see, at::see};
        return begin;
    }

    void steps(const lane_state& now, moves<lane_state>& possible) const {
        for (std::size_t i = 0; i < threads; ++i) {
            if (!now.memory.is_drained(i)) {
                lane_state next = now;
                next.memory.drain_one(i);
                possible.add(i, "(its write reaches the memory)", next);
            }
            lane_state next = now;
            const char* name = i == enqueuer ? enqueue(next) : nullptr;
            name = name == nullptr ? look(next, i) : name;
            name = name == nullptr ? advance(next, i) : name;
            name = name == nullptr ? stay_or_leave(next, i) : name;
            if (name != nullptr) {
                possible.add(i, name, next);
            }
            if (now.where[i] == at::see && i != watcher && !looks_once) {
                lane_state never = now;
                never.where[i] = at::over;
                possible.add(i, "does not look", never);
            }
            const std::uint8_t all = now.memory.load(i, submitted);
            if (may_break && now.where[i] == at::see && all > now.memory.load(i, completed)) {
                lane_state broken = now;
                broken.upto[i] = all;
                broken.where[i] = at::raise_lost;
                possible.add(i, "looks: the context is broken", broken);
            }
        }
    }

    /// Null if the thread is not at one of these steps.
    [[nodiscard]] const char* enqueue(lane_state& next) const {
        at& where = next.where[enqueuer];
        switch (where) {
            case at::enter:
                ++next.enqueued;
                if (may_break) {
                    next.memory.store_at_once(enqueuer, submitted, next.enqueued);
                    where = after_an_operation(next);
                    return "submitted";
                }
                if (is_plain) {
                    next.memory.store(enqueuer, last, next.enqueued);
                    where = at::submit;
                    return "enters: last";
                }
                next.memory.store_at_once(enqueuer, last, next.enqueued);
                where = at::ask_if_busy;
                return "enqueued: last";
            case at::ask_if_busy:
                next.then[enqueuer] = at::submit;
                where = next.memory.load(enqueuer, is_busy) != 0 ? at::submit : begin_to_stay();
                return "enqueued: is it busy?";
            case at::submit:
                if (is_plain) {
                    next.memory.store(enqueuer, submitted, next.enqueued);
                } else {
                    next.memory.store_at_once(enqueuer, submitted, next.enqueued);
                }
                where = fault == lane_fault::no_fence ? at::ask_again : at::fence;
                return "submitted";
            case at::fence:
                next.memory.fence(enqueuer);
                where = at::ask_again;
                return "rest_alone: a fence";
            case at::ask_again:
                next.then[enqueuer] = at::ask_if_over;
                where = next.memory.load(enqueuer, is_busy) != 0 ? after_an_operation(next) : begin_to_stay();
                return "make_known: is it busy?";
            case at::ask_if_over:
                next.upto[enqueuer] = next.enqueued;
                next.then[enqueuer] = after_an_operation(next);
                where = next.memory.load(enqueuer, completed) >= next.enqueued && fault != lane_fault::stays_for_nothing
                            ? at::is_last
                            : next.then[enqueuer];
                return "stay_until: is it over?";
            case at::drop:
                next.memory.fence(enqueuer);
                if (!may_break) {
                    drop_owner(next);
                }
                where = at::over;
                return "the program drops the stream";
            default:
                return nullptr;
        }
    }

    [[nodiscard]] static at after_an_operation(const lane_state& next) {
        return next.enqueued == operations ? at::drop : at::enter;
    }

    /// The device has completed everything that it has got.
    [[nodiscard]] const char* look(lane_state& next, std::size_t i) const {
        at& where = next.where[i];
        switch (where) {
            case at::see: {
                if (looks_once) {
                    if (next.memory.load(i, submitted) < i) {
                        return nullptr;
                    }
                    next.upto[i] = static_cast<std::uint8_t>(i);
                    where = first_of_advance();
                    return "finished";
                }
                const std::uint8_t all = next.memory.load(i, submitted);
                if (all <= next.memory.load(i, completed)) {
                    if (i != watcher || next.memory.load(i, completed) != operations) {
                        return nullptr;  // nothing complete yet: looks later
                    }
                    where = at::over;
                    return "all is over";
                }
                next.upto[i] = all;
                next.first[i] = static_cast<std::uint8_t>(next.memory.load(i, reached) + 1);
                where =
                    fault == lane_fault::tells_outside && next.first[i] <= all ? at::begin_to_tell : first_of_advance();
                return "looks";
            }
            case at::begin_to_tell:
                tell(next, next.first[i], next.upto[i]);
                where = at::end_to_tell;
                return "give_up: begins to tell the owner";
            case at::end_to_tell:
                use_owner(next);
                where = first_of_advance();
                return "give_up: has told the owner";
            default:
                return nullptr;
        }
    }

    [[nodiscard]] at first_of_advance() const { return fault == lane_fault::raises_too_late ? at::take : at::raise; }

    [[nodiscard]] const char* advance(lane_state& next, std::size_t i) const {
        at& where = next.where[i];
        buffered_memory<threads, variables>& memory = next.memory;
        switch (where) {
            case at::raise:
                memory.store_at_once(i, reached, std::max(memory.load(i, reached), next.upto[i]));
                where = fault == lane_fault::raises_too_late ? first_read() : at::compare;
                return "advance: raises reached";
            case at::raise_lost:
                find_lost(next, next.upto[i]);
                memory.store_at_once(i, lost, std::max(memory.load(i, lost), next.upto[i]));
                where = at::compare;
                return "give_up: raises lost";
            case at::compare:
                if (memory.load(i, completed) < memory.load(i, reached)) {
                    where = at::take;
                } else {
                    where = may_break ? at::compare_lost : end_of_advance(next, i);
                }
                return "advance: is anything to complete?";
            case at::compare_lost:
                where = memory.load(i, completed) < memory.load(i, lost) ? at::take : end_of_advance(next, i);
                return "advance: is anything lost?";
            case at::take:
                if (memory.exchange(i, completing, 1) != 0 && fault != lane_fault::all_may_complete) {
                    where = end_of_advance(next, i);
                    return "advance: another one completes";
                }
                where = fault == lane_fault::raises_too_late ? at::raise : first_read();
                return "advance: completes";
            case at::read_lost:
                next.bound[i] = memory.load(i, lost);
                where = fault == lane_fault::reads_lost_last ? have_read(next, i) : at::read;
                return "advance: how far is it lost?";
            case at::read:
                next.sound[i] = std::max(memory.load(i, reached), next.ended);
                where = may_break && fault == lane_fault::reads_lost_last ? at::read_lost : have_read(next, i);
                return "advance: how far?";
            case at::tell:
                use_owner(next);
                lose(next, next.sound[i], next.bound[i]);
                next.sound[i] = 0;
                next.bound[i] = 0;
                if (fault != lane_fault::tells_outside) {
                    tell(next, static_cast<std::uint8_t>(next.ended + 1), next.upto[i]);
                }
                where = at::complete;
                return "advance: tells the owner";
            case at::complete:
                next.ended = next.upto[i];
                next.done[i] = next.upto[i];
                memory.store_at_once(i, completed, next.upto[i]);
                where = at::clear;
                return "advance: completes the epoch";
            case at::clear:
                memory.store_at_once(i, completing, 0);
                where = fault == lane_fault::no_second_compare ? end_of_advance(next, i) : at::compare;
                return "advance: lets others complete";
            default:
                return nullptr;
        }
    }

    [[nodiscard]] at first_read() const {
        return may_break && fault != lane_fault::reads_lost_last ? at::read_lost : at::read;
    }
    [[nodiscard]] static at have_read(lane_state& next, std::size_t i) {
        next.upto[i] = std::max(next.sound[i], next.bound[i]);
        if (next.upto[i] > next.ended) {
            return at::tell;
        }
        next.sound[i] = 0;
        next.bound[i] = 0;
        return at::clear;
    }

    [[nodiscard]] at end_of_advance(lane_state& next, std::size_t i) const {
        const std::uint8_t done = std::exchange(next.done[i], std::uint8_t{0});
        next.then[i] = i == watcher && !looks_once ? at::see : at::over;
        next.upto[i] = done;
        next.first[i] = 0;
        return done != 0 && !may_break ? at::is_last : left(next, i);
    }

    [[nodiscard]] at begin_to_stay() const { return fault == lane_fault::marks_before_busy ? at::mark_busy : at::busy; }

    [[nodiscard]] const char* stay_or_leave(lane_state& next, std::size_t i) const {
        at& where = next.where[i];
        buffered_memory<threads, variables>& memory = next.memory;
        const bool marks_first = fault == lane_fault::marks_before_busy;
        switch (where) {
            case at::busy:
                use_owner(next);
                ++next.owners;
                where = marks_first ? next.then[i] : at::mark_busy;
                return "stay: the owner is told";
            case at::mark_busy: {
                const bool was_busy = memory.exchange(i, is_busy, 1) != 0;
                where = marks_first ? (was_busy ? next.then[i] : at::busy) : was_busy ? at::was_busy : next.then[i];
                return "stay: is_busy";
            }
            case at::was_busy:
                drop_owner(next);
                where = next.then[i];
                return "stay: the owner was told before";
            case at::is_last:
                where = memory.load(i, last) == next.upto[i] ? at::leave : left(next, i);
                return "leave_if_idle: is it the last one?";
            case at::leave:
                if (memory.exchange(i, is_busy, 0) == 0) {
                    where = left(next, i);
                    return "leave_if_idle: another one was faster";
                }
                where = fault == lane_fault::no_second_look ? at::idle : at::is_still_last;
                return "leave_if_idle: not busy any more";
            case at::is_still_last:
                where = memory.load(i, last) == next.upto[i] ? at::is_still_submitted : at::come_back;
                return "leave_if_idle: is it still the last one?";
            case at::is_still_submitted:
                where = memory.load(i, submitted) == next.upto[i] ? at::idle : at::come_back;
                return "leave_if_idle: has it entered last?";
            case at::come_back:
                if (memory.exchange(i, is_busy, 1) != 0) {
                    where = at::idle;
                } else {
                    where = fault == lane_fault::no_look_once_busy_again ? left(next, i) : at::ask_how_far;
                }
                return "leave_if_idle: is busy after all";
            case at::ask_how_far:
                next.upto[i] = memory.load(i, completed);
                where = at::is_last;
                return "leave_if_idle: how far is it by now?";
            case at::idle:
                drop_owner(next);
                where = left(next, i);
                return "leave_if_idle: the owner is let go of";
            default:
                return nullptr;
        }
    }

    [[nodiscard]] static at left(lane_state& next, std::size_t i) {
        next.upto[i] = 0;
        return next.then[i];
    }

    static void tell(lane_state& next, std::uint8_t first, std::uint8_t upto) {
        use_owner(next);
        for (std::uint8_t one = first; one <= upto; ++one) {
            ++next.told[one - 1U];
        }
    }
    /// A thread finds the operations up to `upto` lost, which were not found lost before.
    static void find_lost(lane_state& next, std::uint8_t upto) {
        const std::uint8_t known = next.memory.in_memory(reached);
        for (std::size_t one = next.memory.in_memory(lost); one < upto; ++one) {
            next.was_known[one] = one < known;
        }
    }
    /// Reports the operations behind `sound` as lost.
    static void lose(lane_state& next, std::uint8_t sound, std::uint8_t upto) {
        for (std::size_t one = sound; one < upto; ++one) {
            next.was_lost_though_known = next.was_lost_though_known || next.was_known[one];
        }
    }
    static void use_owner(lane_state& next) { next.was_used_when_gone = next.was_used_when_gone || next.owners == 0; }
    static void drop_owner(lane_state& next) {
        use_owner(next);
        next.owners = next.owners == 0 ? 0 : static_cast<std::uint8_t>(next.owners - 1);
        next.went_too_early =
            next.went_too_early || (next.owners == 0 && next.memory.in_memory(completed) < next.enqueued);
    }

    [[nodiscard]] const char* wrong(const lane_state& now) const {
        if (now.went_too_early) {
            return "the owner goes while an operation is not over";
        }
        if (now.was_used_when_gone) {
            return "the owner is used when it is gone";
        }
        if (now.was_lost_though_known) {
            return "an operation is lost that was known to be complete";
        }
        const bool is_told_twice =
            std::any_of(now.told.begin(), now.told.end(), [](std::uint8_t times) { return times > 1; });
        return is_told_twice ? "an operation is told of twice" : nullptr;
    }

    [[nodiscard]] const char* wrong_at_the_end(const lane_state& now) const {
        if (now.memory.in_memory(completed) != operations) {
            return "an operation is not completed";
        }
        if (std::any_of(now.told.begin(), now.told.end(), [](std::uint8_t times) { return times != 1; })) {
            return "an operation is not told of";
        }
        return now.owners != 0 && !may_break ? "the owner stays for ever" : nullptr;
    }
};

TEST(DriverStreamModel, EachOperationIsCompletedOnceAndTheOwnerStaysAsLongAsThereAreAny) {
    for (const bool is_plain : {true, false}) {
        for (const bool looks_once : {true, false}) {
            const verdict found = check(lane_model{.is_plain = is_plain, .looks_once = looks_once});
            EXPECT_EQ(found.wrong, "") << found.way;
            EXPECT_GT(found.states, 500U);
        }
    }
}

TEST(DriverStreamModel, WhatIsKnownToBeCompleteIsNotLostWhenTheContextBreaks) {
    const verdict found = check(lane_model{.may_break = true});
    EXPECT_EQ(found.wrong, "") << found.way;
    EXPECT_GT(found.states, 500U);
    const verdict control = check(lane_model{.fault = lane_fault::reads_lost_last, .may_break = true});
    EXPECT_EQ(control.wrong, "an operation is lost that was known to be complete") << control.way;
}

TEST(DriverStreamModel, ControlEachStepIsNeeded) {
    struct control {
        lane_fault fault;
        const char* wrong;
        bool looks_once = false;
    };
    for (const control& one : {
             control{lane_fault::no_second_look, "the owner goes while an operation is not over"},
             control{lane_fault::no_look_once_busy_again, "the owner stays for ever"},
             control{lane_fault::no_second_compare, "an operation is not completed", true},
             control{lane_fault::all_may_complete, "an operation is told of twice"},
             control{lane_fault::raises_too_late, "an operation is not completed", true},
             control{lane_fault::no_fence, "the owner goes while an operation is not over"},
             control{lane_fault::marks_before_busy, "the owner is used when it is gone"},
             control{lane_fault::stays_for_nothing, "the owner stays for ever"},
             control{lane_fault::tells_outside, "an operation is told of twice"},
         }) {
        const verdict found = check(lane_model{.fault = one.fault, .looks_once = one.looks_once});
        EXPECT_EQ(found.wrong, one.wrong) << static_cast<int>(one.fault) << "\n" << found.way;
    }
}

}  // namespace
}  // namespace weir::test::model
