#include "backend/timeline.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <new>
#include <utility>

#include "backend/backend.hpp"
#include "backend/host_driven.hpp"
#include "backend/own_variable.hpp"
#include "backend/spin.hpp"
#include "backend/waiting_host.hpp"
#include "weir/detail/fork_section.hpp"
#include "weir/detail/interruption.hpp"
#include "weir/detail/mutex.hpp"

namespace weir::backend {

namespace {

void tell_all(waiter* list) noexcept {
    while (list != nullptr) {
        waiter* const one = list;
        list = one->next;  // `one` may be gone once it is told
        one->reached();
    }
}

waiter& last_of(waiter& list) noexcept {
    waiter* last = &list;
    while (last->next != nullptr) {
        last = last->next;
    }
    return *last;
}

}  // namespace

void timeline::add(waiter& first, waiter& last) noexcept {
    last.next = newcomers_.load(std::memory_order_relaxed);
    while (!newcomers_.compare_exchange_weak(last.next, &first, std::memory_order_seq_cst, std::memory_order_relaxed)) {
    }
}

bool timeline::wait(waiter& who, epoch at) noexcept {
    if (completed() >= at) {
        return false;
    }
    const detail::fork_section whole;
    who.wanted = at;
    add(who, who);  // before the look at completed_: see complete(). From here on `who` may be gone.
    if (completed_.load(std::memory_order_seq_cst) >= at) {
        tell_newcomers();
    } else if (const driver* const asked = whom_to_ask()) {
        asked->hurry({number_, at});
    }
    return true;
}

/// For a newcomer whose epoch was completed while it came: perhaps nobody has seen it.
void timeline::tell_newcomers() noexcept {
    for (;;) {
        waiter* rest = newcomers_.exchange(nullptr, std::memory_order_seq_cst);
        const epoch at = completed_.load(std::memory_order_seq_cst);
        waiter* reached = nullptr;
        epoch earliest = std::numeric_limits<epoch>::max();
        for (waiter** link = &rest; *link != nullptr;) {
            waiter* const one = *link;
            if (one->wanted <= at) {
                *link = one->next;
                one->next = reached;
                reached = one;
            } else {
                earliest = std::min(earliest, one->wanted);
                link = &one->next;
            }
        }
        if (rest != nullptr) {
            add(*rest, last_of(*rest));
        }
        tell_all(reached);
        // A completion that came while the rest was in our hands has not seen it.
        if (completed_.load(std::memory_order_seq_cst) < earliest) {
            return;
        }
    }
}

/// Puts a newcomer in its place among those who wait: usually it wants more than all others, and joins at the end.
void timeline::insert(waiter& who) noexcept {
    waiter* before = last_;
    while (before != nullptr && before->wanted > who.wanted) {
        before = before->previous;
    }
    waiter*& link = before == nullptr ? first_ : before->next;
    who.previous = before;
    who.next = link;
    (who.next == nullptr ? last_ : who.next->previous) = &who;
    link = &who;
}

void timeline::tell(epoch at) noexcept {
    const detail::fork_section whole;  // those who are told are in nobody else's hands
    // Those who came last are first in the list.
    waiter* in_order = nullptr;
    for (waiter* one = newcomers_.exchange(nullptr, std::memory_order_seq_cst); one != nullptr;) {
        waiter* const next = one->next;
        one->next = in_order;
        in_order = one;
        one = next;
    }
    while (in_order != nullptr) {
        waiter& one = *in_order;
        in_order = one.next;
        insert(one);
    }
    waiter* const reached = first_;
    waiter* last = nullptr;
    while (first_ != nullptr && first_->wanted <= at) {
        last = first_;
        first_ = first_->next;
    }
    (first_ == nullptr ? last_ : first_->previous) = nullptr;
    if (last != nullptr) {
        last->next = nullptr;
        tell_all(reached);
    }
}

constinit one_timeline_table one_timeline_table::of_process;

timeline_id timeline_table::acquire(const driver* of) {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
        std::pop_heap(free_.begin(), free_.end(), std::greater<>());
        const timeline_id id = free_.back();
        free_.pop_back();
        at(id).belong_to(of);
        return id;
    }
    if (next_ % chunk_size == 0) {
        if (next_ / chunk_size == most_chunks) {
            throw std::bad_alloc();
        }
        storage_.push_back(std::make_unique<timeline[]>(chunk_size));
        free_.reserve(storage_.size() * chunk_size);  // so that release cannot fail
        chunks_[next_ / chunk_size].store(storage_.back().get(), std::memory_order_release);
    }
    at(next_).belong_to(of);
    at(next_).number_ = next_;
    return next_++;
}

void timeline_table::release(timeline_id id) noexcept {
    const std::lock_guard lock(mutex_);
    free_.push_back(id);
    std::push_heap(free_.begin(), free_.end(), std::greater<>());
}

/// The device of the timeline, if somebody has to look how far it is.
const driver* timeline::whom_to_ask() const noexcept {
    const driver* const of = this->of();
    return of != nullptr && of->is_asked() ? of : nullptr;
}

bool timeline_table::has_own_end(point p) const noexcept {
    const driver* const of = at(p.timeline).of();
    return of == nullptr || of->has_own_end(p);
}

bool timeline_table::host_ask(point p) const {
    if (!is_complete(p)) {
        if (const driver* const asked = at(p.timeline).whom_to_ask()) {
            asked->look(p);
        }
    }
    if (!is_complete(p) && driving_hosts::needed()) {
        driving_hosts::instance().step_once();
    }
    return is_complete(p);
}

void timeline_table::watch(const wait_watch& by) noexcept {
    watch_make_.store(by.make, std::memory_order_relaxed);
    watch_every_.store(by.every, std::memory_order_release);  // whoever sees it sees whom to tell
}

wait_watch timeline_table::watch() const noexcept {
    const std::chrono::nanoseconds every = watch_every_.load(std::memory_order_acquire);
    return {every, watch_make_.load(std::memory_order_relaxed)};
}

namespace {

/// A thread that sleeps until it is told.
struct blocked : waiter {
    detail::mutex mutex;
    detail::condition_variable over;
    bool is_over = false;
    virtual ~blocked() = default;
    void reached() noexcept override {
        // Notifies under the lock: the waiting thread may end, and this object with it, as soon as it is free.
        const std::lock_guard lock(mutex);
        is_over = true;
        over.notify_one();
    }
};

/// The same for a thread that may go away before it is told.
struct abandonable final : blocked {
    std::shared_ptr<abandonable> told_owner;  ///< of whoever tells, until it has told
    void reached() noexcept override {
        const std::shared_ptr<abandonable> self = std::move(told_owner);
        blocked::reached();
    }

    /// False if there is no memory for one.
    static bool wait(timeline& line, point target, detail::interruptible& answers) {
        std::shared_ptr<abandonable> self;
        try {
            self = std::make_shared<abandonable>();
        } catch (const std::bad_alloc&) {
            return false;
        }
        self->told_owner = self;
        if (!line.wait(*self, target.at)) {
            self->told_owner.reset();
            return true;
        }
        std::unique_lock lock(self->mutex);
        watched_sleep(target).until(
            lock, self->over, [&] { return self->is_over; }, &answers);
        return true;
    }
};

thread_local detail::interruptible* innermost = nullptr;

// So that no fork finds them half made.
[[maybe_unused]] const bool spins_at_start = worth_spinning();

}  // namespace

void timeline_table::host_wait(point p) const {
    timeline& line = at(p.timeline);
    if (line.completed() >= p.at) {
        return;
    }
    const detail::fork_section whole;  // who waits is known to the timeline
    detail::interruptible* const answers = detail::interruptible::current();
    if (answers != nullptr) {
        answers->expect_not_ended();
    }
    if (driving_hosts::needed()) {
        driving_hosts::instance().wait(line, p, answers);
        return;
    }
    if (const driver* const asked = line.whom_to_ask(); asked != nullptr && asked->await(p)) {
        return;
    }
    const waiting_host self_waits;
    // Costs less than a sleep and a wake where little is left to wait for.
    if (spin_until([&] { return line.completed() >= p.at; }, false)) {
        return;
    }
    if (answers != nullptr && abandonable::wait(line, p, *answers)) {
        return;
    }
    blocked self;
    if (line.wait(self, p.at)) {
        std::unique_lock lock(self.mutex);
        watched_sleep(p).until(lock, self.over, [&] { return self.is_over; });
    }
}

bool timeline_table::host_wait_or_end(point p) const noexcept {
    try {
        host_wait(p);
        return true;
    } catch (...) {
        return false;  // the thread's interruptible knows
    }
}

}  // namespace weir::backend

namespace weir::detail {

interruptible::interruptible(question asked) noexcept
    : asked_(asked), of_thread_(&backend::found_once(backend::innermost)), before_(std::exchange(*of_thread_, this)) {}

interruptible::~interruptible() { *of_thread_ = before_; }

interruptible* interruptible::current() noexcept {
    interruptible* const one = backend::innermost;
    return one != nullptr && one->asked_ != nullptr ? one : nullptr;
}

void interruptible::ask() {
    expect_not_ended();
    try {
        asked_();
    } catch (...) {
        ended_ = std::current_exception();
        throw;
    }
}

bool interruptible::may_go_on() noexcept {
    if (ended_) {
        return false;
    }
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    if (now - std::chrono::nanoseconds(asked_at_) < backend::between_questions) {
        return true;
    }
    asked_at_ = std::chrono::nanoseconds(now).count();
    try {
        ask();
    } catch (...) {
        return false;
    }
    return true;
}

}  // namespace weir::detail
