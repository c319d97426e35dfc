#include "runtime/lifetime/reaper.hpp"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "backend/fork_part.hpp"
#include "runtime/diagnostics/debug_log.hpp"
#include "runtime/host/fork.hpp"
#include "weir/detail/fork_section.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/error.hpp"

namespace weir::runtime {

namespace {

// None of these has a destructor that runs at exit: the reaper's thread may be at work until the very end.
std::atomic<retired*> newest{nullptr};  ///< the list, last pushed first
std::atomic<int> asleep{0};             ///< 1 while the thread sleeps; the thread that changes it to 0 wakes it
/// Whether a thread handles objects of the list. Set before it takes them, so that a thread which finds the list empty, and then this
/// false, knows that they are handled.
std::atomic<bool> serving{false};
std::atomic<int> held_count{0};
std::atomic<bool> ended{false};
std::atomic<bool> started{false};
std::atomic<bool> was_started{false};  ///< in this process or one that it was forked from
detail::mutex starting;                // serializes start_thread
thread_local bool is_serving = false;  ///< whether the calling thread is within `serve_list`
/// Objects served after `end`; reachable from here, so that a leak checker does not report them. Of the thread that set `serving`.
retired* left_over = nullptr;

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
    // Exit handlers run in reverse order: this one runs before the destructors of the statics that the program has made up to now,
    // so they find that no release runs any more.
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
    // Sequentially consistent, as are the accesses in run(): either the reaper's thread sees the new object before it sleeps, or
    // this thread sees that the reaper sleeps.
    one.next_ = newest.load(std::memory_order_relaxed);
    while (!newest.compare_exchange_weak(one.next_, &one, std::memory_order_seq_cst, std::memory_order_relaxed)) {
    }
    if (asleep.load(std::memory_order_seq_cst) == 1 && asleep.exchange(0, std::memory_order_seq_cst) == 1) {
        asleep.notify_one();
    }
}

/// Handles all objects of the list, the first pushed first. The caller has set `serving`. False if there were none.
bool reaper::serve_list() noexcept {
    retired* list = newest.exchange(nullptr, std::memory_order_seq_cst);
    if (list == nullptr) {
        return false;
    }
    retired* in_order = nullptr;
    while (list != nullptr) {
        retired* const one = list;
        list = one->next_;
        one->next_ = in_order;
        in_order = one;
    }
    is_serving = true;
    while (in_order != nullptr) {
        retired& one = *in_order;
        in_order = one.next_;
        serve(one);
    }
    is_serving = false;
    return true;
}

void reaper::run() noexcept {
    auto awake = std::make_optional<detail::fork_section>();  // at all times except while it sleeps
    for (;;) {
        while (serving.exchange(true, std::memory_order_seq_cst)) {
            serving.wait(true, std::memory_order_relaxed);
        }
        const bool had_any = serve_list();
        serving.store(false, std::memory_order_seq_cst);
        if (!had_any) {
            asleep.store(1, std::memory_order_seq_cst);
            if (newest.load(std::memory_order_seq_cst) == nullptr) {
                awake.reset();
                asleep.wait(1, std::memory_order_seq_cst);
                awake.emplace();
            }
            asleep.store(0, std::memory_order_seq_cst);
        }
    }
}

void reaper::release_due() noexcept {
    if (newest.load(std::memory_order_relaxed) == nullptr || is_serving || !started.load(std::memory_order_acquire)) {
        return;
    }
    const detail::fork_section whole;
    if (serving.exchange(true, std::memory_order_seq_cst)) {
        return;
    }
    serve_list();
    serving.store(false, std::memory_order_seq_cst);
    serving.notify_one();
}

namespace {

/// Pushed last, it is handled last.
class marker final : public retired {
public:
    explicit marker(std::shared_ptr<std::atomic<bool>> reached) : reached_(std::move(reached)) {}

private:
    [[nodiscard]] std::optional<frontiers::point> pending() noexcept override { return std::nullopt; }
    void release() noexcept override {
        reached_->store(true, std::memory_order_release);
        delete this;  // NOLINT(cppcoreguidelines-owning-memory): it owns itself
    }

    std::shared_ptr<std::atomic<bool>> reached_;
};

}  // namespace

void reaper::drain() noexcept {
    const bool is_idle = newest.load(std::memory_order_seq_cst) == nullptr && !serving.load(std::memory_order_seq_cst);
    if (is_idle || !started.load(std::memory_order_acquire) || is_serving) {
        return;
    }
    try {
        const auto reached = std::make_shared<std::atomic<bool>>(false);
        push(*std::make_unique<marker>(reached).release());
        // The end of the process, or a fork, may leave the marker unreached.
        while (!reached->load(std::memory_order_acquire) && leaked() == 0) {
            std::this_thread::sleep_for(std::chrono::microseconds(20));
        }
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): then it comes later
    }
}

void reaper::begin_child() noexcept {
    started.store(false, std::memory_order_relaxed);
    asleep.store(0, std::memory_order_relaxed);
    serving.store(false, std::memory_order_relaxed);
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

/// Whether `one` waits for a point now. If so, it may already be destroyed when this returns.
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
