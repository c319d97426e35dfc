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
    /// The device whose queue completes its epochs; null if none does (a gate, which code of the host opens).
    [[nodiscard]] const driver* of() const noexcept { return of_.load(std::memory_order_relaxed); }
    void belong_to(const driver* of) noexcept { of_.store(of, std::memory_order_relaxed); }
    [[nodiscard]] timeline_id number() const noexcept { return number_; }
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

    [[nodiscard]] const driver* whom_to_ask() const noexcept;

private:
    void tell(epoch at) noexcept;
    void tell_newcomers() noexcept;
    void add(waiter& first, waiter& last) noexcept;
    void insert(waiter& who) noexcept;

    friend class timeline_table;

    std::atomic<epoch> completed_{0};
    std::atomic<const driver*> of_{nullptr};  ///< alone: whoever knows an epoch of the timeline knows this as well
    timeline_id number_ = 0;
    std::atomic<waiter*> newcomers_{nullptr};  ///< who has come to wait since the last completion
    // Of the thread that completes.
    waiter* first_ = nullptr;  ///< who else waits, in the order of what they wait for
    waiter* last_ = nullptr;
};

/// A wait of the host's that takes long. Made, and asked again and again, by the thread that waits, under no lock.
class long_wait {
public:
    long_wait() = default;
    long_wait(const long_wait&) = delete;
    long_wait& operator=(const long_wait&) = delete;
    virtual ~long_wait() = default;
    /// As much time has passed again.
    virtual void still_waiting() noexcept = 0;
};

/// Who is to be told of waits that take long.
struct wait_watch {
    std::chrono::nanoseconds every{0};  ///< how long a wait lasts before `make`, and from each call to the next
    /// May give null where no memory is left: then it is asked again.
    std::unique_ptr<long_wait> (*make)(point target) noexcept = nullptr;
};

/// All timelines of the process, by their number. Entries are never freed; a number is given out again once all work on
/// its timeline is over, and its epochs go on: points of the former stream stay complete.
class timeline_table final : public order::watermarks {
public:
    /// The one of the process; never destroyed, so that threads may use it until the very end.
    [[nodiscard]] static timeline_table& instance() noexcept;

    /// The first timeline that nobody uses, for a queue of the device `of`; null for what is no queue. Throws std::bad_alloc.
    [[nodiscard]] timeline_id acquire(const driver* of = nullptr);
    /// Gives it back. Everything on it must be over.
    void release(timeline_id id) noexcept;

    [[nodiscard]] timeline& at(timeline_id id) const noexcept {
        return chunks_[id / chunk_size].load(std::memory_order_acquire)[id % chunk_size];
    }
    [[nodiscard, gnu::always_inline]] epoch completed(timeline_id id) const noexcept override {
        return at(id).completed();
    }
    [[nodiscard]] bool has_own_end(point p) const noexcept override;

    /// Blocks the calling thread until `p` is over. All waiting of the host's comes by here, so that devices under a virtual
    /// clock go on meanwhile (host_driven.hpp). Throws what the thread's detail::interruptible throws, nothing without one.
    void host_wait(point p) const;
    /// The same within the enqueueing of work, which must not be left half done: false if the thread's interruptible ended
    /// the wait, which then throws at the end of the call.
    [[nodiscard]] bool host_wait_or_end(point p) const noexcept;
    /// Whether `p` is over. Where it is not, devices under a virtual clock take a step before the answer: who asks again
    /// and again hears that it is some time. Call with no lock held.
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
    std::vector<timeline_id> free_;  ///< a heap, the least first: frontiers are fastest with the first ones
    timeline_id next_ = 0;

    std::atomic<std::chrono::nanoseconds> watch_every_{std::chrono::nanoseconds(0)};
    std::atomic<decltype(wait_watch::make)> watch_make_{nullptr};
};

/// Lives for ever, in memory that cannot run out: those who ask must not fail.
struct one_timeline_table {
    union {
        timeline_table table;
    };
    constexpr one_timeline_table() noexcept : table() {}
    ~one_timeline_table() {}  // NOLINT(modernize-use-equals-default): leaves it as it is
    one_timeline_table(const one_timeline_table&) = delete;
    one_timeline_table& operator=(const one_timeline_table&) = delete;

    static one_timeline_table of_process;
};
inline timeline_table& timeline_table::instance() noexcept { return one_timeline_table::of_process.table; }

/// How much time passes between two questions of a detail::interruptible.
inline constexpr std::chrono::nanoseconds between_questions = std::chrono::milliseconds(50);

/// Sleeps, under `held`, until `over()`, woken through `changed`; has those told who watch waits.
class watched_sleep {
public:
    explicit watched_sleep(point target) noexcept : target_(target), watch_(timeline_table::instance().watch()) {}

    template <class Over>
    void until(std::unique_lock<detail::mutex>& held, detail::condition_variable& changed, Over&& over) {
        until(held, changed, over, nullptr);
    }

    /// The same, with `answers` asked under no lock now and then; what it throws ends the sleep.
    template <class Over>
    void until(std::unique_lock<detail::mutex>& held, detail::condition_variable& changed, Over&& over,
               detail::interruptible* answers) {
        if (watch_.every.count() == 0 && answers == nullptr) {
            changed.wait(held, over);
            return;
        }
        std::chrono::nanoseconds slept{0};
        const std::chrono::nanoseconds nap = nap_length(answers != nullptr);
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
            held.lock();
        }
    }

private:
    [[nodiscard]] std::chrono::nanoseconds nap_length(bool checked) const noexcept {
        if (!checked) {
            return watch_.every;
        }
        return watch_.every.count() == 0 ? between_questions : std::min(between_questions, watch_.every);
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
