#include "runtime/host/fork.hpp"

#include <pthread.h>

#include <array>
#include <chrono>
#include <cstring>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <system_error>
#include <thread>

#include "backend/fork_gate.hpp"
#include "backend/fork_part.hpp"
#include "observe/slow_path_reasons.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/error.hpp"

namespace weir::runtime {

namespace {

using backend::fork_gate;
using backend::fork_part;

/// How long a fork waits for threads that are about to leave Weir or to sleep, when no work is unfinished. That takes them
/// microseconds, but on a busy machine they must first get a processor.
constexpr std::chrono::milliseconds fork_waits{500};

enum class obstacle { none, work, thread, itself };

// State of the fork in progress: written under `forking`, read in the child.
constinit std::mutex forking;  // no detail::mutex: a thread that waits for it is not in a fork_section
constinit obstacle found = obstacle::none;
constinit std::array<char, 160> whose{};

constinit detail::mutex resuming;

fork_part::finding look_at_all() noexcept {
    fork_part::finding all = fork_part::finding::quiet;
    fork_part::each([&](fork_part& one) {
        if (all != fork_part::finding::busy) {
            const fork_part::finding its = one.look(whose);
            all = its == fork_part::finding::quiet ? all : its;
        }
    });
    return all;
}

/// What keeps a child from using Weir. If it returns `none`, the gate is closed.
obstacle look() noexcept {
    if (fork_gate::is_inside()) {
        return obstacle::itself;
    }
    fork_gate::close();
    const auto end = std::chrono::steady_clock::now() + fork_waits;
    for (;;) {
        const bool alone = !fork_gate::others_inside();
        const fork_part::finding now = look_at_all();
        if (alone && now == fork_part::finding::quiet) {
            return obstacle::none;
        }
        const bool is_work = now == fork_part::finding::busy;
        if (is_work || std::chrono::steady_clock::now() >= end) {
            fork_gate::open();
            return is_work ? obstacle::work : obstacle::thread;
        }
        std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
}

std::string reason() {
    switch (found) {
        case obstacle::work:
            return "work was pending at the fork (" + std::string(whose.data()) + ")";
        case obstacle::itself:
            return "the fork was made inside a call of Weir, by code that Weir runs";
        case obstacle::thread:
        case obstacle::none:
            break;
    }
    return "another thread was inside a call of Weir at the fork";
}

}  // namespace

void fork_guard::arm() noexcept { [[maybe_unused]] static const int armed = ::pthread_atfork(prepare, parent, child); }

void fork_guard::prepare() noexcept {
    forking.lock();
    if (!is_refused()) {
        found = look();
    }
}

void fork_guard::parent() noexcept {
    if (!is_refused() && found == obstacle::none) {
        fork_gate::open();
    }
    forking.unlock();
}

void fork_guard::child() noexcept {
    const bool is_usable = !is_refused() && found == obstacle::none;
    fork_gate::begin_child();
    if (is_usable) {
        fork_part::each([](fork_part& one) { one.begin_child(); });
    }
    state_.store(is_usable ? state::to_resume : state::refused, std::memory_order_relaxed);
    if (!is_usable) {
        observe::slow_path_reasons::begin(observe::slow_path_reasons::lost);
    }
    observe::slow_path_reasons::begin(observe::slow_path_reasons::fork);
    forking.unlock();
}

void fork_guard::resume_or_refuse() {
    if (is_refused()) {
        throw state_error(
            "this process was forked from one that had used Weir, and cannot use it: " + reason() +
            ". Wait for all work before the fork (device.synchronize()) with no other thread in Weir, fork "
            "before the first use of Weir, or start the child as a new program (exec; in Python, "
            "multiprocessing's method spawn)");
    }
    const std::lock_guard lock(resuming);
    if (state_.load(std::memory_order_relaxed) != state::to_resume) {
        return;
    }
    try {
        fork_part::each([](fork_part& one) { one.resume(); });
    } catch (const std::system_error& refused) {
        throw out_of_memory(std::string("no thread could be started in this forked process: ") + refused.what());
    }
    state_.store(state::usable, std::memory_order_release);
    observe::slow_path_reasons::end(observe::slow_path_reasons::fork);
}

namespace {
// As early as possible: a fork concurrent with the first use must find everything constructed.
[[maybe_unused]] const bool armed_at_start = (fork_guard::arm(), true);
}  // namespace

}  // namespace weir::runtime
