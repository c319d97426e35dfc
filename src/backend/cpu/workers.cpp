#include "backend/cpu/workers.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <system_error>

namespace weir::backend::cpu {

namespace {

/// What the calling worker has kept back; null on other threads.
thread_local run_list* kept_back = nullptr;

/// How long one idle worker looks for work before it sleeps. About what two sleeps and wakes cost.
constexpr std::chrono::microseconds patience{20};

/// How long a thread for host tasks stays without any.
constexpr std::chrono::seconds blocking_patience{2};

std::size_t wanted_threads() {
    if (const char* const text = std::getenv("WEIR_CPU_THREADS"); text != nullptr) {
        const long wanted = std::strtol(text, nullptr, 10);
        if (wanted >= 1 && wanted <= 1024) {
            return static_cast<std::size_t>(wanted);
        }
    }
    return std::max<std::size_t>(1, std::thread::hardware_concurrency());
}

void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#else
    std::this_thread::yield();
#endif
}

}  // namespace

workers& workers::instance() {
    static auto* const all = new workers;  // NOLINT(cppcoreguidelines-owning-memory): lives for ever
    return *all;
}

workers::workers() : count_(wanted_threads()) {
    for (std::size_t i = 0; i < count_; ++i) {
        std::thread([this] { work(); }).detach();
    }
}

void workers::push(run_list& ready) noexcept {
    bool wake = false;
    {
        const std::lock_guard lock(mutex_);
        std::size_t added = 0;
        while (runnable* const one = ready.pop()) {
            ready_.push(*one);
            ++added;
        }
        waiting_.store(waiting_.load(std::memory_order_relaxed) + added, std::memory_order_seq_cst);
        // The one that looks will find it, and wakes another if there is more.
        wake = sleeping_ > 0 && !looking_.load(std::memory_order_seq_cst);
    }
    if (wake) {
        wake_.notify_one();
    }
}

void workers::schedule(runnable& one) noexcept {
    if (kept_back != nullptr) {
        kept_back->push(one);
        return;
    }
    run_list ready;
    ready.push(one);
    push(ready);
}

void workers::offer() noexcept {
    if (kept_back != nullptr && !kept_back->empty()) {
        instance().push(*kept_back);
    }
}

runnable* workers::take() noexcept {
    bool more = false;
    runnable* one = nullptr;
    {
        const std::lock_guard lock(mutex_);
        one = ready_.pop();
        if (one != nullptr) {
            waiting_.store(waiting_.load(std::memory_order_relaxed) - 1, std::memory_order_seq_cst);
            more = !ready_.empty() && sleeping_ > 0;
        }
    }
    if (more) {
        wake_.notify_one();
    }
    return one;
}

bool workers::look_for_work() noexcept {
    bool nobody = false;
    if (std::thread::hardware_concurrency() < 2 ||
        !looking_.compare_exchange_strong(nobody, true, std::memory_order_seq_cst)) {
        return false;
    }
    const auto end = std::chrono::steady_clock::now() + patience;
    bool found = false;
    do {
        for (int i = 0; i < 32 && !found; ++i) {
            found = waiting_.load(std::memory_order_seq_cst) != 0;
            relax();
        }
    } while (!found && std::chrono::steady_clock::now() < end);
    looking_.store(false, std::memory_order_seq_cst);
    // Whoever pushed while this looked has woken nobody: look once more after saying that nobody looks.
    return found || waiting_.load(std::memory_order_seq_cst) != 0;
}

void workers::work() noexcept {
    run_list mine;
    kept_back = &mine;
    for (;;) {
        runnable* one = mine.pop();
        if (one == nullptr) {
            one = take();
        }
        if (one != nullptr) {
            one->run();
            continue;
        }
        if (look_for_work()) {
            continue;
        }
        std::unique_lock lock(mutex_);
        ++sleeping_;
        wake_.wait(lock, [&] { return !ready_.empty(); });
        --sleeping_;
    }
}

bool workers::schedule_blocking(runnable& one) noexcept {
    const std::lock_guard lock(blocking_mutex_);
    if (blocking_waiting_ >= blocking_idle_) {
        try {
            std::thread([this] { work_blocking(); }).detach();
            ++blocking_idle_;
        } catch (const std::system_error&) {
            return false;
        }
    }
    blocking_ready_.push(one);
    ++blocking_waiting_;
    blocking_wake_.notify_one();
    return true;
}

void workers::work_blocking() noexcept {
    std::unique_lock lock(blocking_mutex_);
    for (;;) {
        if (!blocking_wake_.wait_for(lock, blocking_patience, [&] { return !blocking_ready_.empty(); })) {
            --blocking_idle_;
            return;
        }
        runnable* const one = blocking_ready_.pop();
        --blocking_waiting_;
        --blocking_idle_;
        lock.unlock();
        one->run_blocking();
        lock.lock();
        ++blocking_idle_;
    }
}

}  // namespace weir::backend::cpu
