#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "backend/fetch.hpp"
#include "backend/ring.hpp"
#include "frontier/point.hpp"
#include "order/plan.hpp"
#include "runtime/life.hpp"
#include "runtime/resource.hpp"
#include "weir/detail/intrusive.hpp"
#include "weir/detail/submission.hpp"

namespace weir::runtime {

/// One access of an operation, as it is remembered while the operation is pending.
struct pending_access {
    const life* of = nullptr;
    std::uint64_t resource = 0;  ///< its number when the access was declared
    order::footprint where;
    order::access_mode mode = order::access_mode::read;
    bool overwrites = false;

    [[nodiscard]] bool writes() const noexcept { return mode == order::access_mode::write; }
};

enum class pending_kind : std::uint8_t {
    operation,
    host_task,
    wait,    ///< the program made the stream wait
    gate,    ///< a gate of the tests' holds the stream
    moment,  ///< a timed event
};

/// What a stream has been given and may not have done yet: what each operation touches and what it waits for. Serves
/// those who must know what depends on what after the fact: who looks for the reason of a failure, or of a standstill.
///
/// Not synchronised: the stream's lock guards it. In the steady state nothing is allocated: operations that are over are
/// dropped where room is needed.
class pending_operations {
    /// A cache line.
    struct alignas(64) operation {
        frontiers::epoch at = 0;
        site from;
        std::uint64_t first = 0;  ///< of its cells
        std::uint32_t accesses = 0;
        std::uint32_t waits = 0;
        std::uint32_t dependencies = 0;
        pending_kind kind = pending_kind::operation;
    };
    /// One access and one point of an operation, as far as it has so many: first the waits, then what the program has it depend on.
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
        /// The device-side waits before it.
        [[nodiscard]] std::size_t waits() const noexcept { return what().waits; }
        [[nodiscard]] frontiers::point wait(std::size_t i) const noexcept {
            return in_->cells_[what().first + i].point;
        }
        /// What the program says it depends on (`after`).
        [[nodiscard]] std::size_t dependencies() const noexcept { return what().dependencies; }
        [[nodiscard]] frontiers::point dependency(std::size_t i) const noexcept { return wait(what().waits + i); }

    private:
        friend class pending_operations;
        entry(const pending_operations& in, std::uint64_t number) noexcept : in_(&in), number_(number) {}
        [[nodiscard]] const operation& what() const noexcept { return in_->operations_[number_]; }

        const pending_operations* in_;
        std::uint64_t number_;
    };

    /// Makes room for one operation, so that the next `add` cannot fail. `completed` tells how far the stream is; it is
    /// asked only if there is no room. Throws std::bad_alloc.
    template <class Completed>
    void reserve(std::size_t accesses, std::size_t points, Completed&& completed) {
        const std::size_t cells = std::max(accesses, points);
        if (!operations_.has_room_for(1) || !cells_.has_room_for(cells)) [[unlikely]] {
            make_room(cells, completed());
        }
    }

    /// To be said some time before an `add`: the places that it writes first are fetched meanwhile.
    void fetch() const noexcept {
        if (operations_.capacity() != 0 && cells_.capacity() != 0) [[likely]] {
            backend::fetch_for_writing(&operations_[operations_.end()]);
            backend::fetch_for_writing(&cells_[cells_.end()]);
        }
    }

    /// Adds an epoch, later than all before.
    void add(frontiers::epoch at, const submission& what, std::span<const order::wait> waits,
             std::span<const completion> after) noexcept;
    /// The same for one that touches nothing and waits for `target`, or for nothing if that is null.
    void add(frontiers::epoch at, const site& from, pending_kind kind, const frontiers::point* target) noexcept;

    /// The entry of the epoch, if there is one. Entries of what is over may still be there or not.
    [[nodiscard]] std::optional<entry> find(frontiers::epoch at) const noexcept;

    /// Calls `visit(entry)` for each that is later than `completed`, until it answers false.
    template <class Visit>
    void each(frontiers::epoch completed, Visit&& visit) const {
        for (std::uint64_t i = position_of(completed + 1); i != operations_.end(); ++i) {
            if (!visit(entry(*this, i))) {
                return;
            }
        }
    }

    /// The number of entries, of what is over included.
    [[nodiscard]] std::size_t size() const noexcept { return operations_.size(); }

private:
    /// The number of the first entry that is not before `at`.
    [[nodiscard]] std::uint64_t position_of(frontiers::epoch at) const noexcept;
    [[gnu::cold]] void make_room(std::size_t cells, frontiers::epoch completed);

    backend::ring<operation> operations_;
    backend::ring<cell> cells_;
};

[[gnu::always_inline]] inline void pending_operations::add(frontiers::epoch at, const submission& what,
                                                           std::span<const order::wait> waits,
                                                           std::span<const completion> after) noexcept {
    // Fields one by one: what lies there is of an operation that is over, and most of it needs no destruction.
    operation& one = operations_.push();
    one.at = at;
    one.from = what.from;
    one.first = cells_.end();
    one.waits = static_cast<std::uint32_t>(waits.size());
    one.dependencies = static_cast<std::uint32_t>(after.size());
    one.kind = what.kind == work_kind::host_task ? pending_kind::host_task : pending_kind::operation;
    std::uint64_t next = one.first;
    for (const access_request& access : what.accesses) {
        if (access.target == nullptr) [[unlikely]] {
            continue;
        }
        pending_access& noted = cells_[next++].access;
        noted.of = &access.target->lifetime();
        noted.resource = access.target->id();
        noted.where.begin = access.where.begin;
        noted.where.end = access.where.end;
        if (noted.where.shape || access.where.shape) [[unlikely]] {
            order::set_shape(noted.where, access.where);
        }
        noted.mode = access.mode;
        noted.overwrites = access.overwrites;
    }
    one.accesses = static_cast<std::uint32_t>(next - one.first);
    std::uint64_t point = one.first;
    for (const order::wait& issued : waits) {
        cells_[point++].point = issued.target.at;
    }
    for (const completion& dependency : after) {
        cells_[point++].point = {dependency.timeline(), dependency.epoch()};
    }
    cells_.push_until(std::max(next, point));
}

}  // namespace weir::runtime
