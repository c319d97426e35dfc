#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "order/mark.hpp"

namespace weir::backend {

using frontiers::epoch;
using frontiers::point;
using frontiers::timeline_id;

/// Somebody who wants to be told once when a timeline has reached an epoch. Intrusive: costs no allocation.
class waiter {
public:
    /// Called once, on the thread that completes the epoch, under no lock. May destroy the waiter.
    virtual void reached() noexcept = 0;

    // The timeline's own.
    epoch wanted = 0;
    waiter* next = nullptr;
    waiter* previous = nullptr;

protected:
    waiter() = default;
    ~waiter() = default;
};

/// How far the work of one stream is, and who waits for it. Epochs complete in order. Free of locks, since in a program
/// whose streams wait for each other every operation comes by here twice.
class alignas(64) timeline {
public:
    [[nodiscard]] epoch completed() const noexcept { return completed_.load(std::memory_order_acquire); }

    /// States that everything up to `at` is over, and tells those who wait for it. One thread at a time.
    void complete(epoch at) noexcept {
        // Pairs with `wait`: either this sees the newcomer, or the newcomer sees the new epoch (both sequentially
        // consistent).
        completed_.store(at, std::memory_order_seq_cst);
        if (newcomers_.load(std::memory_order_seq_cst) != nullptr || (first_ != nullptr && first_->wanted <= at)) {
            tell(at);
        }
    }

    /// Has `who` told when `at` is over, perhaps before this returns. false if it is over already: `who` is then not told
    /// and not kept.
    [[nodiscard]] bool wait(waiter& who, epoch at) noexcept;

private:
    void tell(epoch at) noexcept;
    void tell_newcomers() noexcept;
    void add(waiter& first, waiter& last) noexcept;
    void insert(waiter& who) noexcept;

    std::atomic<epoch> completed_{0};
    std::atomic<waiter*> newcomers_{nullptr};  ///< who has come to wait since the last completion
    // Of the thread that completes.
    waiter* first_ = nullptr;  ///< who else waits, in the order of what they wait for
    waiter* last_ = nullptr;
};

/// All timelines of the process, by their number. Entries are never freed; a number is given out again once all work on
/// its timeline is over, and its epochs go on: points of the former stream stay complete.
class timeline_table final : public order::watermarks {
public:
    /// The one of the process; never destroyed, so that threads may use it until the very end.
    static timeline_table& instance();

    /// A timeline that nobody uses. Throws std::bad_alloc.
    [[nodiscard]] timeline_id acquire();
    /// Gives it back. Everything on it must be over.
    void release(timeline_id id) noexcept;

    [[nodiscard]] timeline& at(timeline_id id) const noexcept {
        return chunks_[id / chunk_size].load(std::memory_order_acquire)[id % chunk_size];
    }
    [[nodiscard]] epoch completed(timeline_id id) const noexcept override { return at(id).completed(); }

    /// Blocks the calling thread until `p` is over.
    void host_wait(point p) const;

private:
    timeline_table() = default;

    static constexpr std::size_t chunk_size = 256;
    static constexpr std::size_t most_chunks = 16384;

    std::atomic<timeline*> chunks_[most_chunks] = {};
    std::mutex mutex_;  ///< guards what follows; a leaf in the lock order
    std::vector<std::unique_ptr<timeline[]>> storage_;
    std::vector<timeline_id> free_;
    timeline_id next_ = 0;
};

}  // namespace weir::backend
