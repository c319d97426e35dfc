#include "runtime/reaper.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "backend/fork_part.hpp"
#include "runtime/debug_log.hpp"
#include "runtime/fork.hpp"
#include "weir/detail/fork_section.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/error.hpp"

namespace weir::runtime {

namespace {

// All of it has no destructor to run: the reaper's thread may be at work until the very end.
std::atomic<retired*> newest{nullptr};  ///< the list, last pushed first
std::atomic<int> asleep{0};             ///< 1 while the thread sleeps; whoever makes it 0 wakes it
std::atomic<int> held_count{0};
std::atomic<bool> ended{false};
std::atomic<bool> started{false};
std::atomic<bool> was_started{false};  ///< in this process or one that it was forked from
detail::mutex starting;                // guards the start alone
retired* left_over = nullptr;  ///< what came too late; kept in sight, so that a leak checker takes it for what it is

}  // namespace

void retired::reached() noexcept { reaper::queue(*this); }

void reaper::start() {
    fork_guard::expect_usable();
    start_thread();
}

void reaper::start_thread() {
    if (started.load(std::memory_order_acquire)) {
        return;
    }
    const std::lock_guard lock(starting);
    if (started.load(std::memory_order_relaxed)) {
        return;
    }
    // Runs before the destructors of what the program has made static up to now: they find releases at rest.
    static const bool ends = std::atexit([] { end(); }) == 0;
    if (!ends) {
        throw out_of_memory("no handler for the exit of the process could be registered");
    }
    try {
        std::thread(run).detach();
    } catch (const std::system_error& refused) {
        throw out_of_memory(std::string("no thread could be started for releasing memory: ") + refused.what());
    }
    was_started.store(true, std::memory_order_relaxed);
    started.store(true, std::memory_order_release);
}

void reaper::push(retired& one) noexcept {
    const detail::fork_section whole;
    held_count.fetch_add(1, std::memory_order_relaxed);
    queue(one);
}

void reaper::push_when_over(retired& one) noexcept {
    const detail::fork_section whole;
    held_count.fetch_add(1, std::memory_order_relaxed);
    if (!waits(one)) {
        queue(one);
    }
}

void reaper::queue(retired& one) noexcept {
    if (fork_guard::is_refused()) {
        return;
    }
    // Sequentially consistent, as are the looks in run(): either the thread sees the newcomer before it sleeps, or this
    // sees that it sleeps.
    one.next_ = newest.load(std::memory_order_relaxed);
    while (!newest.compare_exchange_weak(one.next_, &one, std::memory_order_seq_cst, std::memory_order_relaxed)) {
    }
    if (asleep.load(std::memory_order_seq_cst) == 1 && asleep.exchange(0, std::memory_order_seq_cst) == 1) {
        asleep.notify_one();
    }
}

void reaper::run() noexcept {
    auto awake = std::make_optional<detail::fork_section>();  // but while it sleeps
    for (;;) {
        retired* list = newest.exchange(nullptr, std::memory_order_acquire);
        if (list == nullptr) {
            asleep.store(1, std::memory_order_seq_cst);
            if (newest.load(std::memory_order_seq_cst) == nullptr) {
                awake.reset();
                asleep.wait(1, std::memory_order_seq_cst);
                awake.emplace();
            }
            asleep.store(0, std::memory_order_seq_cst);
            continue;
        }
        retired* in_order = nullptr;
        while (list != nullptr) {
            retired* const one = list;
            list = one->next_;
            one->next_ = in_order;
            in_order = one;
        }
        while (in_order != nullptr) {
            retired& one = *in_order;
            in_order = one.next_;
            serve(one);
        }
    }
}

void reaper::begin_child() noexcept {
    started.store(false, std::memory_order_relaxed);
    asleep.store(0, std::memory_order_relaxed);
}

void reaper::resume() {
    if (was_started.load(std::memory_order_relaxed)) {
        start_thread();
    }
}

namespace {

class reaper_part final : public backend::fork_part {
    void begin_child() noexcept override { reaper::begin_child(); }
    void resume() override { reaper::resume(); }
};
reaper_part reaper_at_fork;

}  // namespace

void reaper::serve(retired& one) noexcept {
    if (ended.load(std::memory_order_acquire)) {
        one.next_ = std::exchange(left_over, &one);
        return;
    }
    if (waits(one)) {
        return;
    }
    one.release();
    if (held_count.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        held_count.notify_all();
    }
}

/// Whether `one` waits for something now. If so, it may be gone.
bool reaper::waits(retired& one) noexcept {
    while (const std::optional<frontiers::point> point = one.pending()) {
        if (backend::timeline_table::instance().at(point->timeline).wait(one, point->at)) {
            return true;
        }
    }
    return false;
}

void reaper::end() noexcept {
    ended.store(true, std::memory_order_release);
    if (const std::size_t left = leaked(); left != 0) {
        char line[128];
        std::snprintf(line, sizeof(line), "%zu objects in use at the exit of the process were not released", left);
        debug_log(line);
    }
}

std::size_t reaper::held() noexcept { return static_cast<std::size_t>(held_count.load(std::memory_order_acquire)); }

std::size_t reaper::leaked() noexcept {
    return ended.load(std::memory_order_acquire) || fork_guard::is_refused() ? held() : 0;
}

void reaper::wait_until_empty() noexcept {
    for (int held = held_count.load(std::memory_order_acquire); held != 0;
         held = held_count.load(std::memory_order_acquire)) {
        held_count.wait(held, std::memory_order_acquire);
    }
}

}  // namespace weir::runtime
