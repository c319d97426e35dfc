#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "backend/ring.hpp"
#include "frontier/point.hpp"
#include "order/plan.hpp"
#include "runtime/life.hpp"
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
    /// A cache line. Its accesses and points go up to where those of the next one begin.
    struct operation {
        frontiers::epoch at = 0;
        site from;
        std::uint64_t first_access = 0;
        std::uint64_t first_point = 0;  ///< the waits, then what the program has it depend on
        std::uint32_t waits = 0;
        pending_kind kind = pending_kind::operation;
    };

public:
    /// One epoch of the stream. Valid until the next change.
    class entry {
    public:
        [[nodiscard]] frontiers::epoch at() const noexcept { return what().at; }
        [[nodiscard]] const site& from() const noexcept { return what().from; }
        [[nodiscard]] pending_kind kind() const noexcept { return what().kind; }

        [[nodiscard]] std::size_t accesses() const noexcept { return end_of_accesses() - what().first_access; }
        [[nodiscard]] const pending_access& access(std::size_t i) const noexcept {
            return in_->accesses_[what().first_access + i];
        }
        /// The device-side waits before it.
        [[nodiscard]] std::size_t waits() const noexcept { return what().waits; }
        [[nodiscard]] frontiers::point wait(std::size_t i) const noexcept {
            return in_->points_[what().first_point + i];
        }
        /// What the program says it depends on (`after`).
        [[nodiscard]] std::size_t dependencies() const noexcept {
            return end_of_points() - what().first_point - what().waits;
        }
        [[nodiscard]] frontiers::point dependency(std::size_t i) const noexcept {
            return in_->points_[what().first_point + what().waits + i];
        }

    private:
        friend class pending_operations;
        entry(const pending_operations& in, std::uint64_t number) noexcept : in_(&in), number_(number) {}
        [[nodiscard]] const operation& what() const noexcept { return in_->operations_[number_]; }
        [[nodiscard]] bool is_newest() const noexcept { return number_ + 1 == in_->operations_.end(); }
        [[nodiscard]] std::uint64_t end_of_accesses() const noexcept {
            return is_newest() ? in_->accesses_.end() : in_->operations_[number_ + 1].first_access;
        }
        [[nodiscard]] std::uint64_t end_of_points() const noexcept {
            return is_newest() ? in_->points_.end() : in_->operations_[number_ + 1].first_point;
        }

        const pending_operations* in_;
        std::uint64_t number_;
    };

    /// Makes room for one operation, so that the next `add` cannot fail. `completed` tells how far the stream is; it is
    /// asked only if there is no room. Throws std::bad_alloc.
    template <class Completed>
    void reserve(std::size_t accesses, std::size_t points, Completed&& completed) {
        if (!operations_.has_room_for(1) || !accesses_.has_room_for(accesses) || !points_.has_room_for(points)) {
            make_room(accesses, points, completed());
        }
    }

    /// To be said some time before an `add`: the places that it writes are fetched meanwhile. What lies there is long over.
    void fetch(std::size_t accesses) const noexcept {
        if (operations_.capacity() != 0) {
            operations_.fetch(1);
        }
        if (accesses != 0 && accesses_.capacity() != 0) {
            accesses_.fetch(std::min(accesses, most_fetched));
        }
    }

    /// Adds an epoch, later than all before.
    void add(frontiers::epoch at, const submission& what, std::span<const order::wait> waits) noexcept;
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
    void make_room(std::size_t accesses, std::size_t points, frontiers::epoch completed);

    static constexpr std::size_t most_fetched = 8;

    backend::ring<operation> operations_;
    backend::ring<pending_access> accesses_;
    backend::ring<frontiers::point> points_;
};

}  // namespace weir::runtime
