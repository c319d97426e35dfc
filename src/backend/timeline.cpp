#include "backend/timeline.hpp"

#include <condition_variable>
#include <new>

namespace weir::backend {

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

void timeline::remove(waiter& who) noexcept {
    (who.previous == nullptr ? first_ : who.previous->next) = who.next;
    (who.next == nullptr ? last_ : who.next->previous) = who.previous;
}

bool timeline::wait(waiter& who, epoch at) noexcept {
    const std::lock_guard lock(mutex_);
    who.wanted = at;
    insert(who);
    next_wanted_.store(first_->wanted, std::memory_order_seq_cst);  // before the look at completed_: see complete()
    if (completed_.load(std::memory_order_seq_cst) < at) {
        return true;
    }
    remove(who);
    next_wanted_.store(first_ == nullptr ? nothing : first_->wanted, std::memory_order_seq_cst);
    return false;
}

void timeline::tell(epoch at) noexcept {
    waiter* ready = nullptr;
    {
        const std::lock_guard lock(mutex_);
        waiter** end = &ready;
        while (first_ != nullptr && first_->wanted <= at) {
            waiter* const one = first_;
            remove(*one);
            one->next = nullptr;
            *end = one;
            end = &one->next;
        }
        next_wanted_.store(first_ == nullptr ? nothing : first_->wanted, std::memory_order_seq_cst);
    }
    while (ready != nullptr) {
        waiter* const one = ready;
        ready = one->next;
        one->reached();
    }
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
    if (line.completed() >= p.at) {
        return;
    }
    blocked self;
    if (line.wait(self, p.at)) {
        std::unique_lock lock(self.mutex);
        self.over.wait(lock, [&] { return self.is_over; });
    }
}

}  // namespace weir::backend
