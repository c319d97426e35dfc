#pragma once

#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "backend/cuda/device/context.hpp"
#include "backend/hot_mutex.hpp"
#include "weir/detail/rare.hpp"

namespace weir::backend::cuda {

class event_pool;

/// A driver event with a count of users. When the last user lets go, it is recorded again for something else. A thread that looks
/// one up and then waits for it counts as a user meanwhile.
struct pooled_event {
    event_handle handle = nullptr;
    event_pool* pool = nullptr;
    std::atomic<int> users{0};
    std::atomic<bool> is_recorded{true};  ///< false: a thread has taken it to record it, and has not done so yet
    pooled_event* next = nullptr;         ///< the next one in the list of unused events
};

/// One user of a pooled event.
class event_ref {
public:
    event_ref() = default;
    /// The first user.
    explicit event_ref(pooled_event& one) noexcept : one_(&one) { one.users.store(1, std::memory_order_relaxed); }
    event_ref(const event_ref& other) noexcept : one_(other.one_) {
        if (one_ != nullptr) {
            one_->users.fetch_add(1, std::memory_order_relaxed);
        }
    }
    event_ref(event_ref&& other) noexcept : one_(std::exchange(other.one_, nullptr)) {}
    event_ref& operator=(const event_ref& other) noexcept { return *this = event_ref(other); }
    event_ref& operator=(event_ref&& other) noexcept {
        let_go(std::exchange(one_, std::exchange(other.one_, nullptr)));
        return *this;
    }
    ~event_ref() { let_go(one_); }

    explicit operator bool() const noexcept { return one_ != nullptr; }
    [[nodiscard]] event_handle handle() const noexcept { return one_->handle; }
    /// Whether it covers the epoch that it is listed for: see pooled_event.
    [[nodiscard]] bool is_recorded() const noexcept { return one_->is_recorded.load(std::memory_order_acquire); }
    /// Exchanges the two events.
    void swap(event_ref& other) noexcept { std::swap(one_, other.one_); }
    /// For the thread that records it.
    [[nodiscard]] pooled_event* get() const noexcept { return one_; }

private:
    static void let_go(pooled_event* one) noexcept;

    pooled_event* one_ = nullptr;
};

/// The events of one context. Never destroyed while the process runs, as contexts are not.
class event_pool {
public:
    /// `flags` as cuEventCreate takes them.
    event_pool(const context& of, unsigned flags) : of_(&of), flags_(flags) {}
    event_pool(const event_pool&) = delete;
    event_pool& operator=(const event_pool&) = delete;
    ~event_pool();

    /// An event without other users. Throws device_error, std::bad_alloc.
    [[nodiscard]] event_ref take();

    /// How many events the pool has made.
    [[nodiscard]] std::size_t size() const;

private:
    friend class event_ref;
    void put(pooled_event& one) noexcept;

    const context* of_;
    unsigned flags_;
    mutable hot_mutex mutex_;  ///< guards what follows; a leaf in the lock order
    pooled_event* free_ = nullptr;
    std::vector<pooled_event*> all_;
};

inline void event_ref::let_go(pooled_event* one) noexcept {
    // Only a user makes further users: the only user stays the only one, and needs no atomic read-modify-write.
    if (one != nullptr && (one->users.load(std::memory_order_acquire) == 1 ||
                           one->users.fetch_sub(1, std::memory_order_acq_rel) == 1)) [[unlikely]] {
        detail::cold_path();
        one->pool->put(*one);
    }
}

}  // namespace weir::backend::cuda
