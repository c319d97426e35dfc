#include "memory/pool.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "backend/waiting_host.hpp"
#include "order/history.hpp"
#include "runtime/devices/device_state.hpp"
#include "weir/ordering.hpp"

namespace weir::memory {

namespace {

/// How many blocks of each class the first search checks: usually enough, and bounded.
constexpr std::size_t first_look = 32;

constexpr std::size_t most_bytes = std::numeric_limits<std::size_t>::max() / 4;

std::string in_bytes(std::size_t count) { return std::to_string(count) + " bytes"; }

void make_ready(block& b, std::size_t bytes) noexcept {
    b.renew(bytes);
    b.set_ordering(std::nullopt);
}

/// Which devices beside `device` reach what a source allocates for it.
runtime::memory_reach reach_of(const backend::memory_source& source, const runtime::device_state* device) noexcept {
    using runtime::memory_reach;
    if (device == nullptr) {
        return memory_reach::own_device;
    }
    if (device->kind() == device_kind::cpu || device->kind() == device_kind::cpu_inline) {
        return source.is_pinned() ? memory_reach::cuda_devices_too : memory_reach::own_device;
    }
    const bool is_the_hosts_too = source.host_reaches_memory() && !source.needs_idle_device();
    return is_the_hosts_too ? memory_reach::host_too : memory_reach::own_device;
}

}  // namespace

pool::pool(backend::memory_source& source, const order::watermarks& completed, runtime::device_state* device)
    : source_(&source),
      completed_(&completed),
      device_(device),
      reach_(reach_of(source, device)),
      limit_(most_bytes),
      index_(completed, pending_) {}

pool::~pool() {
    gather(merging::equals);
    block_list all;
    index_.take_all(all);
    for (block* b = all.first(); b != nullptr; b = b->next) {
        if (b->lower == nullptr) {
            std::size_t bytes = 0;
            for (const block* part = b; part != nullptr; part = part->upper) {
                bytes += part->capacity;
            }
            source_->deallocate({b->address, b->to_host}, bytes);
        }
    }
    for (block_list* list : {&all, &spares_}) {
        while (block* const b = list->pop_back()) {
            delete b;  // NOLINT(cppcoreguidelines-owning-memory): the lists own their blocks
        }
    }
}

// --- the common case ----------------------------------------------------------------------------------------------

block* pool::take_recent(std::size_t bytes, frontiers::timeline_id line) noexcept {
    block* b = nullptr;
    {
        const std::lock_guard guard(mutex_);
        if (line < bins_.size() && bins_[line]) {
            b = bins_[line]->take(bytes);
            if (b != nullptr) {
                hand_over(*b, line);
            }
        }
    }
    if (b != nullptr) {
        make_ready(*b, bytes);
    }
    return b;
}

void pool::put(block& b) noexcept {
    b.history.die(b.capacity, *completed_);
    const std::lock_guard guard(mutex_);
    live_ -= b.capacity;
    take_back(b);
}

[[gnu::always_inline]] inline void pool::take_back(block& b) noexcept {
    const std::span<const order::past_access> past = b.history.accesses();
    b.freed_at = ++frees_;
    // If only one timeline still uses the memory, that timeline may reuse it at once: it runs its operations in order.
    if (past.size() > 1 || !bin(b, past.empty() ? b.line : past.front().when.at.timeline)) {
        index_.insert(b, merging::equals, spares_);
    }
}

void pool::enter_quarantine(block& b) noexcept {
    const std::lock_guard guard(mutex_);
    live_ -= b.capacity;
    quarantined_ += b.capacity;
}

void pool::leave_quarantine(block& b) noexcept {
    b.history.die(b.capacity, *completed_);
    const std::lock_guard guard(mutex_);
    quarantined_ -= b.capacity;
    ++quarantine_ends_;
    take_back(b);
}

void pool::enter_quarantine_of_others(std::size_t bytes) noexcept {
    const std::lock_guard guard(mutex_);
    quarantined_of_others_ += bytes;
}

void pool::leave_quarantine_of_others(std::size_t bytes) noexcept {
    const std::lock_guard guard(mutex_);
    quarantined_of_others_ -= bytes;
}

bool pool::has_room_for_others(std::size_t bytes) noexcept {
    const std::lock_guard guard(mutex_);
    return quarantined_of_others_ == 0 || quarantined_of_others_ + bytes <= limit();
}

std::uint64_t pool::quarantine_ends() noexcept {
    const std::lock_guard guard(mutex_);
    return quarantine_ends_;
}

bool pool::bin(block& b, frontiers::timeline_id line) noexcept {
    if (line >= bins_.size() || !bins_[line]) {
        return false;  // the timeline never asked for memory
    }
    bins& own = *bins_[line];
    if (own.keep(b)) {
        return true;
    }
    // Full: the oldest block makes room. Only one, so that a drop stays cheap.
    if (block* const old = own.take_oldest(b.capacity)) {
        index_.insert(*old, merging::equals, spares_);
    }
    return own.keep(b);
}

void pool::hand_over(block& b, frontiers::timeline_id line) noexcept {
    b.where = place::owned;
    b.line = line;
    live_ += b.capacity;
    peak_ = std::max(peak_, live_ + pending_);
}

// --- all other cases ----------------------------------------------------------------------------------------------

/// Releases the lock while it lives, so that other threads can use the pool while the driver is at work.
class pool::driver_call {
public:
    driver_call(pool& of, lock& held) noexcept : of_(&of), held_(&held) {
        ++of_->driver_calls_;
        held_->unlock();
    }
    ~driver_call() {
        held_->lock();
        --of_->driver_calls_;
        of_->driver_answers_.fetch_add(1, std::memory_order_relaxed);
        of_->driver_answers_.notify_all();  // these threads check once the lock is free: by then the result is noted
    }
    driver_call(const driver_call&) = delete;
    driver_call& operator=(const driver_call&) = delete;

private:
    pool* of_;
    lock* held_;
};

/// Waits until the next driver call of another thread is finished. Releases the lock meanwhile.
void pool::await_driver(lock& held) noexcept {
    const std::uint32_t answers = driver_answers_.load(std::memory_order_relaxed);
    // Keeps the thread in a section: a fork cannot see the driver call that the thread waits for.
    const detail::fork_section stay;
    const backend::waiting_host self_waits;
    held.unlock();
    driver_answers_.wait(answers, std::memory_order_relaxed);
    held.lock();
}

pool::answer pool::take(std::size_t bytes, const requester& user, std::span<const frontiers::point> not_awaited) {
    lock held(mutex_);
    const std::uint64_t refusals = refusals_;
    make_bins(user.line);
    for (;;) {
        if (bytes > limit()) {
            return {nullptr, std::nullopt, quarantine_ends_, false};
        }
        const std::size_t rounded = rounded_size(bytes);
        const std::size_t size = rounded <= limit() ? rounded : round_up(bytes, granule);
        if (block* const b = find_or_grow(held, size, user)) {
            hand_over(*b, user.line);
            held.unlock();
            make_ready(*b, bytes);
            return {b, std::nullopt, 0, false};
        }
        const std::optional<frontiers::point> pending = index_.oldest_pending(not_awaited);
        if (!pending && index_.has_newly_complete()) {
            continue;  // memory that was pending when it was last checked is complete now, and may suffice
        }
        if (pending || driver_calls_ == 0) {
            return {nullptr, pending, quarantine_ends_, refusals_ != refusals};
        }
        await_driver(held);
    }
}

/// Steps 1 to 5 of `take`. Releases the lock at times.
block* pool::find_or_grow(lock& held, std::size_t size, const requester& user) {
    block* b = carve(index_.find_ordered(size, user, first_look), size);
    if (b == nullptr) {
        gather(merging::equals);
        b = carve(index_.find_ordered(size, user, free_index::everything), size);
    }
    if (b == nullptr) {
        b = grow(held, size, preferred_ceiling(size), largest_chunk);
    }
    if (b == nullptr) {
        reclaim(held);
        b = grow(held, size, preferred_ceiling(size), largest_chunk);
    }
    if (b == nullptr) {
        b = find_pending(size, user, ends::own);
    }
    if (b == nullptr) {
        b = grow(held, size, limit(), smallest_chunk);
    }
    if (b == nullptr) {
        b = find_pending(size, user, ends::own);  // memory that came back while the driver was called
    }
    if (b == nullptr) {
        b = find_pending(size, user, ends::any);
        over_waited_ += b == nullptr ? 0 : 1;
    }
    return b;
}

/// Free memory for which `user` has to wait on the device.
block* pool::find_pending(std::size_t size, const requester& user, ends which) {
    gather(merging::comparable);
    return carve(index_.find_any(size, user, which), size);
}

/// A block object for memory to come. Throws std::bad_alloc.
std::unique_ptr<block> pool::spare() {
    if (block* const kept = spares_.pop_back()) {
        return std::unique_ptr<block>(kept);
    }
    return std::make_unique<block>();
}

void pool::make_bins(frontiers::timeline_id line) {
    if (line >= bins_.size()) {
        bins_.resize(line + std::size_t{1});
    }
    if (!bins_[line]) {
        bins_[line] = std::make_unique<bins>(pending_);
    }
}

/// Takes `size` bytes out of the index, from the start of the block `found`. Changes nothing if it throws.
block* pool::carve(block* found, std::size_t size) {
    if (found == nullptr) {
        return nullptr;
    }
    if (found->capacity - size < granule) {
        index_.remove(*found);
        return found;
    }
    std::unique_ptr<block> rest = spare();
    rest->history = found->history;  // both parts had the same uses
    index_.remove(*found);
    cut(*found, size, *rest.release());
    return found;
}

/// Splits `b`: `rest` becomes the part beyond `size` bytes, with the history that it already has, and goes into the index.
void pool::cut(block& b, std::size_t size, block& rest) noexcept {
    rest.home = this;
    rest.address = b.address + size;
    rest.to_host = b.to_host;
    rest.belong_to(b.memory_of());
    rest.be_reached_by(b.reach());
    rest.capacity = b.capacity - size;
    rest.freed_at = b.freed_at;
    rest.lower = &b;
    rest.upper = b.upper;
    if (rest.upper != nullptr) {
        rest.upper->lower = &rest;
    }
    b.upper = &rest;
    b.capacity = size;
    b.history.die(b.capacity, *completed_);
    rest.history.die(rest.capacity, *completed_);
    index_.insert(rest, merging::equals, spares_);
}

/// New memory from the driver, in a chunk as large as all others together, but of at most `largest` bytes unless `size` is more, so that
/// the pool has at most `ceiling` bytes; null if there is none. Releases the lock while the driver is at work.
block* pool::grow(lock& held, std::size_t size, std::size_t ceiling, std::size_t largest) {
    if (reserved_ > ceiling || ceiling - reserved_ < size) {
        return nullptr;
    }
    const std::size_t room = (ceiling - reserved_) / granule * granule;
    const std::size_t chunk = std::clamp(reserved_ / smallest_chunk * smallest_chunk, smallest_chunk, largest);
    std::size_t got = std::max(size, std::min(chunk, room));
    std::unique_ptr<block> made = spare();
    std::unique_ptr<block> rest = got > size ? spare() : nullptr;

    reserved_ += got;  // what is being requested counts already
    backend::memory_chunk memory{};
    std::size_t refused = 0;
    {
        const driver_call asked(*this, held);
        memory = source_->allocate(got);
        if (memory.address == nullptr && got > size) {
            refused = got - size;
            got = size;
            memory = source_->allocate(got);
        }
    }
    reserved_ -= refused;
    if (memory.address == nullptr) {
        reserved_ -= got;
        ++refusals_;
        return nullptr;
    }
    made->home = this;
    made->address = memory.address;
    made->to_host = memory.to_host;
    made->belong_to(device_ == nullptr ? nullptr : &device_->memory_space());
    made->be_reached_by(reach_);
    made->capacity = got;
    made->lower = nullptr;
    made->upper = nullptr;
    if (got > size) {
        cut(*made, size, *rest.release());
    }
    return made.release();
}

/// The device's bytes, as its driver reports them now: the size of a simulated device may have changed.
std::size_t pool::total() const noexcept {
    const std::size_t bytes = source_->total_memory();
    return bytes == 0 ? most_bytes : std::min(bytes, most_bytes);
}

std::size_t pool::limit() const noexcept { return std::min(limit_, total()); }

/// How large the pool may become rather than let a stream wait (rule L1): 1.25 times the peak of live and pending bytes, including this
/// request, or the floor, so that small programs never wait.
std::size_t pool::preferred_ceiling(std::size_t size) const noexcept {
    const std::size_t peak = std::max(peak_, live_ + pending_ + quarantined_ + size);
    const std::size_t by_peak = round_up(peak + peak / 4, smallest_chunk);
    const std::size_t of_device = source_->total_memory() / 100 * floor_percent;
    return std::min(limit(), std::max({least_floor, of_device, by_peak}));
}

/// Moves all free memory into the index and updates it to what is complete.
void pool::gather(merging how) noexcept {
    for (const std::unique_ptr<bins>& one : bins_) {
        if (one) {
            one->empty_into([&](block& b) { index_.insert(b, merging::equals, spares_); });
        }
    }
    index_.merge_all(how, spares_);
}

/// Gives chunks that are free as a whole back to the driver. Releases the lock while the driver is at work.
void pool::reclaim(lock& held) noexcept {
    block_list whole;
    index_.take_complete_chunks(whole);
    if (whole.empty()) {
        return;
    }
    std::size_t bytes = 0;
    {
        const driver_call given_back(*this, held);
        for (const block* b = whole.first(); b != nullptr; b = b->next) {
            source_->deallocate({b->address, b->to_host}, b->capacity);
            bytes += b->capacity;
        }
    }
    reserved_ -= bytes;
    while (block* const b = whole.pop_back()) {
        spares_.push_back(*b);
    }
}

// --- seen from outside --------------------------------------------------------------------------------------------

void pool::trim() noexcept {
    lock held(mutex_);
    gather(merging::equals);
    for (std::unique_ptr<bins>& one : bins_) {
        one.reset();  // empty now; made anew when the stream asks again
    }
    reclaim(held);
}

void pool::give_back() noexcept {
    trim();
    {
        lock held(mutex_);
        while (driver_calls_ != 0) {
            await_driver(held);
        }
    }
    source_->await_given_back();
}

statistics pool::stats() noexcept {
    const std::lock_guard guard(mutex_);
    const auto look = [&](block& b) {
        b.history.prune(*completed_);
        if (b.counts_as_pending && b.history.empty()) {
            b.counts_as_pending = false;
            pending_ -= b.capacity;
        }
    };
    for (const std::unique_ptr<bins>& one : bins_) {
        if (one) {
            one->visit(look);
        }
    }
    index_.visit(look);
    return {.live = live_,
            .pending = pending_,
            .cached = reserved_ - live_ - pending_ - quarantined_,
            .quarantined = quarantined_ + quarantined_of_others_,
            .peak = peak_,
            .limit = limit(),
            .over_waited = over_waited_};
}

void pool::set_limit(std::size_t bytes) noexcept {
    const std::lock_guard guard(mutex_);
    limit_ = std::min(bytes, most_bytes);
}

std::string pool::explain_shortage(std::size_t bytes) {
    const statistics now = stats();
    return "out of memory on " + std::string(source_->name()) + ": " + in_bytes(bytes) + " wanted, while " +
           in_bytes(now.live) + " are live, " + in_bytes(now.pending) + " pending, " + in_bytes(now.cached) +
           " cached" +
           (now.quarantined != 0 ? ", " + in_bytes(now.quarantined) +
                                       " in quarantine (dropped by libraries that do not say when they are done: call "
                                       "weir::safe_point() where no capture runs, or declare "
                                       "weir::captures(weir::capture_knowledge::none))"
                                 : "") +
           "; the limit is " + in_bytes(now.limit) + ", the device has " +
           (total() == most_bytes ? "an unknown number of bytes" : in_bytes(total())) +
           ". Drop arrays that are no longer needed, work in smaller parts, or raise weir::memory::limit.";
}

std::string pool::explain_refused_import(std::size_t bytes) {
    const lock held(mutex_);
    return "out of memory on " + std::string(source_->name()) + ": " + in_bytes(bytes) +
           " of another library are to be imported, while " + in_bytes(quarantined_of_others_) +
           " of other libraries are in quarantine, and the limit is " + in_bytes(limit()) +
           ". Libraries had them that do not say when they are done. If the program captures no CUDA graphs, declare "
           "weir::captures(weir::capture_knowledge::none); else call weir::safe_point() where no capture runs, "
           "or raise weir::memory::limit.";
}

}  // namespace weir::memory
