#include "backend/record_ring.hpp"

#include <algorithm>
#include <new>

namespace weir::backend {

record_ring::segment* record_ring::make(std::size_t capacity) {
    void* const memory = ::operator new(sizeof(segment) + capacity);
    auto* const made = ::new (memory) segment;
    made->capacity = static_cast<std::uint32_t>(capacity);
    return made;
}

void record_ring::destroy(segment* one) noexcept {
    one->~segment();
    ::operator delete(one);
}

record_ring::~record_ring() {
    segment* one = head_ != nullptr ? head_ : first_.load(std::memory_order_acquire);
    while (one != nullptr) {
        segment* const next = one->next.load(std::memory_order_acquire);
        destroy(one);
        one = next;
    }
    if (segment* const spare = spare_.load(std::memory_order_acquire); spare != nullptr) {
        destroy(spare);
    }
}

void record_ring::add_segment(std::size_t bytes) {
    segment* fresh = spare_.exchange(nullptr, std::memory_order_acquire);
    if (fresh != nullptr && fresh->capacity < bytes) {
        destroy(fresh);
        fresh = nullptr;
    }
    if (fresh != nullptr) {
        fresh->committed.store(0, std::memory_order_relaxed);
        fresh->next.store(nullptr, std::memory_order_relaxed);
    } else {
        // Larger segments only where the consumer lags behind: otherwise a small one that is used again and again stays in the caches.
        fresh = make(std::max(rounded(bytes), next_capacity_));
        next_capacity_ = std::min(next_capacity_ * 2, largest_capacity);
    }
    if (tail_ == nullptr) {
        first_.store(fresh, std::memory_order_release);
    } else {
        // Nothing more is committed to the old segment: once it is read to its end, the consumer goes on here.
        tail_->committed.store(written_, std::memory_order_release);
        tail_->next.store(fresh, std::memory_order_release);
    }
    tail_ = fresh;
    written_ = 0;
}

void* record_ring::look() noexcept {
    if (head_ == nullptr) {
        head_ = first_.load(std::memory_order_acquire);
        if (head_ == nullptr) {
            return nullptr;
        }
    }
    for (;;) {
        seen_ = head_->committed.load(std::memory_order_acquire);
        if (read_ < seen_) {
            return data(head_) + read_;
        }
        segment* const next = head_->next.load(std::memory_order_acquire);
        if (next == nullptr) {
            return nullptr;
        }
        seen_ = head_->committed.load(std::memory_order_acquire);
        if (read_ < seen_) {
            continue;  // committed between the two looks
        }
        segment* const used = head_;
        head_ = next;
        read_ = 0;
        seen_ = 0;
        if (segment* const old = spare_.exchange(used, std::memory_order_release); old != nullptr) {
            destroy(old);
        }
    }
}

}  // namespace weir::backend
