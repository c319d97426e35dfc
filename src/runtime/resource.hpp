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
#include "runtime/life.hpp"
#include "runtime/ordering.hpp"
#include "runtime/package_ties.hpp"
#include "weir/device.hpp"

namespace weir::runtime {

class device_state;

/// The host's live views of one resource. A conflicting operation is over before its call returns (rule X7); while the host copies
/// it does not even begin.
class host_views {
public:
    /// May throw std::bad_alloc; nothing is entered then.
    void enter(const order::footprint& where, order::access_mode mode) { views_.push_back({where, mode}); }
    /// Nothing that conflicts is pending: who entered a view with these arguments copies from now on, until it leaves.
    void begin_copy(const order::footprint& where, order::access_mode mode) noexcept {
        if (view* const found = find({where, mode})) {
            found->copies = true;
        }
    }
    /// Takes out one view that was entered with the same arguments. Whether it was copying.
    bool leave(const order::footprint& where, order::access_mode mode, bool copies) noexcept {
        // One that was to copy may have been called off before it began.
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

    /// The same of those alone that copy.
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

/// Anything whose accesses are tracked: memory, and what is used like memory (plans, workspaces, library handles: P3).
/// What each operation needs lies together: two cache lines.
class alignas(64) resource {
public:
    /// May throw std::bad_alloc.
    explicit resource(std::uint64_t size = 0) : life_(&life::take()), size_(size) { renew(size); }
    resource(const resource&) = delete;
    resource& operator=(const resource&) = delete;

    /// Guards `history`, and who uses it besides. First in the lock order; several are locked by address (rule O8).
    backend::hot_mutex mutex;

    /// Unique in the process. New for each owner of the same memory.
    [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
    /// Bytes; footprints lie in [0, size).
    [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
    /// From now on it belongs to somebody new. Nobody else may know it at this moment.
    void renew(std::uint64_t size) noexcept {
        id_ = next_id();
        size_ = size;
        life_->owner.store(id_, std::memory_order_relaxed);
    }
    /// Its last owner has gone: what becomes of its contents concerns only operations that are enqueued already. Its
    /// number stays until it is renewed.
    void retire() noexcept { life_->owner.store(0, std::memory_order_relaxed); }
    /// For those who remember an access.
    [[nodiscard]] const life& lifetime() const noexcept { return *life_; }

    /// The device whose memory it is, of all that share that memory the one that stands for them
    /// (device_state::memory_space). Null: it lies where every device can use it.
    [[nodiscard]] const device_state* memory_of() const noexcept { return memory_of_; }
    /// Said once, before anybody else knows it.
    void belong_to(const device_state* device) noexcept { memory_of_ = device; }

    [[nodiscard]] std::optional<ordering_mode> ordering() const noexcept { return mode_.get(); }
    [[nodiscard]] bool has_ordering() const noexcept { return mode_.is_set(); }
    void set_ordering(std::optional<ordering_mode> mode) noexcept { mode_.set(mode); }
    /// Whether only Weir knows it (detail::internal): then it is ordered in every mode.
    [[nodiscard]] bool is_internal() const noexcept { return mode_.is_internal(); }
    void set_internal() noexcept { mode_.set_internal(); }

    /// Has the processor fetch what an operation will need behind the first cache line.
    [[gnu::always_inline]] void fetch_ahead() const noexcept {
        constexpr std::ptrdiff_t cache_line = 64;
        __builtin_prefetch(reinterpret_cast<const char*>(this) + cache_line, 1);
    }

protected:
    ~resource() { life_->give_back(); }

private:
    static std::uint64_t next_id() noexcept;

    own_ordering mode_;
    bool has_others_ = false;
    life* life_;
    std::uint64_t id_ = 0;
    const device_state* memory_of_ = nullptr;

public:
    order::history history;

    /// @{
    /// Who uses it beside the operations of streams. Under `mutex`, but for `packages().any()`.
    [[nodiscard]] const package_ties& packages() const noexcept { return packages_; }
    [[nodiscard]] const host_views& views() const noexcept { return views_; }
    /// Whether there is anybody.
    [[nodiscard]] bool has_others() const noexcept { return has_others_; }
    /// A package shares it from now on. Throws std::bad_alloc.
    void tie(package_tie one) {
        packages_.add(std::move(one));
        note_others();
    }
    /// No longer: as package_ties::remove.
    [[nodiscard]] std::shared_ptr<package> untie(const package_tie& one) noexcept {
        std::shared_ptr<package> with = packages_.remove(one);
        note_others();
        return with;
    }
    /// The host looks at it from now on. Throws std::bad_alloc.
    void view(const order::footprint& where, order::access_mode mode) {
        views_.enter(where, mode);
        note_others();
    }
    /// As host_views::begin_copy.
    void begin_copy(const order::footprint& where, order::access_mode mode) noexcept { views_.begin_copy(where, mode); }
    /// No longer: as host_views::leave. Where it was copying, host_copies::ended() follows.
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
};

}  // namespace weir::runtime
