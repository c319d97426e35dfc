#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "frontier/point.hpp"
#include "order/mark.hpp"
#include "weir/detail/interruption.hpp"
#include "weir/detail/mutex.hpp"

namespace weir::backend {

using frontiers::epoch;
using frontiers::point;
using frontiers::timeline_id;

class driver;

/// An object that is notified once when a timeline reaches an epoch. Intrusive: costs no allocation.
class waiter {
public:
    /// Called once, on the thread that completes the epoch, under no lock. May destroy the waiter.
    virtual void reached() noexcept = 0;

    // Used by the timeline.
    epoch wanted = 0;
    waiter* next = nullptr;
    waiter* previous = nullptr;

protected:
    waiter() = default;
    ~waiter() = default;
};

/// Progress of the work of one stream, and the waiters for it. Epochs complete in order. Lock-free, since in a program
/// whose streams wait for each other every operation passes through here twice.
class alignas(64) timeline {
public:
    /// The device whose queue completes its epochs; null if none does (a gate, which host code opens).
    [[nodiscard]] const driver* of() const noexcept { return of_.load(std::memory_order_relaxed); }
    void belong_to(const driver* of) noexcept { of_.store(of, std::memory_order_relaxed); }
    [[nodiscard]] timeline_id number() const noexcept { return number_; }
    [[nodiscard]] epoch completed() const noexcept { return completed_.load(std::memory_order_acquire); }

    /// States that everything up to `at` is complete, and notifies its waiters. One thread at a time.
    void complete(epoch at) noexcept {
        // Pairs with `wait`: either this sees the newcomer, or the newcomer sees the new epoch (both sequentially
        // consistent).
        completed_.store(at, std::memory_order_seq_cst);
        if (newcomers_.load(std::memory_order_seq_cst) != nullptr || (first_ != nullptr && first_->wanted <= at)) {
            notify(at);
        }
    }

    /// Has `one` notified when `at` is complete, perhaps before this returns. Returns false if `at` is complete already: `one` is then
    /// neither notified nor kept.
    [[nodiscard]] bool wait(waiter& one, epoch at) noexcept;

    [[nodiscard]] const driver* driver_to_poll() const noexcept;

private:
    void notify(epoch at) noexcept;
    void notify_newcomers() noexcept;
    void add(waiter& first, waiter& last) noexcept;
    void insert(waiter& one) noexcept;

    friend class timeline_table;

    std::atomic<epoch> completed_{0};
    /// Needs no ordering: a thread that knows an epoch of the timeline also sees this value.
    std::atomic<const driver*> of_{nullptr};
    timeline_id number_ = 0;
    std::atomic<waiter*> newcomers_{nullptr};  ///< waiters that were added since the last completion
    // Owned by the completing thread.
    waiter* first_ = nullptr;  ///< all other waiters, ordered by their epochs
    waiter* last_ = nullptr;
};

/// A host wait that takes long. Made, and called repeatedly, by the waiting thread, under no lock.
class long_wait {
public:
    long_wait() = default;
    long_wait(const long_wait&) = delete;
    long_wait& operator=(const long_wait&) = delete;
    virtual ~long_wait() = default;
    /// Called each time the interval has passed once more.
    virtual void still_waiting() noexcept = 0;
};

/// Receiver of reports about waits that take long.
struct wait_watch {
    std::chrono::nanoseconds every{0};  ///< length of a wait before `make` is called, and interval between later calls
    /// May return null if no memory is left: then it is called again.
    std::unique_ptr<long_wait> (*make)(point target) noexcept = nullptr;
};

/// All timelines of the process, by their number. Entries are never freed. A number is assigned again once all work on
/// its timeline is complete. Its epochs continue: points of the former stream stay complete.
class timeline_table final : public order::watermarks {
public:
    /// The instance of the process; never destroyed, so that threads may use it until the process ends.
    [[nodiscard]] static timeline_table& instance() noexcept;

    /// The first unused timeline, for a queue of the device `of`; null if it is not for a queue. Throws std::bad_alloc.
    [[nodiscard]] timeline_id acquire(const driver* of = nullptr);
    /// Gives a timeline back. Everything on it must be complete.
    void release(timeline_id id) noexcept;

    [[nodiscard]] timeline& at(timeline_id id) const noexcept {
        return chunks_[id / chunk_size].load(std::memory_order_acquire)[id % chunk_size];
    }
    [[nodiscard, gnu::always_inline]] epoch completed(timeline_id id) const noexcept override {
        return at(id).completed();
    }
    [[nodiscard]] bool has_own_end(point p) const noexcept override;

    /// Blocks the calling thread until `p` is complete. All host waits pass through here, so that devices under a virtual
    /// clock go on meanwhile (host_driven.hpp). Throws what the thread's detail::interruptible throws; nothing without one.
    void host_wait(point p) const;
    /// The same while work is being enqueued, which must not be left half done: false if the thread's interruptible ended
    /// the wait. It then throws at the end of the call.
    [[nodiscard]] bool host_wait_or_end(point p) const noexcept;
    /// Whether `p` is complete. If not, devices under a virtual clock take a step before the answer, so that a thread that polls sees
    /// it complete eventually. Call with no lock held.
    [[nodiscard]] bool host_ask(point p) const;

    /// Waits that begin from now on are watched; not if `every` is 0.
    void watch(const wait_watch& by) noexcept;
    [[nodiscard]] wait_watch watch() const noexcept;

private:
    constexpr timeline_table() noexcept = default;
    friend struct one_timeline_table;

    static constexpr std::size_t chunk_size = 256;
    static constexpr std::size_t most_chunks = 16384;

    std::atomic<timeline*> chunks_[most_chunks] = {};
    detail::mutex mutex_;  ///< guards what follows; a leaf in the lock order
    std::vector<std::unique_ptr<timeline[]>> storage_;
    std::vector<timeline_id> free_;  ///< a heap, the smallest first: frontiers are fastest with small numbers
    timeline_id next_ = 0;

    std::atomic<std::chrono::nanoseconds> watch_every_{std::chrono::nanoseconds(0)};
    std::atomic<decltype(wait_watch::make)> watch_make_{nullptr};
};

/// Never destroyed, in static memory, so that access cannot fail.
struct one_timeline_table {
    union {
        timeline_table table;
    };
    constexpr one_timeline_table() noexcept : table() {}
    ~one_timeline_table() {}  // NOLINT(modernize-use-equals-default): leaves the table as it is
    one_timeline_table(const one_timeline_table&) = delete;
    one_timeline_table& operator=(const one_timeline_table&) = delete;

    static one_timeline_table of_process;
};
inline timeline_table& timeline_table::instance() noexcept { return one_timeline_table::of_process.table; }

/// Time between two calls of a detail::interruptible.
inline constexpr std::chrono::nanoseconds between_questions = std::chrono::milliseconds(50);

/// Sleeps, under `held`, until `over()`, woken through `changed`; reports to the watch of long waits meanwhile.
class watched_sleep {
public:
    explicit watched_sleep(point target) noexcept : target_(target), watch_(timeline_table::instance().watch()) {}

    template <class Over>
    void until(std::unique_lock<detail::mutex>& held, detail::condition_variable& changed, Over&& over) {
        until(held, changed, over, nullptr);
    }

    /// The same; `answers` is called under no lock at intervals; an exception from it ends the sleep.
    template <class Over>
    void until(std::unique_lock<detail::mutex>& held, detail::condition_variable& changed, Over&& over,
               detail::interruptible* answers) {
        if (watch_.every.count() == 0 && answers == nullptr) {
            changed.wait(held, over);
            return;
        }
        std::chrono::nanoseconds slept{0};
        std::chrono::nanoseconds nap = nap_length(answers);
        while (!changed.wait_for(held, nap, over)) {
            held.unlock();
            if (answers != nullptr) {
                answers->ask();
            }
            slept += nap;
            if (watch_.every.count() != 0 && slept >= watch_.every) {
                slept = std::chrono::nanoseconds(0);
                look();
            }
            nap = nap_length(answers);
            held.lock();
        }
    }

private:
    [[nodiscard]] std::chrono::nanoseconds nap_length(const detail::interruptible* answers) const noexcept {
        if (answers == nullptr) {
            return watch_.every;
        }
        const std::chrono::nanoseconds longest = answers->longest_sleep();
        return watch_.every.count() == 0 ? longest : std::min(longest, watch_.every);
    }

    void look() noexcept {
        if (long_) {
            long_->still_waiting();
        } else {
            long_ = watch_.make(target_);
        }
    }

    point target_;
    wait_watch watch_;
    std::unique_ptr<long_wait> long_;
};

}  // namespace weir::backend
