#include "backend/timeline.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <new>

#include "backend/spin.hpp"

namespace weir::backend {

namespace {

/// Takes what waits for `at` or earlier out of `list`. Gives it as a list; `earliest` gets the least epoch of the rest.
waiter* take_reached(waiter*& list, epoch at, epoch& earliest) noexcept {
    waiter* reached = nullptr;
    waiter** link = &list;
    while (*link != nullptr) {
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
    return reached;
}

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
    who.wanted = at;
    add(who, who);  // before the look at completed_: see complete(). From here on `who` may be gone.
    if (completed_.load(std::memory_order_seq_cst) >= at) {
        tell_newcomers();
    }
    return true;
}

/// For a newcomer whose epoch was completed while it came: perhaps nobody has seen it.
void timeline::tell_newcomers() noexcept {
    for (;;) {
        waiter* rest = newcomers_.exchange(nullptr, std::memory_order_seq_cst);
        epoch earliest = never;
        waiter* const reached = take_reached(rest, completed_.load(std::memory_order_seq_cst), earliest);
        if (rest != nullptr) {
            add(*rest, last_of(*rest));
        }
        tell_all(reached);
        // A completion that came while the rest was in our hands has not seen it.
        if (earliest == never || completed_.load(std::memory_order_seq_cst) < earliest) {
            return;
        }
    }
}

void timeline::tell(epoch at) noexcept {
    if (waiter* const newcomers = newcomers_.exchange(nullptr, std::memory_order_seq_cst); newcomers != nullptr) {
        last_of(*newcomers).next = list_;
        list_ = newcomers;
    }
    earliest_ = never;
    tell_all(take_reached(list_, at, earliest_));
}

timeline_table& timeline_table::instance() {
    static auto* const table = new timeline_table;  // NOLINT(cppcoreguidelines-owning-memory): lives for ever
    return *table;
}

timeline_id timeline_table::acquire() {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
        const timeline_id id = free_.back();
        free_.pop_back();
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
    return next_++;
}

void timeline_table::release(timeline_id id) noexcept {
    const std::lock_guard lock(mutex_);
    free_.push_back(id);
}

void timeline_table::host_wait(point p) const {
    struct blocked final : waiter {
        std::mutex mutex;
        std::condition_variable over;
        bool is_over = false;
        void reached() noexcept override {
            // Notifies under the lock: the waiting thread may end, and this object with it, as soon as it is free.
            const std::lock_guard lock(mutex);
            is_over = true;
            over.notify_one();
        }
    };
    timeline& line = at(p.timeline);
    // Costs less than a sleep and a wake where little is left to wait for.
    if (line.completed() >= p.at || spin_until([&] { return line.completed() >= p.at; })) {
        return;
    }
    blocked self;
    if (line.wait(self, p.at)) {
        std::unique_lock lock(self.mutex);
        self.over.wait(lock, [&] { return self.is_over; });
    }
}

}  // namespace weir::backend
