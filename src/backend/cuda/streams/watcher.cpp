#include "backend/cuda/streams/watcher.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

#include "backend/cuda/device/context_end.hpp"

namespace weir::backend::cuda {

namespace {

/// How often it looks while nothing waits. Each look costs a submitting thread some 20 us, by the driver's locks.
constexpr auto now_and_then = std::chrono::milliseconds(10);
/// While a thread or a stream waits it looks at first without a pause, then at intervals that grow with the time of the wait: a long
/// wait then takes little processor time and ends late by less than one per cent.
constexpr int looks_without_rest = 200;
constexpr auto least_interval = std::chrono::microseconds(20);
constexpr auto greatest_interval = std::chrono::milliseconds(1);
constexpr int intervals_waited = 128;
/// A stream that had nothing to do in this number of successive looks is no longer watched. Not sooner, since to have it watched again
/// costs the next operation a lock and, if the watcher sleeps, a system call.
constexpr int idle_looks_to_leave = 2;
/// While threads look themselves, up to this number of successive occasional looks are left out.
constexpr int most_left_out = 2;

/// The pause between looks after a wait of that length.
std::chrono::nanoseconds interval_after(std::chrono::nanoseconds waited) noexcept {
    return std::clamp<std::chrono::nanoseconds>(waited / intervals_waited, least_interval, greatest_interval);
}

}  // namespace

watcher& watcher::instance() {
    static auto* const one = new watcher;  // NOLINT(cppcoreguidelines-owning-memory): never destroyed
    return *one;
}

watcher::watcher() {
    begin();
    // Registered after the driver's handler, since the driver is loaded by now: so this one runs first.
    std::atexit([] { instance().end(); });
}

/// Throws std::system_error.
void watcher::begin() {
    std::thread([this] { work(); }).detach();
}

/// For a waiting thread. If the watcher's thread has ended, the process is about to end and runs a static destructor. Under the lock.
void watcher::begin_again() noexcept {
    if (!is_gone_) {
        return;
    }
    // Runs right after that destructor, before the destructors that are still to come, and before the driver ends.
    if (std::atexit([] { instance().end(); }) != 0) {
        return;  // no destructor is still to come
    }
    try {
        begin();
        is_over_ = has_ended_ = is_gone_ = false;
    } catch (...) {
        // No thread can be started: the next waiting thread tries again.
    }
}

void watcher::end() noexcept {
    if (fork_gate::generation() != generation_) {
        return;  // in the child of a fork: the thread is the parent's
    }
    std::unique_lock lock(mutex_);
    is_over_ = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return has_ended_; });
    is_gone_ = true;
}

void watcher::add(driver_stream& one) noexcept {
    if (one.watched.exchange(true, std::memory_order_acq_rel)) {
        return;
    }
    try {
        const std::lock_guard lock(mutex_);
        fresh_.emplace_back(&one);
        // A thread that looks now and then anyway finds the stream soon enough, and waking a thread costs the caller a system call.
        if (std::exchange(has_nothing_to_do_, false)) {
            changed_.notify_one();
        }
    } catch (...) {
        one.watched.store(false, std::memory_order_release);  // no memory: the next operation tries again
    }
}

void watcher::add(context_end& one) noexcept {
    try {
        const std::lock_guard lock(mutex_);
        if (std::find(fresh_ends_.begin(), fresh_ends_.end(), &one) == fresh_ends_.end()) {
            fresh_ends_.push_back(&one);
        }
        changed_.notify_one();
    } catch (...) {
        // No memory: a thread that needs the context's memory looks itself.
    }
}

void watcher::hurry(driver_stream& one, epoch at) noexcept {
    if (at < one.submitted()) {
        // A stream of another backend waits, or the host on its slow path, and not for the last operation.
        one.give_events();
    }
    one.ask(at);
    epoch known = one.wanted.load(std::memory_order_relaxed);
    while (known < at && !one.wanted.compare_exchange_weak(known, at, std::memory_order_acq_rel)) {
    }
    add(one);
    const std::lock_guard lock(mutex_);
    in_a_hurry_ = true;
    begin_again();
    changed_.notify_one();
}

void watcher::hurry(context_end& one) noexcept {
    add(one);
    const std::lock_guard lock(mutex_);
    begin_again();
}

/// Whether a thread or a stream waits for an operation in a driver stream.
bool watcher::look_at_all() noexcept {
    bool hurried = false;
    for (std::size_t i = 0; i < driver_streams_.size();) {
        driver_stream& one = *driver_streams_[i];
        const epoch asked_for = one.wanted.load(std::memory_order_acquire);
        if (asked_for > one.line().completed()) {
            one.look();  // another thread or stream may wait for an earlier epoch
        } else {
            one.glance();
        }
        const bool wanted = one.wanted.load(std::memory_order_acquire) > one.line().completed();
        one.idle_looks = one.has_pending() || wanted ? 0 : one.idle_looks + 1;
        if (one.idle_looks >= idle_looks_to_leave) {
            // A thread that submits from here on finds the stream unwatched; work submitted just before is seen here.
            one.watched.store(false, std::memory_order_seq_cst);
            if (!one.has_pending() || one.watched.exchange(true, std::memory_order_seq_cst)) {
                one.idle_looks = 0;
                driver_streams_[i] = std::move(driver_streams_.back());
                driver_streams_.pop_back();
                continue;
            }
        }
        hurried = hurried || (wanted && one.has_pending());
        ++i;
    }
    std::erase_if(ends_, [](context_end* one) { return !one->look(); });
    return hurried;
}

void watcher::take_fresh() noexcept {
    try {
        driver_streams_.reserve(driver_streams_.size() + fresh_.size());
    } catch (...) {
        return;  // no memory: tries again in the next round
    }
    for (auto& one : fresh_) {
        driver_streams_.push_back(std::move(one));
    }
    fresh_.clear();
    try {
        for (context_end* one : fresh_ends_) {
            if (std::find(ends_.begin(), ends_.end(), one) == ends_.end()) {
                ends_.push_back(one);
            }
        }
        fresh_ends_.clear();
    } catch (...) {
        return;  // no memory: tries again in the next round
    }
}

void watcher::work() noexcept {
    int looks = 0;
    auto since = std::chrono::steady_clock::now();  // when it began to look without a pause, or at growing intervals
    int left_out = 0;
    bool hurried = false;
    for (;;) {
        {
            std::unique_lock lock(mutex_);
            const auto called_at_once = [&] { return is_over_ || in_a_hurry_; };
            if (hurried && looks > looks_without_rest) {
                changed_.sleep_for(lock, interval_after(std::chrono::steady_clock::now() - since), called_at_once);
            } else if (!hurried) {
                const auto called = [&] { return called_at_once() || !fresh_.empty() || !fresh_ends_.empty(); };
                if (driver_streams_.empty() && ends_.empty()) {
                    has_nothing_to_do_ = !called();
                    changed_.sleep(lock, called);
                    has_nothing_to_do_ = false;
                }
                // Also before the first look at new work: usually it is not complete, and looking at once after each operation would take
                // the driver's locks from the submitting threads.
                changed_.sleep_for(lock, now_and_then, called_at_once);
            }
            if (is_over_) {
                has_ended_ = true;
                changed_.notify_all();
                return;
            }
            const bool is_for_nobody = (!driver_streams_.empty() || !fresh_.empty()) && !hurried && !in_a_hurry_ &&
                                       lookers_.load(std::memory_order_relaxed) > 0;
            if (is_for_nobody && ++left_out <= most_left_out) {
                continue;
            }
            left_out = 0;
            looks = hurried ? looks : 0;
            if (!hurried || in_a_hurry_) {
                since = std::chrono::steady_clock::now();  // another wait has begun
            }
            in_a_hurry_ = false;
            take_fresh();
        }
        hurried = look_at_all();
        if (hurried && ++looks <= looks_without_rest) {
            std::this_thread::yield();
        }
    }
}

}  // namespace weir::backend::cuda
