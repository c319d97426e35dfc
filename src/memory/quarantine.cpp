#include "memory/quarantine.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "backend/backend.hpp"
#include "backend/timeline.hpp"
#include "memory/block.hpp"
#include "memory/device_memory.hpp"
#include "memory/lent_memory.hpp"
#include "memory/pool.hpp"
#include "runtime/devices/device_state.hpp"
#include "weir/capture.hpp"
#include "weir/detail/giving_back.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/detail/passkey.hpp"

namespace weir {

namespace {

/// So many objects that wait for their release are left to the thread whose task that is.
constexpr std::size_t enough_to_look = 2;

}  // namespace

namespace memory {

/// Linked through its members: allocates nothing.
struct quarantine_list {
    quarantined* first = nullptr;

    void add(quarantined& one) noexcept {
        one.previous_ = nullptr;
        one.next_ = first;
        (first != nullptr ? first->previous_ : first) = &one;
        first = &one;
    }
    void remove(quarantined& one) noexcept {
        (one.previous_ != nullptr ? one.previous_->next_ : first) = one.next_;
        if (one.next_ != nullptr) {
            one.next_->previous_ = one.previous_;
        }
    }
    template <class Fits>
    [[nodiscard]] quarantined* find(Fits&& fits) const noexcept {
        quarantined* one = first;
        while (one != nullptr && !fits(*one)) {
            one = one->next_;
        }
        return one;
    }
};

namespace {

/// For each memory that is lent out, room for the ends of so many contexts is reserved.
constexpr std::size_t usual_contexts = 16;

std::atomic<capture_knowledge> captures_of_process{capture_knowledge::unknown};
std::atomic<std::uint64_t> drops{0};

/// The ends of all contexts at one moment.
struct ends_of_contexts {
    std::uint64_t covers = 0;  ///< the number of drops before this moment: it covers those drops
    std::vector<frontiers::point> points;
};

struct shared_state {
    detail::mutex mutex;  ///< guards what follows; a leaf in the lock order
    ends_of_contexts last;
    quarantine_list held;
    quarantine_list ending;
    detail::condition_variable left;  ///< notified when an object leaves `ending`
};

shared_state& state() {
    static auto* const one = new shared_state;  // NOLINT(cppcoreguidelines-owning-memory): lives for ever
    return *one;
}

// At static initialization, so that no fork finds it half constructed.
[[maybe_unused]] const auto& made_at_start = state();

/// The present ends of all contexts, including contexts that other libraries made on devices which Weir does not use, because memory
/// may be mapped to each device (rule L5). A context that is made later comes after the drop. Nothing if some context gives no end. Must
/// be called under no lock: the driver may block until work is complete that other threads enqueue or release.
std::optional<ends_of_contexts> record_ends_of_contexts(bool may_block) noexcept {
    try {
        ends_of_contexts found{drops.load(std::memory_order_seq_cst), {}};
        for (runtime::device_state* const each : runtime::cuda_devices_with_context()) {
            if (const auto end = each->driver().record_end_of_all()) {
                found.points.push_back(*end);
            } else if (!may_block || !each->driver().await_end_of_all()) {
                return std::nullopt;
            }
        }
        return found;
    } catch (...) {
        return std::nullopt;
    }
}

/// Stores the ends, unless another thread has stored later ones meanwhile. Under the lock.
void make_known(shared_state& in, ends_of_contexts&& found) noexcept {
    if (found.covers > in.last.covers) {
        in.last = std::move(found);
    }
}

/// Whether work that Weir never sees can use the memory after its drop.
bool is_reached_by_contexts(const block& of) {
    return of.device().kind() == device_kind::cuda || (of.source().is_pinned() && !of.device().stands_for_cuda());
}

block* block_of(const buffer& what) noexcept { return static_cast<block*>(what.resource(detail::key)); }

}  // namespace

void lend_out(const buffer& what) {
    block* const of = block_of(what);
    if (of == nullptr || !is_reached_by_contexts(*of)) {
        return;
    }
    runtime::reaper::start();
    auto made = std::make_unique<quarantined>(*of);
    const std::lock_guard lock(of->mutex);
    if (!of->quarantine) {
        of->quarantine = std::move(made);
    }
}

bool is_lent_out(const buffer& what) noexcept {
    block* const of = block_of(what);
    if (of == nullptr) {
        return false;
    }
    const std::lock_guard lock(of->mutex);
    return of->quarantine != nullptr;
}

void take_back(const buffer& what) {
    if (block* const of = block_of(what)) {
        std::unique_ptr<quarantined> not_needed;  // destroyed after the lock is released
        const std::lock_guard lock(of->mutex);
        not_needed = std::move(of->quarantine);
    }
}

quarantined::quarantined(block& of)
    : block_(&of),
      of_(of.lent == nullptr ? of.home : &pool_of(of.device())),
      owner_(of.lent == nullptr ? memory_owner::pool : memory_owner::other) {
    ends_.reserve(usual_contexts);
}

void quarantined::enter() noexcept {
    dropped_ = drops.fetch_add(1, std::memory_order_seq_cst);
    if (owner_ == memory_owner::pool) {
        of_->enter_quarantine(*block_);
    } else {
        of_->enter_quarantine_of_others(block_->capacity);
    }
    runtime::reaper::push(*this);
}

/// Copies the known ends if they cover this drop. Under the lock.
bool quarantined::take_ends() noexcept {
    const ends_of_contexts& known = state().last;
    if (known.covers <= dropped_) {
        return false;
    }
    try {
        ends_ = known.points;
        has_end_ = true;
    } catch (...) {
        return false;
    }
    return true;
}

/// Whether its ends are known, or can be recorded now.
bool quarantined::find_end() noexcept {
    shared_state& all = state();
    std::unique_lock lock(all.mutex);
    if (all.last.covers <= dropped_ && captures_of_process.load() == capture_knowledge::none) {
        lock.unlock();
        std::optional<ends_of_contexts> found = record_ends_of_contexts(false);
        lock.lock();
        if (found) {
            make_known(all, std::move(*found));
        }
    }
    if (!take_ends()) {
        return false;
    }
    all.ending.add(*this);
    return true;
}

std::optional<frontiers::point> quarantined::pending() noexcept {
    if (!has_end_ && !find_end()) {
        return std::nullopt;
    }
    const auto left = std::find_if(ends_.begin(), ends_.end(), [](const frontiers::point& one) {
        return !backend::timeline_table::instance().is_complete(one);
    });
    return left == ends_.end() ? std::nullopt : std::optional(*left);
}

void quarantined::release() noexcept {
    if (!has_end_) {
        shared_state& all = state();
        std::unique_lock lock(all.mutex);
        if (!take_ends()) {
            all.held.add(*this);
            return;
        }
        all.ending.add(*this);
        lock.unlock();
        runtime::reaper::push(*this);  // a safe point has come in between
        return;
    }
    leave();
}

/// Its ends are complete: gives the memory back. Destroys this object.
void quarantined::leave() noexcept {
    shared_state& all = state();
    const std::unique_ptr<quarantined> self(this);
    if (owner_ == memory_owner::pool) {
        of_->leave_quarantine(*block_);
    } else {
        const std::size_t bytes = block_->capacity;
        block_->lent->give_back();  // which may destroy the block
        of_->leave_quarantine_of_others(bytes);
    }
    const std::lock_guard lock(all.mutex);
    all.ending.remove(*this);
    all.left.notify_all();
}

bool quarantined::await_one(const pool& of, memory_owner owner) {
    shared_state& all = state();
    std::unique_lock lock(all.mutex);
    const quarantined* const one =
        all.ending.find([&](const quarantined& each) { return each.of_ == &of && each.owner_ == owner; });
    if (one == nullptr || runtime::reaper::leaked() != 0) {
        return false;
    }
    const std::vector<frontiers::point> ends = one->ends_;
    const std::uint64_t number = one->dropped_;  // its address may be reused as soon as it is destroyed
    lock.unlock();
    for (const frontiers::point& each : ends) {
        backend::timeline_table::instance().host_wait(each);
    }
    lock.lock();
    // Waits until the reaper's thread has processed the ends, too.
    all.left.wait(lock, [&] {
        return all.ending.find([&](const quarantined& each) { return each.dropped_ == number; }) == nullptr;
    });
    return true;
}

void quarantined::look_at_ends() noexcept {
    std::array<frontiers::point, usual_contexts> ends{};
    std::size_t count = 0;
    {
        shared_state& all = state();
        const std::lock_guard lock(all.mutex);
        count = std::min(all.last.points.size(), ends.size());
        std::copy_n(all.last.points.begin(), count, ends.begin());
    }
    for (std::size_t i = 0; i < count; ++i) {
        if (const backend::driver* const of =
                backend::timeline_table::instance().at(ends[i].timeline).driver_to_poll()) {
            of->look(ends[i]);
        }
    }
}

void quarantined::release_held(bool may_block) noexcept {
    if (runtime::gpus_stayed_behind()) {
        return;  // in the child of a fork the memory is the parent's, and stays where it is
    }
    shared_state& all = state();
    std::unique_lock lock(all.mutex);
    if (all.last.covers == drops.load(std::memory_order_seq_cst)) {
        return;  // nothing was dropped since the last ends were recorded
    }
    lock.unlock();
    std::optional<ends_of_contexts> found = record_ends_of_contexts(may_block);
    if (!found) {
        return;  // some context gives no end now
    }
    lock.lock();
    make_known(all, std::move(*found));
    quarantined* next = all.held.first;
    while (next != nullptr) {
        quarantined& one = *std::exchange(next, next->next_);
        if (one.take_ends()) {
            all.held.remove(one);
            all.ending.add(one);
            runtime::reaper::push(one);
        }
    }
}

}  // namespace memory

bool detail::has_released() noexcept { return runtime::reaper::held() >= enough_to_look; }

void detail::give_back_released() noexcept {
    if (!has_released()) {
        return;
    }
    runtime::reaper::release_due();  // what consumers have released goes into quarantine
    memory::quarantined::look_at_ends();
    runtime::reaper::release_due();  // and what they are done with to its owners
}

void captures(capture_knowledge known) noexcept {
    memory::captures_of_process.store(known);
    if (known == capture_knowledge::none) {
        memory::quarantined::release_held(false);
    }
}

void safe_point() noexcept {
    runtime::reaper::drain();  // what consumers have released by now is dropped before the ends are recorded
    memory::quarantined::release_held(true);
}

}  // namespace weir
