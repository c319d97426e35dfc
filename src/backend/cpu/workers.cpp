#include "backend/cpu/workers.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <new>
#include <string>
#include <system_error>

#include "backend/fork_part.hpp"
#include "backend/spin.hpp"
#include "backend/waiting_host.hpp"
#include "base/setting.hpp"
#include "weir/detail/fork_section.hpp"
#include "weir/error.hpp"

namespace weir::backend::cpu {

namespace {

/// What the calling worker has kept back; null on other threads.
thread_local run_list* kept_back = nullptr;

std::size_t wanted_threads() {
    constexpr detail::setting threads("WEIR_CPU_THREADS");
    if (const char* const text = threads.value(); text != nullptr) {
        std::size_t wanted = 0;
        const char* const text_end = text + std::strlen(text);
        const auto [end, failure] = std::from_chars(text, text_end, wanted);
        if (failure == std::errc() && end == text_end && wanted >= 1 && wanted <= 1024) {
            return wanted;
        }
        threads.refuse("the CPU's streams get as many threads as the machine has; say a number from 1 to 1024");
    }
    return std::max<std::size_t>(1, std::thread::hardware_concurrency());
}

}  // namespace

workers& workers::instance() noexcept {
    // Never destroyed, in static memory, so that access cannot fail.
    alignas(workers) static std::byte room[sizeof(workers)];
    static auto* const all = ::new (room) workers;
    return *all;
}

workers::workers() noexcept : count_(wanted_threads()) {}

void workers::start() {
    if (started_.load(std::memory_order_acquire) == count_) {
        return;
    }
    const std::lock_guard lock(start_mutex_);
    were_started_.store(true, std::memory_order_relaxed);
    try {
        while (started_.load(std::memory_order_relaxed) < count_) {
            std::thread([this] { work(); }).detach();
            started_.fetch_add(1, std::memory_order_release);
        }
    } catch (const std::system_error& why) {
        throw device_error(std::string("the CPU cannot start its threads: ") + why.what());
    }
}

void workers::begin_child() noexcept {
    // Constructed anew, not destroyed: a thread of the parent may have held the lock at the fork, or waited at the condition.
    ::new (&mutex_) detail::mutex;
    ::new (&wake_) detail::condition_variable;
    started_.store(0, std::memory_order_relaxed);
    sleeping_ = 0;
    looking_.store(false, std::memory_order_relaxed);
}

void workers::push(run_list& ready) noexcept {
    const detail::fork_section whole;  // also covers the notification, after the lock is released
    bool wake = false;
    {
        const std::lock_guard lock(mutex_.within_section());
        std::size_t added = 0;
        while (runnable* const one = ready.pop()) {
            ready_.push(*one);
            ++added;
        }
        waiting_.store(waiting_.load(std::memory_order_relaxed) + added, std::memory_order_seq_cst);
        // A worker that is looking will find it, and wakes another if there is more.
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
    const detail::fork_section whole;
    bool more = false;
    runnable* one = nullptr;
    {
        const std::lock_guard lock(mutex_.within_section());
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

template <class Found>
bool workers::look_for_work(time_point look_from, Found&& found) noexcept {
    bool is_looking = false;
    if (!worth_spinning() || !looking_.compare_exchange_strong(is_looking, true, std::memory_order_seq_cst)) {
        return false;
    }
    if (look_from != time_point()) {
        while (!waiting_host::any() && std::chrono::steady_clock::now() < look_from) {
            relax();
        }
    }
    const bool any = spin_until([&] { return waiting_.load(std::memory_order_seq_cst) != 0 || found(); }, true);
    looking_.store(false, std::memory_order_seq_cst);
    // A thread that pushed during the look has woken no worker: look once more after looking_ is cleared.
    return any || waiting_.load(std::memory_order_seq_cst) != 0;
}

bool workers::has_other_work() noexcept { return !kept_back->empty(); }

bool workers::linger(runnable& with, time_point look_from) noexcept {
    if (!look_for_work(look_from, [&] { return with.has_work(); }) || !with.has_work()) {
        return false;
    }
    leave_to_others();
    return true;
}

void workers::leave_to_others() noexcept {
    const bool is_relied_on = waiting_.load(std::memory_order_seq_cst) > 0;
    if (is_relied_on) {
        wake_.notify_one();
    }
}

void workers::work() noexcept {
    const detail::fork_section awake;  // except while it sleeps
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
        if (look_for_work(time_point(), [] { return false; })) {
            continue;
        }
        std::unique_lock lock(mutex_);
        ++sleeping_;
        wake_.sleep(lock, [&] { return !ready_.empty(); });
        --sleeping_;
    }
}

namespace {

class workers_part final : public fork_part {
    void begin_child() noexcept override { workers::instance().begin_child(); }
    void resume() override {
        if (workers::instance().were_started()) {
            workers::instance().start();
        }
    }
};
workers_part part;

// Constructs the instance at start, so that no fork finds it half constructed.
[[maybe_unused]] const workers& made_at_start = workers::instance();

}  // namespace

}  // namespace weir::backend::cpu
