#include "backend/fork_gate.hpp"

#include <array>
#include <atomic>
#include <new>

#include "backend/process_barrier.hpp"
#include "weir/detail/fork_section.hpp"

namespace weir::backend {

namespace {

/// Of one thread at a time. Never freed: a fork may look at any time.
struct alignas(64) presence {
    std::atomic<unsigned> depth{0};  ///< of the thread's sections; pairs with the gate (see fork_gate)
    std::atomic<bool> taken{false};
    bool is_for_once = false;  ///< the thread ends: it is given back with the last section
    presence* next = nullptr;
};

constexpr int is_closed = 1;
constexpr int needs_fences = 2;

constinit std::array<presence, 64> first_presences;  // so that few threads cost no memory
constinit std::atomic<presence*> more{nullptr};      // all others, the last one first
constinit std::atomic<bool> someone_unseen{false};   // no memory was left for a thread
constinit std::atomic<int> gate{0};
constinit std::atomic<const presence*> forking{nullptr};
constinit std::uint64_t forks = 0;  // written in a child that has one thread

constinit thread_local presence* mine = nullptr;
constinit thread_local bool thread_ends = false;

/// Once, before any thread is in a section.
void find_barrier() noexcept {
    [[maybe_unused]] static const bool found = [] {
        gate.fetch_or(has_process_barrier() ? 0 : needs_fences, std::memory_order_seq_cst);
        return true;
    }();
}

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

[[gnu::cold]] void give_back() noexcept {
    presence* const one = mine;
    mine = nullptr;
    one->is_for_once = false;
    one->taken.store(false, std::memory_order_release);
}

struct end_of_thread {
    ~end_of_thread() {
        thread_ends = true;
        if (mine != nullptr && mine->depth.load(std::memory_order_relaxed) == 0) {
            give_back();
        }
    }
};

[[gnu::cold, gnu::noinline]] void appear() noexcept {
    find_barrier();
    mine = &find_presence();
    mine->is_for_once = thread_ends;
    if (!thread_ends) {
        [[maybe_unused]] thread_local const end_of_thread end;
    }
}

/// Whether the thread, which has just said that it is inside, may stay.
bool may_stay(const presence& who) noexcept {
    // No load: either this comes after the gate was closed, or who closes it sees what the thread has said.
    const int now = gate.fetch_or(0, std::memory_order_seq_cst);
    return (now & is_closed) == 0 || forking.load(std::memory_order_relaxed) == &who;
}

void wait_while_closed() noexcept {
    for (int now = gate.load(std::memory_order_acquire); (now & is_closed) != 0;
         now = gate.load(std::memory_order_acquire)) {
        gate.wait(now, std::memory_order_acquire);
    }
}

[[gnu::cold, gnu::noinline]] void enter_slowly(presence& who) noexcept {
    while (!may_stay(who)) {
        who.depth.store(0, std::memory_order_release);
        wait_while_closed();
        who.depth.store(1, std::memory_order_relaxed);
    }
}

}  // namespace

bool fork_gate::is_inside() noexcept { return mine != nullptr && mine->depth.load(std::memory_order_relaxed) != 0; }

void fork_gate::close() noexcept {
    if (mine == nullptr) {
        appear();
    }
    forking.store(mine, std::memory_order_relaxed);
    gate.fetch_or(is_closed, std::memory_order_seq_cst);
    if ((gate.load(std::memory_order_relaxed) & needs_fences) == 0 && !process_barrier()) {
        someone_unseen.store(true, std::memory_order_relaxed);  // it was there before: never seen
    }
}

void fork_gate::open() noexcept {
    gate.fetch_and(~is_closed, std::memory_order_seq_cst);
    gate.notify_all();
}

bool fork_gate::others_inside() noexcept {
    bool any = someone_unseen.load(std::memory_order_relaxed);
    each_presence(
        [&](const presence& one) { any = any || (&one != mine && one.depth.load(std::memory_order_acquire) != 0); });
    return any;
}

void fork_gate::begin_child() noexcept {
    each_presence([](presence& one) {
        if (&one != mine) {
            one.depth.store(0, std::memory_order_relaxed);
            one.is_for_once = false;
            one.taken.store(false, std::memory_order_relaxed);
        }
    });
    gate.fetch_and(~is_closed, std::memory_order_relaxed);
    ++forks;
}

std::uint64_t fork_gate::generation() noexcept { return forks; }

}  // namespace weir::backend

namespace weir::detail {

using namespace backend;  // NOLINT(google-build-using-namespace): the other half of the same thing

[[gnu::hot]] void fork_section::enter() noexcept {
    if (mine == nullptr) {
        appear();
    }
    presence& self = *mine;
    const unsigned depth = self.depth.load(std::memory_order_relaxed);
    self.depth.store(depth + 1, std::memory_order_relaxed);
    if (depth == 0) {
        std::atomic_signal_fence(std::memory_order_seq_cst);
        if (gate.load(std::memory_order_relaxed) != 0) {
            enter_slowly(self);
        }
    }
}

[[gnu::hot]] void fork_section::leave() noexcept {
    presence& self = *mine;
    const unsigned depth = self.depth.load(std::memory_order_relaxed) - 1;
    self.depth.store(depth, std::memory_order_release);
    if (depth == 0 && self.is_for_once) {
        give_back();
    }
}

fork_section::rest::rest() noexcept : depth_(mine->depth.load(std::memory_order_relaxed)) {
    mine->depth.store(0, std::memory_order_release);
}

bool fork_section::rest::try_return() const noexcept {
    mine->depth.store(depth_, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (gate.load(std::memory_order_relaxed) == 0 || may_stay(*mine)) {
        return true;
    }
    mine->depth.store(0, std::memory_order_release);
    return false;
}

void fork_section::rest::wait_for_fork() noexcept { wait_while_closed(); }

}  // namespace weir::detail
