#pragma once

#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "backend/cuda/context.hpp"
#include "backend/hot_mutex.hpp"
#include "weir/detail/rare.hpp"

namespace weir::backend::cuda {

class event_pool;

/// An event of the driver's that several may use, until the last lets go: then it is recorded again for something else.
/// Whoever looks one up and then waits for it holds it meanwhile.
struct pooled_event {
    event_handle handle = nullptr;
    event_pool* pool = nullptr;
    std::atomic<int> users{0};
    std::atomic<bool> is_recorded{true};  ///< false: a thread has it in hand, and records it presently
    pooled_event* next = nullptr;         ///< among those that nobody uses
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
    /// Whether it stands for what it is listed for: see pooled_event.
    [[nodiscard]] bool is_recorded() const noexcept { return one_->is_recorded.load(std::memory_order_acquire); }
    /// Exchanges what the two stand for.
    void swap(event_ref& other) noexcept { std::swap(one_, other.one_); }
    /// For who records it.
    [[nodiscard]] pooled_event* get() const noexcept { return one_; }

private:
    static void let_go(pooled_event* one) noexcept;

    pooled_event* one_ = nullptr;
};

/// The events of one context. Lives as long as the process, as contexts do.
class event_pool {
public:
    /// `flags` as cuEventCreate takes them.
    event_pool(const context& of, unsigned flags) : of_(&of), flags_(flags) {}
    event_pool(const event_pool&) = delete;
    event_pool& operator=(const event_pool&) = delete;
    ~event_pool();

    /// An event that nobody uses. Throws device_error, std::bad_alloc.
    [[nodiscard]] event_ref take();

    /// How many there are.
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
    // Only users make users: who is the only one stays so, and needs no atomic change.
    if (one != nullptr && (one->users.load(std::memory_order_acquire) == 1 ||
                           one->users.fetch_sub(1, std::memory_order_acq_rel) == 1)) [[unlikely]] {
        detail::rare();
        one->pool->put(*one);
    }
}

}  // namespace weir::backend::cuda
