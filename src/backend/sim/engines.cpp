#include "backend/sim/engines.hpp"

#include <algorithm>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "backend/sim/queue.hpp"
#include "weir/error.hpp"

namespace weir::backend::sim {

namespace {

/// Choices are made among the oldest ready queues: enough for any order of a few streams, and bounded.
constexpr std::size_t most_choices = 32;
/// One in held_back_one_in operations is held back, and overtaken at most most_overtakings times.
constexpr std::uint64_t held_back_one_in = 3;
constexpr std::uint64_t most_overtakings = 8;
/// A queue that was overtaken so often is next, held back or not.
constexpr int patience_of_queues = 64;

/// Longest duration of an operation under the virtual clock.
constexpr std::uint64_t most_microseconds = 1000;

}  // namespace

void engines::start_threads(const testing::sim_settings& wanted) {
    const std::lock_guard held(mutex_);
    try {
        for (; threads_ < wanted.engines + wanted.copy_engines; ++threads_) {
            std::thread([this] { work(); }).detach();
        }
    } catch (const std::system_error& why) {
        throw device_error(std::string("a simulated device cannot start its threads: ") + why.what());
    }
}

void engines::wake_one() noexcept {
    if (sleeping_ > 0) {
        wake_.notify_one();
    }
}

void engines::enter(sim_queue& one, bool is_new) noexcept {
    {
        const std::lock_guard held(mutex_);
        active_ += is_new ? 1 : 0;
        unexamined_.push(one);
        wake_one();
    }
    if (is_virtual()) {
        driving_hosts::instance().news();
    }
}

void engines::entered(sim_queue& one) noexcept { enter(one, true); }

void engines::examine(sim_queue& one) noexcept { enter(one, false); }

void engines::left() noexcept {
    const std::lock_guard held(mutex_);
    if (--active_ == 0) {
        rested_.notify_all();
    }
}

void engines::ready(sim_queue& one, engine on) noexcept {
    const std::lock_guard held(mutex_);
    one.on = on;
    one.overtaken = 0;
    one.held_back = 0;
    if (settings_.adversarial && choices_.below(held_back_one_in) == 0) {
        one.held_back = static_cast<int>(1 + choices_.below(most_overtakings));
    }
    ready_[static_cast<std::size_t>(on)].push(one);
    wake_one();
}

sim_queue* engines::choose_by_seed(fifo<sim_queue>& from) noexcept {
    struct candidate {
        sim_queue* previous;
        sim_queue* queue;
    };
    std::array<candidate, most_choices> candidates{};
    std::size_t count = 0;
    bool all_held_back = true;
    sim_queue* previous = nullptr;
    for (sim_queue* one = from.first(); one != nullptr && count < most_choices; previous = one, one = one->next) {
        if (one->overtaken >= patience_of_queues) {
            return from.take_after(previous);
        }
        candidates[count++] = {previous, one};
        all_held_back = all_held_back && one->held_back > 0;
    }
    const auto end = candidates.begin() + static_cast<std::ptrdiff_t>(count);
    for (auto* one = candidates.begin(); one != end; ++one) {
        ++one->queue->overtaken;
    }
    if (all_held_back) {
        return from.take_after(candidates[choices_.below(count)].previous);
    }
    const auto held =
        std::stable_partition(candidates.begin(), end, [](const candidate& one) { return one.queue->held_back == 0; });
    for (auto* one = held; one != end; ++one) {
        --one->queue->held_back;
    }
    const auto free = static_cast<std::uint64_t>(held - candidates.begin());
    return from.take_after(candidates[choices_.below(free)].previous);
}

bool engines::is_free(std::size_t kind) const noexcept {
    switch (static_cast<engine>(kind)) {
        case engine::compute:
            return running_[kind] < settings_.engines;
        case engine::copy:
            return running_[kind] < settings_.copy_engines;
        case engine::host:
            break;
    }
    return true;
}

sim_queue* engines::choose() noexcept {
    for (std::size_t kind = 0; kind < kinds; ++kind) {
        fifo<sim_queue>& list = ready_[kind];
        if (!list.empty() && is_free(kind)) {
            ++running_[kind];
            return settings_.adversarial || settings_.virtual_clock ? choose_by_seed(list) : list.pop();
        }
    }
    return nullptr;
}

// --- the threads --------------------------------------------------------------------------------------------------

void engines::work() noexcept {
    lock held(mutex_);
    for (;;) {
        if (!settings_.virtual_clock) {
            if (sim_queue* const one = unexamined_.pop()) {
                if (!unexamined_.empty()) {
                    wake_one();
                }
                held.unlock();
                one->advance();
                held.lock();
                continue;
            }
            if (sim_queue* const one = choose()) {
                wake_one();  // there may be more that can run
                held.unlock();
                one->run();
                held.lock();
                --running_[static_cast<std::size_t>(one->on)];
                unexamined_.push(*one);
                continue;
            }
        }
        ++sleeping_;
        wake_.sleep(held);
        --sleeping_;
    }
}

// --- the virtual clock --------------------------------------------------------------------------------------------

/// Looks at the queues whose state may have changed. Releases the lock meanwhile.
void engines::examine_all(lock& held) noexcept {
    while (sim_queue* const one = unexamined_.pop()) {
        held.unlock();
        one->advance();
        held.lock();
    }
}

/// Starts ready queues on free engines. Releases the lock meanwhile.
void engines::start_all(lock& held) noexcept {
    while (sim_queue* const one = choose()) {
        auto takes = std::chrono::nanoseconds(std::chrono::microseconds(1 + choices_.below(most_microseconds)));
        if (settings_.cost) {
            held.unlock();  // user code is called without the lock; settings do not change while anything is pending
            takes = settings_.cost(one->operation_ahead());
            held.lock();
        }
        one->starts = clock_;
        one->ends = clock_ + takes;
        started_.push(*one);
    }
}

/// Takes out the operation that ends first; the seed chooses among equals. Null if nothing runs.
sim_queue* engines::end_next() noexcept {
    sim_queue* before_chosen = nullptr;
    sim_queue* chosen = nullptr;
    std::uint64_t equals = 0;
    sim_queue* previous = nullptr;
    for (sim_queue* one = started_.first(); one != nullptr; previous = one, one = one->next) {
        const bool sooner = chosen == nullptr || one->ends < chosen->ends;
        if (!sooner && one->ends > chosen->ends) {
            continue;
        }
        equals = sooner ? 1 : equals + 1;
        if (choices_.below(equals) == 0) {
            chosen = one;
            before_chosen = previous;
        }
    }
    return chosen == nullptr ? nullptr : started_.take_after(before_chosen);
}

bool engines::step() noexcept {
    lock held(mutex_);
    examine_all(held);
    start_all(held);
    sim_queue* const one = end_next();
    if (one == nullptr) {
        return false;
    }
    clock_ = std::max(clock_, one->ends);
    one->ends = clock_;  // later than planned, if concurrent operations had to wait
    held.unlock();
    one->run_virtually();
    held.lock();
    --running_[static_cast<std::size_t>(one->on)];
    unexamined_.push(*one);
    examine_all(held);
    return true;
}

std::chrono::steady_clock::time_point engines::time_of(std::chrono::nanoseconds since) const noexcept {
    return clock_began_ + std::chrono::duration_cast<std::chrono::steady_clock::duration>(since);
}

std::chrono::steady_clock::time_point engines::now() const noexcept {
    const std::lock_guard held(mutex_);
    return settings_.virtual_clock ? time_of(clock_) : std::chrono::steady_clock::now();
}

// --- how it behaves -----------------------------------------------------------------------------------------------

testing::sim_settings engines::settings() const {
    const std::lock_guard held(mutex_);
    return settings_;
}

void engines::configure(testing::sim_settings settings) noexcept {
    const bool wants_virtual = settings.virtual_clock;
    {
        lock held(mutex_);
        rested_.wait(held, [&] { return active_ == 0; });
        choices_ = random_numbers(settings.seed);
        settings_ = std::move(settings);
        clock_ = {};
        clock_began_ = std::chrono::steady_clock::now();
        virtual_ = wants_virtual;
    }
    if (wants_virtual) {
        driving_hosts::instance().add(*this);
    } else {
        driving_hosts::instance().remove(*this);
    }
}

}  // namespace weir::backend::sim
