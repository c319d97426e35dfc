#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "backend/ring.hpp"
#include "frontier/point.hpp"
#include "order/plan.hpp"
#include "runtime/lifetime/liveness_token.hpp"
#include "runtime/lifetime/resource.hpp"
#include "weir/access.hpp"
#include "weir/detail/intrusive.hpp"
#include "weir/detail/passkey.hpp"
#include "weir/detail/rare.hpp"
#include "weir/detail/submission.hpp"

namespace weir::runtime {

/// One access of an operation, recorded while the operation is pending.
struct pending_access {
    const liveness_token* of = nullptr;
    std::uint64_t resource = 0;  ///< the resource's number when the access was declared
    order::footprint where;
    order::access_mode mode = order::access_mode::read;
    bool overwrites = false;

    [[nodiscard]] bool writes() const noexcept { return mode == order::access_mode::write; }
    void assign(const access_request& access) noexcept;
};

enum class pending_kind : std::uint8_t {
    operation,
    host_task,
    wait,    ///< the program made the stream wait
    gate,    ///< a gate (weir::testing) holds the stream
    moment,  ///< a timed event
};

/// The operations of a stream that may not be complete: what each of them accesses and what it waits for. Used to find out
/// afterwards what depends on what: the reason of a failure or of a standstill.
///
/// Not synchronized: the stream's lock guards it. In the steady state nothing is allocated: complete operations are dropped when
/// room is needed.
class pending_operations {
    /// One cache line.
    struct alignas(64) operation {
        frontiers::epoch at = 0;
        site from;
        std::uint64_t first = 0;  ///< position of its first cell
        std::uint32_t accesses = 0;
        std::uint32_t waits = 0;
        std::uint32_t dependencies = 0;
        pending_kind kind = pending_kind::operation;
    };
    /// One access and one point of an operation. The points are first the waits, then the dependencies that the program declared.
    struct alignas(64) cell {
        pending_access access;
        frontiers::point point;
    };

public:
    /// One epoch of the stream. Valid until the next change.
    class entry {
    public:
        [[nodiscard]] frontiers::epoch at() const noexcept { return what().at; }
        [[nodiscard]] const site& from() const noexcept { return what().from; }
        [[nodiscard]] pending_kind kind() const noexcept { return what().kind; }

        [[nodiscard]] std::size_t accesses() const noexcept { return what().accesses; }
        [[nodiscard]] const pending_access& access(std::size_t i) const noexcept {
            return in_->cells_[what().first + i].access;
        }
        /// The device-side waits before the operation.
        [[nodiscard]] std::size_t waits() const noexcept { return what().waits; }
        [[nodiscard]] frontiers::point wait(std::size_t i) const noexcept {
            return in_->cells_[what().first + i].point;
        }
        /// The dependencies that the program declared (`after`).
        [[nodiscard]] std::size_t dependencies() const noexcept { return what().dependencies; }
        [[nodiscard]] frontiers::point dependency(std::size_t i) const noexcept { return wait(what().waits + i); }

    private:
        friend class pending_operations;
        entry(const pending_operations& in, std::uint64_t number) noexcept : in_(&in), number_(number) {}
        [[nodiscard]] const operation& what() const noexcept { return in_->operations_[number_]; }

        const pending_operations* in_;
        std::uint64_t number_;
    };

    /// Reserves room for one operation, so that the next `add` cannot fail. `completed` returns how far the stream is; it is called
    /// only if there is no room. Throws std::bad_alloc.
    template <class Completed>
    void reserve(std::size_t accesses, std::size_t points, Completed&& completed) {
        const std::size_t cells = std::max(accesses, points);
        if (!operations_.has_room_for(1) || !cells_.has_room_for(cells)) [[unlikely]] {
            detail::cold_path();
            make_room(cells, completed());
        }
    }

    /// Prefetches the places where the next operation, with `accesses` accesses, will be recorded; some may lie beyond the end. Under
    /// the stream's lock, like everything else.
    [[gnu::always_inline]] void fetch_ahead(std::size_t accesses) const noexcept {
        __builtin_prefetch(operations_.next_place(), 1);
        const auto first = reinterpret_cast<std::uintptr_t>(cells_.next_place());
        for (std::size_t i = 0; i < accesses; ++i) {
            __builtin_prefetch(reinterpret_cast<const void*>(first + i * sizeof(cell)), 1);
        }
    }

    /// An operation that is being added: `add` for each access to memory, then `end`.
    class addition {
    public:
        void add(const access_request& access) noexcept;
        void end(std::span<const order::wait> waits, std::span<const completion> after) noexcept;

    private:
        friend class pending_operations;
        addition(pending_operations& in, operation& what) noexcept : in_(&in), what_(&what), next_(what.first) {}

        pending_operations* in_;
        operation* what_;
        std::uint64_t next_;  ///< position of the next cell
    };
    /// Begins to add an operation at `at`, later than all before.
    [[nodiscard, gnu::always_inline]] addition begin(frontiers::epoch at, const detail::operation& what) noexcept;
    /// `begin`, `add` and `end` for an operation with one access and no declared dependencies.
    [[gnu::always_inline]] void add_one(frontiers::epoch at, const detail::operation& what,
                                        const access_request& access, std::span<const order::wait> waits) noexcept;
    /// Adds an epoch that accesses nothing and waits for `target`; for nothing if that is null.
    void add(frontiers::epoch at, const site& from, pending_kind kind, const frontiers::point* target) noexcept;

    /// The entry of the epoch, if there is one. The entry of a complete epoch may still be there or not.
    [[nodiscard]] std::optional<entry> find(frontiers::epoch at) const noexcept;

    /// Calls `visit(entry)` for each entry later than `completed`, until it returns false.
    template <class Visit>
    void each(frontiers::epoch completed, Visit&& visit) const {
        for (std::uint64_t i = position_of(completed + 1); i != operations_.end(); ++i) {
            if (!visit(entry(*this, i))) {
                return;
            }
        }
    }

    /// The number of entries, including complete ones.
    [[nodiscard]] std::size_t size() const noexcept { return operations_.size(); }

private:
    /// The position of the first entry that is not before `at`.
    [[nodiscard]] std::uint64_t position_of(frontiers::epoch at) const noexcept;
    [[nodiscard, gnu::always_inline]] operation& start(frontiers::epoch at, const detail::operation& what) noexcept;
    [[gnu::hot, gnu::noinline]] void add_with_waits(frontiers::epoch at, const detail::operation& what,
                                                    const access_request& access,
                                                    std::span<const order::wait> waits) noexcept;
    [[gnu::cold]] void make_room(std::size_t cells, frontiers::epoch completed);

    backend::ring<operation> operations_;
    backend::ring<cell> cells_;
};

inline pending_operations::operation& pending_operations::start(frontiers::epoch at,
                                                                const detail::operation& what) noexcept {
    // Field by field: the place holds a complete operation, and most of its fields need no destruction.
    operation& one = operations_.push();
    one.at = at;
    one.from = what.from;
    one.first = cells_.end();
    one.kind = what.kind == work_kind::host_task ? pending_kind::host_task : pending_kind::operation;
    return one;
}
inline pending_operations::addition pending_operations::begin(frontiers::epoch at,
                                                              const detail::operation& what) noexcept {
    return {*this, start(at, what)};
}

/// Field by field, for the same reason as in `start`.
[[gnu::always_inline]] inline void pending_access::assign(const access_request& access) noexcept {
    of = &access.target->lifetime();
    resource = access.target->id();
    where.begin = access.where.begin;
    where.end = access.where.end;
    if (where.shape || access.where.shape) [[unlikely]] {
        detail::cold_path();
        order::set_shape(where, access.where);
    }
    mode = access.mode;
    overwrites = access.overwrites;
}

[[gnu::always_inline]] inline void pending_operations::addition::add(const access_request& access) noexcept {
    in_->cells_[next_++].access.assign(access);
}

[[gnu::always_inline]] inline void pending_operations::addition::end(std::span<const order::wait> waits,
                                                                     std::span<const completion> after) noexcept {
    what_->accesses = static_cast<std::uint32_t>(next_ - what_->first);
    what_->waits = static_cast<std::uint32_t>(waits.size());
    what_->dependencies = static_cast<std::uint32_t>(after.size());
    std::uint64_t end = next_;
    if (!waits.empty() || !after.empty()) [[unlikely]] {
        std::uint64_t point = what_->first;
        for (const order::wait& issued : waits) {
            in_->cells_[point++].point = issued.target.at;
        }
        for (const completion& dependency : after) {
            in_->cells_[point++].point = {dependency.timeline(detail::key), dependency.epoch(detail::key)};
        }
        end = std::max(end, point);
    }
    in_->cells_.push_until(end);
}

inline void pending_operations::add_one(frontiers::epoch at, const detail::operation& what,
                                        const access_request& access, std::span<const order::wait> waits) noexcept {
    if (waits.size() > 1) [[unlikely]] {
        add_with_waits(at, what, access, waits);
        return;
    }
    operation& one = start(at, what);
    cell& its = cells_.push();
    one.accesses = 1;
    one.waits = static_cast<std::uint32_t>(waits.size());
    one.dependencies = 0;
    its.access.assign(access);
    if (!waits.empty()) [[likely]] {
        its.point = waits.front().target.at;
    }
}

}  // namespace weir::runtime
