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
        list = one->next;  // `one` may be destroyed once it is notified
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

bool timeline::wait(waiter& one, epoch at) noexcept {
    if (completed() >= at) {
        return false;
    }
    const detail::fork_section whole;
    one.wanted = at;
    // Before the load of completed_: see complete(). From here on `one` may be destroyed.
    add(one, one);
    if (completed_.load(std::memory_order_seq_cst) >= at) {
        notify_newcomers();
    } else if (const driver* const asked = driver_to_poll()) {
        asked->hurry({number_, at});
    }
    return true;
}

/// For a newcomer whose epoch was completed while it was added: perhaps no completing thread has seen it.
void timeline::notify_newcomers() noexcept {
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
        // A completion during this call has not seen the waiters that were taken out here and added again.
        if (completed_.load(std::memory_order_seq_cst) < earliest) {
            return;
        }
    }
}

/// Inserts a newcomer into the ordered list of waiters: usually its epoch is later than all others, and it joins at the end.
void timeline::insert(waiter& one) noexcept {
    waiter* before = last_;
    while (before != nullptr && before->wanted > one.wanted) {
        before = before->previous;
    }
    waiter*& link = before == nullptr ? first_ : before->next;
    one.previous = before;
    one.next = link;
    (one.next == nullptr ? last_ : one.next->previous) = &one;
    link = &one;
}

void timeline::notify(epoch at) noexcept {
    const detail::fork_section whole;  // no fork may come between: the waiters to notify are in no list any more
    // The latest newcomers are first in the list.
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

/// The device of the timeline, if a host thread has to look for its progress (driver::is_asked); else null.
const driver* timeline::driver_to_poll() const noexcept {
    const driver* const of = this->of();
    return of != nullptr && of->is_asked() ? of : nullptr;
}

bool timeline_table::has_own_end(point p) const noexcept {
    const driver* const of = at(p.timeline).of();
    return of == nullptr || of->has_own_end(p);
}

bool timeline_table::host_ask(point p) const {
    if (!is_complete(p)) {
        if (const driver* const asked = at(p.timeline).driver_to_poll()) {
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
    // A thread that reads this value reads the new watch_make_, too.
    watch_every_.store(by.every, std::memory_order_release);
}

wait_watch timeline_table::watch() const noexcept {
    const std::chrono::nanoseconds every = watch_every_.load(std::memory_order_acquire);
    return {every, watch_make_.load(std::memory_order_relaxed)};
}

namespace {

/// A thread that sleeps until it is notified.
struct blocked : waiter {
    detail::mutex mutex;
    detail::condition_variable over;
    bool is_over = false;
    virtual ~blocked() = default;
    void reached() noexcept override {
        // Notifies under the lock: once the lock is free, the waiting thread may end, and this object with it.
        const std::lock_guard lock(mutex);
        is_over = true;
        over.notify_one();
    }
};

/// The same for a thread that may end its wait before it is notified.
struct abandonable final : blocked {
    std::shared_ptr<abandonable> notifying_owner;  ///< keeps this alive for the notifying thread until it is done
    void reached() noexcept override {
        const std::shared_ptr<abandonable> self = std::move(notifying_owner);
        blocked::reached();
    }

    /// Returns false if there is no memory for the object.
    static bool wait(timeline& line, point target, detail::interruptible& answers);

private:
    static void sleep(const std::shared_ptr<abandonable>& self, point target, detail::interruptible& answers);
};

/// The wait that a thread ended last. The timeline still has its waiter, which the next wait for the same point uses: a thread that waits
/// again and again with a short deadline adds one waiter, not one for each wait.
struct abandoned_wait {
    point target;
    std::weak_ptr<abandonable> by;
};
thread_local abandoned_wait last_abandoned;

void abandonable::sleep(const std::shared_ptr<abandonable>& self, point target, detail::interruptible& answers) {
    std::unique_lock lock(self->mutex);
    try {
        watched_sleep(target).until(
            lock, self->over, [&] { return self->is_over; }, &answers);
    } catch (...) {
        last_abandoned = {target, self};
        throw;
    }
}

bool abandonable::wait(timeline& line, point target, detail::interruptible& answers) {
    if (last_abandoned.target == target) {
        if (const std::shared_ptr<abandonable> known = last_abandoned.by.lock()) {
            sleep(known, target, answers);
            return true;
        }
    }
    std::shared_ptr<abandonable> self;
    try {
        self = std::make_shared<abandonable>();
    } catch (const std::bad_alloc&) {
        return false;
    }
    self->notifying_owner = self;
    if (!line.wait(*self, target.at)) {
        self->notifying_owner.reset();
        return true;
    }
    sleep(self, target, answers);
    return true;
}

thread_local detail::interruptible* innermost = nullptr;

// Initialized at start, so that no fork finds it half initialized.
[[maybe_unused]] const bool spins_at_start = worth_spinning();

}  // namespace

void timeline_table::host_wait(point p) const {
    timeline& line = at(p.timeline);
    if (line.completed() >= p.at) {
        return;
    }
    const detail::fork_section whole;  // no fork may come between: the timeline points to this thread's waiter
    detail::interruptible* const answers = detail::interruptible::current();
    if (answers != nullptr) {
        answers->expect_not_ended();
    }
    if (driving_hosts::needed()) {
        driving_hosts::instance().wait(line, p, answers);
        return;
    }
    if (const driver* const asked = line.driver_to_poll(); asked != nullptr && asked->await(p)) {
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
        return false;  // the thread's interruptible keeps the exception
    }
}

}  // namespace weir::backend

namespace weir::detail {

interruptible::interruptible(question asked) noexcept
    : asked_(asked), of_thread_(&backend::found_once(backend::innermost)), before_(std::exchange(*of_thread_, this)) {}

interruptible::interruptible(question asked, std::chrono::steady_clock::time_point deadline) noexcept
    : interruptible(asked) {
    deadline_ = deadline;
}

interruptible::~interruptible() { *of_thread_ = before_; }

interruptible* interruptible::current() noexcept {
    interruptible* const one = backend::innermost;
    return one != nullptr && one->asked_ != nullptr ? one : nullptr;
}

void interruptible::ask() {
    expect_not_ended();
    try {
        asked_();
        if (deadline_ && std::chrono::steady_clock::now() >= *deadline_) {
            throw deadline_passed();
        }
    } catch (...) {
        ended_ = std::current_exception();
        throw;
    }
}

std::chrono::nanoseconds interruptible::longest_sleep() const noexcept {
    if (!deadline_) {
        return backend::between_questions;
    }
    const std::chrono::nanoseconds left = *deadline_ - std::chrono::steady_clock::now();
    return std::clamp(left, std::chrono::nanoseconds(0), backend::between_questions);
}

bool interruptible::may_go_on() noexcept {
    if (ended_) {
        return false;
    }
    const auto now = std::chrono::steady_clock::now();
    const std::chrono::nanoseconds since_start = now.time_since_epoch();
    if (since_start - std::chrono::nanoseconds(asked_at_) < backend::between_questions &&
        (!deadline_ || now < *deadline_)) {
        return true;
    }
    asked_at_ = since_start.count();
    try {
        ask();
    } catch (...) {
        return false;
    }
    return true;
}

}  // namespace weir::detail
