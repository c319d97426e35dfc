#include "backend/fork_gate.hpp"

#include <array>
#include <atomic>
#include <new>

#include "backend/process_barrier.hpp"
#include "weir/detail/fork_section.hpp"

namespace weir::backend {

namespace {

constinit std::array<presence, 64> first_presences;  // so that a process with few threads allocates nothing
constinit std::atomic<presence*> more{nullptr};      // presences of further threads, the latest one first
constinit std::atomic<bool> someone_unseen{false};   // there was no memory for the presence of a thread
constinit std::atomic<const presence*> forking{nullptr};
constinit std::uint64_t forks = 0;  // written in a child that has one thread

constinit thread_local bool thread_ends = false;

template <class Visit>
void each_presence(Visit&& visit) noexcept {
    for (presence& one : first_presences) {
        visit(one);
    }
    for (presence* one = more.load(std::memory_order_seq_cst); one != nullptr; one = one->next) {
        visit(*one);
    }
}

bool take(presence& one) noexcept {
    return !one.taken.load(std::memory_order_relaxed) && !one.taken.exchange(true, std::memory_order_seq_cst);
}

presence& find_presence() noexcept {
    presence* found = nullptr;
    each_presence([&](presence& one) {
        if (found == nullptr && take(one)) {
            found = &one;
        }
    });
    if (found != nullptr) {
        return *found;
    }
    found = new (std::nothrow) presence;
    if (found == nullptr) {
        someone_unseen.store(true, std::memory_order_seq_cst);  // so no child may use Weir from here on
        return first_presences.front();
    }
    found->taken.store(true, std::memory_order_relaxed);
    found->next = more.load(std::memory_order_relaxed);
    while (!more.compare_exchange_weak(found->next, found, std::memory_order_seq_cst, std::memory_order_relaxed)) {
    }
    return *found;
}

}  // namespace

/// Runs once, before any thread is in a section.
void fork_gate::find_barrier() noexcept {
    [[maybe_unused]] static const bool found = [] {
        gate_.fetch_or(has_process_barrier() ? 0 : needs_fences, std::memory_order_seq_cst);
        return true;
    }();
}

void fork_gate::give_back() noexcept {
    presence* const one = mine_;
    mine_ = nullptr;
    one->is_for_once = false;
    one->taken.store(false, std::memory_order_release);
}

presence& fork_gate::appear() noexcept {
    struct end_of_thread {
        ~end_of_thread() {
            thread_ends = true;
            if (mine_ != nullptr && mine_->depth.load(std::memory_order_relaxed) == 0) {
                give_back();
            }
        }
    };
    find_barrier();
    mine_ = &find_presence();
    mine_->is_for_once = thread_ends;
    if (!thread_ends) {
        [[maybe_unused]] thread_local const end_of_thread end;
    }
    return *mine_;
}

/// Whether the calling thread, which has just raised its depth, may stay inside.
bool fork_gate::may_stay(const presence& self) noexcept {
    // Not a load: either this comes after the gate was closed, or the thread that closes it sees the raised depth.
    const int now = gate_.fetch_or(0, std::memory_order_seq_cst);
    return (now & is_closed) == 0 || forking.load(std::memory_order_relaxed) == &self;
}

void fork_gate::enter_slowly(presence& self) noexcept {
    while (!may_stay(self)) {
        self.depth.store(0, std::memory_order_release);
        wait_while_closed();
        self.depth.store(1, std::memory_order_relaxed);
    }
}

void fork_gate::wait_while_closed() noexcept {
    for (int now = gate_.load(std::memory_order_acquire); (now & is_closed) != 0;
         now = gate_.load(std::memory_order_acquire)) {
        gate_.wait(now, std::memory_order_acquire);
    }
}

bool fork_gate::is_inside() noexcept { return mine_ != nullptr && mine_->depth.load(std::memory_order_relaxed) != 0; }

void fork_gate::close() noexcept {
    if (mine_ == nullptr) {
        appear();
    }
    forking.store(mine_, std::memory_order_relaxed);
    gate_.fetch_or(is_closed, std::memory_order_seq_cst);
    if ((gate_.load(std::memory_order_relaxed) & needs_fences) == 0 && !process_barrier()) {
        // The barrier existed when threads began to rely on it: this has never been seen.
        someone_unseen.store(true, std::memory_order_relaxed);
    }
}

void fork_gate::open() noexcept {
    gate_.fetch_and(~is_closed, std::memory_order_seq_cst);
    gate_.notify_all();
}

bool fork_gate::others_inside() noexcept {
    bool any = someone_unseen.load(std::memory_order_relaxed);
    each_presence(
        [&](const presence& one) { any = any || (&one != mine_ && one.depth.load(std::memory_order_acquire) != 0); });
    return any;
}

void fork_gate::begin_child() noexcept {
    each_presence([](presence& one) {
        if (&one != mine_) {
            one.depth.store(0, std::memory_order_relaxed);
            one.is_for_once = false;
            one.taken.store(false, std::memory_order_relaxed);
        }
    });
    gate_.fetch_and(~is_closed, std::memory_order_relaxed);
    ++forks;
}

std::uint64_t fork_gate::generation() noexcept { return forks; }

}  // namespace weir::backend

namespace weir::detail {

using namespace backend;  // NOLINT(google-build-using-namespace): the other half of the same component

[[gnu::hot]] void fork_section::enter() noexcept {
    fork_gate::enter(fork_gate::mine_ == nullptr ? fork_gate::appear() : *fork_gate::mine_);
}

[[gnu::hot]] void fork_section::leave() noexcept { fork_gate::leave(*fork_gate::mine_); }

fork_section::rest::rest() noexcept : depth_(fork_gate::mine_->depth.load(std::memory_order_relaxed)) {
    fork_gate::mine_->depth.store(0, std::memory_order_release);
}

bool fork_section::rest::try_return() const noexcept {
    fork_gate::mine_->depth.store(depth_, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (fork_gate::gate_.load(std::memory_order_relaxed) == 0 || fork_gate::may_stay(*fork_gate::mine_)) {
        return true;
    }
    fork_gate::mine_->depth.store(0, std::memory_order_release);
    return false;
}

void fork_section::rest::wait_for_fork() noexcept { fork_gate::wait_while_closed(); }

}  // namespace weir::detail
