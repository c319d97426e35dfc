#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "backend/hot_mutex.hpp"
#include "order/history.hpp"
#include "runtime/lifetime/liveness_token.hpp"
#include "runtime/lifetime/package_ties.hpp"
#include "runtime/submission/ordering.hpp"
#include "weir/access.hpp"
#include "weir/device.hpp"

namespace weir::runtime {

class device_state;

/// The host's live views of one resource. An operation that conflicts with a view is complete before the call that enqueues it
/// returns (rule X7); while the host copies, the operation does not even begin.
class host_views {
public:
    /// Enters a view. May throw std::bad_alloc; nothing is entered then.
    void enter(const order::footprint& where, order::access_mode mode) { views_.push_back({where, mode}); }
    /// Marks a view that was entered with these arguments as copying, until it leaves. No conflicting operation is pending.
    void begin_copy(const order::footprint& where, order::access_mode mode) noexcept {
        if (view* const found = find({where, mode})) {
            found->copies = true;
        }
    }
    /// Removes one view that was entered with the same arguments. Returns whether it was copying.
    bool leave(const order::footprint& where, order::access_mode mode, bool copies) noexcept {
        // A copy may have been cancelled before it began, so its view may not be marked as copying.
        view* found = copies ? find({where, mode, true}) : nullptr;
        const bool was_copying = found != nullptr;
        found = was_copying ? found : find({where, mode});
        if (found != nullptr) {
            *found = views_.back();
            views_.pop_back();
        }
        return was_copying;
    }
    [[nodiscard]] bool none() const noexcept { return views_.empty(); }
    [[nodiscard]] bool conflict_with(const order::footprint& where, order::access_mode mode) const noexcept {
        return std::any_of(views_.begin(), views_.end(),
                           [&](const view& one) { return one.conflicts_with(where, mode); });
    }

    /// The same for the views that are copying alone.
    [[nodiscard]] bool copy_conflicts_with(const order::footprint& where, order::access_mode mode) const noexcept {
        return std::any_of(views_.begin(), views_.end(),
                           [&](const view& one) { return one.copies && one.conflicts_with(where, mode); });
    }

private:
    struct view {
        order::footprint where;
        order::access_mode mode;
        bool copies = false;
        [[nodiscard]] bool conflicts_with(const order::footprint& other, order::access_mode its) const noexcept {
            const bool writes = mode == order::access_mode::write || its == order::access_mode::write;
            return writes && order::overlap(where, other);
        }
        friend bool operator==(const view&, const view&) = default;
    };
    [[nodiscard]] view* find(const view& like) noexcept {
        const auto found = std::find(views_.begin(), views_.end(), like);
        return found != views_.end() ? &*found : nullptr;
    }

    std::vector<view> views_;
};

/// The devices that reach memory where it lies.
enum class memory_reach : std::uint8_t {
    own_device,        ///< the device that it belongs to, and those that share its memory
    host_too,          ///< managed memory: the CPU, too
    cuda_devices_too,  ///< pinned memory: CUDA devices, too
};

/// Anything whose accesses are tracked: memory, and what is used like memory (plans, workspaces, library handles: rule P3).
/// The members that each operation needs lie together, in two cache lines.
class alignas(64) resource {
public:
    /// May throw std::bad_alloc.
    explicit resource(std::uint64_t size = 0) : liveness_token_(&liveness_token::take()), size_(size) { renew(size); }
    resource(const resource&) = delete;
    resource& operator=(const resource&) = delete;

    /// Guards `history`, `packages` and `views`. First in the lock order; several are locked in the order of their addresses (rule O8).
    backend::hot_mutex mutex;

    /// Unique in the process. New for each owner of the same memory.
    [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
    /// Bytes; footprints lie in [0, size).
    [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
    /// Gives it to a new owner, with a new number. No other thread may know it at this moment.
    void renew(std::uint64_t size) noexcept {
        id_ = next_id();
        size_ = size;
        exchange_note_.store(0, std::memory_order_relaxed);
        liveness_token_->owner.store(id_, std::memory_order_relaxed);
    }
    /// Its last owner is gone: its contents concern only operations that are enqueued already. Its number stays until `renew`.
    void retire() noexcept { liveness_token_->owner.store(0, std::memory_order_relaxed); }
    /// For code that remembers an access to it: tells whether the resource still has the same owner.
    [[nodiscard]] const liveness_token& lifetime() const noexcept { return *liveness_token_; }

    /// The device whose memory it is; if several devices share that memory, the one that stands for all of them
    /// (device_state::memory_space). Null: every device can use it where it lies.
    [[nodiscard]] const device_state* memory_of() const noexcept { return memory_of_; }
    /// Called at most once, before another thread knows the resource.
    void belong_to(const device_state* device) noexcept { memory_of_ = device; }
    /// @{
    /// Which other devices reach the memory where it lies. Set as `belong_to`.
    [[nodiscard]] memory_reach reach() const noexcept { return reach_; }
    void be_reached_by(memory_reach reach) noexcept { reach_ = reach; }
    /// @}

    [[nodiscard]] std::optional<ordering_mode> ordering() const noexcept { return mode_.get(); }
    [[nodiscard]] bool has_ordering() const noexcept { return mode_.is_set(); }
    void set_ordering(std::optional<ordering_mode> mode) noexcept { mode_.set(mode); }
    /// Whether it is internal to Weir (detail::key): then its accesses are ordered in every mode.
    [[nodiscard]] bool is_internal() const noexcept { return mode_.is_internal(); }
    void set_internal() noexcept { mode_.set_internal(); }
    /// The name of a token, which has no memory; empty if it has none. Null: it is no token.
    [[nodiscard]] const char* token_name() const noexcept { return token_name_; }

    /// How the memory last came from another package or went to one, for explain(). array/explain.cpp defines the bits; 0 means
    /// no note.
    [[nodiscard]] std::uint8_t exchange_note() const noexcept { return exchange_note_.load(std::memory_order_relaxed); }
    void note_exchange(std::uint8_t bits) noexcept { exchange_note_.store(bits, std::memory_order_relaxed); }
    /// Adds that the host waited: of memory that a package without queues shares, operations are over when their calls return.
    void note_host_blocked() noexcept { exchange_note_.fetch_or(host_blocked_note, std::memory_order_relaxed); }
    static constexpr std::uint8_t host_blocked_note = 0x40;

    /// Prefetches what an operation will need beyond the first cache line.
    [[gnu::always_inline]] void fetch_ahead() const noexcept {
        constexpr std::ptrdiff_t cache_line = 64;
        __builtin_prefetch(reinterpret_cast<const char*>(this) + cache_line, 1);
    }

protected:
    ~resource() { liveness_token_->give_back(); }
    /// `name` lives as long as this. Said once, before other threads know it.
    void be_token(const char* name) noexcept { token_name_ = name; }

private:
    static std::uint64_t next_id() noexcept;

    own_ordering mode_;
    bool has_others_ = false;
    std::atomic<std::uint8_t> exchange_note_{0};
    memory_reach reach_ = memory_reach::own_device;
    liveness_token* liveness_token_;
    std::uint64_t id_ = 0;
    const device_state* memory_of_ = nullptr;

public:
    order::history history;

    /// @{
    /// Users other than the operations of streams. Guarded by `mutex`, except `packages().any()`.
    [[nodiscard]] const package_ties& packages() const noexcept { return packages_; }
    [[nodiscard]] const host_views& views() const noexcept { return views_; }
    /// Whether there are any such users.
    [[nodiscard]] bool has_others() const noexcept { return has_others_; }
    /// A package shares the memory from now on. Throws std::bad_alloc.
    void tie(package_tie one) {
        packages_.add(std::move(one));
        note_others();
    }
    /// Ends a tie, as package_ties::remove.
    [[nodiscard]] std::shared_ptr<package> untie(const package_tie& one) noexcept {
        std::shared_ptr<package> with = packages_.remove(one);
        note_others();
        return with;
    }
    /// Ends all live exports. Throws std::bad_alloc; nothing has changed then.
    [[nodiscard]] std::vector<package_tie> untie_exports() {
        std::vector<package_tie> ended = packages_.remove_exports();
        note_others();
        return ended;
    }
    /// Ends all ties: the packages shared the memory of an owner that is gone. Returns them, as package_ties::remove_all.
    [[nodiscard]] std::vector<package_tie> untie_all() noexcept {
        std::vector<package_tie> ended = packages_.remove_all();
        note_others();
        return ended;
    }
    /// The host views the memory from now on. Throws std::bad_alloc.
    void view(const order::footprint& where, order::access_mode mode) {
        views_.enter(where, mode);
        note_others();
    }
    /// As host_views::begin_copy.
    void begin_copy(const order::footprint& where, order::access_mode mode) noexcept { views_.begin_copy(where, mode); }
    /// Ends a view, as host_views::leave. If it was copying, the caller must call host_copies::ended() next.
    [[nodiscard]] bool end_view(const order::footprint& where, order::access_mode mode, bool copies) noexcept {
        const bool was_copying = views_.leave(where, mode, copies);
        note_others();
        return was_copying;
    }
    /// @}

private:
    void note_others() noexcept { has_others_ = packages_.any() || !views_.none(); }

    std::uint64_t size_;
    package_ties packages_;
    host_views views_;
    const char* token_name_ = nullptr;
};

}  // namespace weir::runtime
