#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "random_programs/program.hpp"

namespace random_programs {

/// What the threads and operations of one run record: what went wrong, which operations ran, which objects are still kept,
/// which failures were reported to the host.
class ledger {
public:
    /// The first error counts.
    void wrong(std::string what) {
        const std::lock_guard lock(mutex_);
        if (wrong_.empty()) {
            wrong_ = std::move(what);
        }
    }
    [[nodiscard]] std::string wrong() {
        const std::lock_guard lock(mutex_);
        return wrong_;
    }

    // Relaxed on purpose: noting must not order what Weir should order, or the thread sanitizer would see nothing.
    void ran(int number) noexcept { ran_[static_cast<std::size_t>(number)].store(true, std::memory_order_relaxed); }
    [[nodiscard]] bool has_run(int number) const noexcept {
        return ran_[static_cast<std::size_t>(number)].load(std::memory_order_relaxed);
    }

    /// These operations must not run. Called before any is enqueued.
    void expect_idle(int number) { idle_.insert(number); }
    [[nodiscard]] bool is_idle(int number) const { return idle_.contains(number); }

    /// The failure of this step was reported to the host.
    void told(int failing) {
        const std::lock_guard lock(mutex_);
        told_.insert(failing);
    }
    [[nodiscard]] bool was_told(int failing) {
        const std::lock_guard lock(mutex_);
        return told_.contains(failing);
    }

    void kept() {
        const std::lock_guard lock(mutex_);
        ++kept_;
    }
    void released(int until) {
        if (!has_run(until) && !is_idle(until)) {
            wrong("an object was released before operation #" + std::to_string(until) + " had run");
        }
        const std::lock_guard lock(mutex_);
        --kept_;
        // Under the lock: the waiting thread may end, and the ledger with it, as soon as it is free.
        released_.notify_all();
    }
    /// Waits until everything is released that was kept.
    void expect_all_released() {
        std::unique_lock lock(mutex_);
        if (!released_.wait_for(lock, std::chrono::seconds(20), [&] { return kept_ == 0; }) && wrong_.empty()) {
            wrong_ = std::to_string(kept_) + " kept objects were never released";
        }
    }

private:
    std::mutex mutex_;
    std::condition_variable released_;
    std::string wrong_;
    int kept_ = 0;
    std::set<int> told_;
    std::set<int> idle_;
    std::array<std::atomic<bool>, most_steps> ran_{};
};

/// An object that an operation needs.
class token {
public:
    token(ledger& notes, int until) : notes_(&notes), until_(until) { notes.kept(); }
    token(token&& other) noexcept : notes_(std::exchange(other.notes_, nullptr)), until_(other.until_) {}
    token& operator=(token&&) = delete;
    ~token() {
        if (notes_ != nullptr) {
            notes_->released(until_);
        }
    }

private:
    ledger* notes_;
    int until_;
};

}  // namespace random_programs
