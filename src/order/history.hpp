#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "order/mark.hpp"
#include "order/plan.hpp"
#include "order/short_plan.hpp"
#include "order/timeline_index.hpp"
#include "weir/detail/footprint.hpp"
#include "weir/detail/rare.hpp"

namespace weir::order {

/// The kind of code that made an access.
enum class accessor : std::uint8_t {
    weir,     ///< an operation
    package,  ///< a package that shares the memory, in work that Weir has not seen (rules X6, X7)
};

/// One access that later ones may have to be ordered after. One cache line.
struct alignas(64) past_access {
    footprint where;
    mark when;
    access_mode mode = access_mode::read;
    bool former_owner = false;  ///< an access to the memory before its present owner got it: the death frontier (L1)
    accessor by = accessor::weir;
};
static_assert(sizeof(past_access) == 64);

/// Whether an access comes after `past` even where the program orders its accesses itself (rule O5, `manual`): a new owner's write never
/// overlaps with a former owner's use of the memory (rule L1). A read has a meaning only behind a write of the new owner, which came
/// after the former owner's use, and the program orders the read behind that write.
[[nodiscard]] inline bool is_always_ordered(const past_access& past, access_mode mode) noexcept {
    return past.former_owner && mode == access_mode::write;
}

/// The pending accesses of one resource: for each range the last write and the reads since.
///
/// An access is dropped when a later access that is *ordered after it* covers it: a write covers reads and writes, a read covers reads
/// (if there are few reads, only those of its own timeline). A later access that is not ordered after it (rule O5, `manual`) leaves it
/// in place, so that a return to automatic ordering is safe at once. Accesses of a former owner are dropped only once they are complete:
/// the program may leave two accesses of its own unordered, but neither may then overlap with the former owner's use of the memory
/// (rule L1). Beyond `bound` accesses, a new one is merged conservatively with an earlier one of its kind and timeline (rule O3).
///
/// A read is compared with writes only. Among many reads, an index finds the one of the same timeline. So the cost of a read does not
/// depend on how many other streams read.
class history {
public:
    /// The number of accesses kept exactly. At most this many are kept, plus a write and a read for each timeline.
    static constexpr std::size_t bound = 64;

    /// Adds to `into` what an access to `where` must come after: everything that conflicts (`hazards`), or, for a write, only the accesses
    /// of a former owner of the memory (rule O5: reuse is never left to the program). May throw std::bad_alloc.
    void require(plan& into, const footprint& where, access_mode mode, bool hazards) const;

    /// Calls `visit(past_access, reason)` for each kept access that conflicts with one to `where`.
    template <class Visit>
    void conflicts(const footprint& where, access_mode mode, Visit&& visit) const {
        conflicts_among([](const past_access&) { return true; }, where, mode, visit);
    }

    /// Reserves room for `more` accesses, so that as many calls of `record` cannot fail. May throw std::bad_alloc.
    void reserve(std::size_t more) {
        if (accesses_.capacity() - accesses_.size() < more) [[unlikely]] {
            detail::cold_path();
            grow(more);
        }
    }

    /// Adds an access made at `when`, where `when.known` is what its operation is ordered after, waits included. Drops what it covers.
    /// `is_after_all`: the operation comes after everything that `require` finds with `hazards`, so the order need not be checked again.
    /// Call `reserve` before.
    void record(const footprint& where, access_mode mode, mark when, const watermarks& completed,
                accessor by = accessor::weir, bool is_after_all = false) noexcept {
        if (where.empty()) [[unlikely]] {
            return;
        }
        if (mode == access_mode::read && reads() < few_reads) {
            record_read(where, std::move(when), completed, by);
        } else {
            record_any(where, mode, std::move(when), completed, by, is_after_all);
        }
    }

    /// `require` with `hazards`, for a short plan. Returns false if the short plan does not support it. `is_covered`: whether a write to
    /// `where` that comes after all of it replaces everything that is kept.
    [[nodiscard, gnu::always_inline]] bool require(short_plan& into, const footprint& where, access_mode mode,
                                                   bool& is_covered) const noexcept {
        const past_access* past = accesses_.data();
        const past_access* const end = past + concerned_by(mode);
        bool covered = mode == access_mode::write && past != end;
        for (; past != end; ++past) {
            bool is_within = where.begin <= past->where.begin && past->where.end <= where.end;
            if (where.shape) [[unlikely]] {
                detail::cold_path();
                is_within = is_within && weir::order::covers(where, past->where);
            }
            covered = covered && is_within && !past->former_owner;
            if (past->when.at.timeline == into.self()) {
                continue;
            }
            if (!is_within) [[unlikely]] {
                detail::cold_path();
                if (!overlap(past->where, where)) {
                    continue;
                }
            }
            if (!into.need(past->when)) [[unlikely]] {
                detail::cold_path();
                return false;
            }
        }
        is_covered = covered;
        return true;
    }
    /// The same, followed by the plan's `resolve`, for an operation with this access only.
    template <class Watermarks>
    [[nodiscard, gnu::always_inline]] bool require_alone(short_plan& into, const footprint& where, access_mode mode,
                                                         bool& is_covered, const Watermarks& completed) const noexcept {
        const past_access* const past = accesses_.data();
        if (accesses_.size() == 1 && mode == access_mode::write && !where.shape && where.begin <= past->where.begin &&
            past->where.end <= where.end && !past->former_owner) [[likely]] {
            is_covered = true;
            return into.need_alone(past->when, completed);
        }
        return require(into, where, mode, is_covered) && into.resolve(completed);
    }
    /// `record` for a write that comes after everything that is kept and covers it, as `require` has found; something is kept. Has the
    /// same effect as `record`.
    void record_covering(const footprint& where, mark&& when) noexcept {
        if (accesses_.size() > 1) [[unlikely]] {
            drop_all_but_one();
        }
        writes_ = 1;
        reads_by_timeline_.invalidate();
        past_access& kept = accesses_.front();
        kept.mode = access_mode::write;
        replace(kept, where, std::move(when), accessor::weir);
    }

    /// Drops complete accesses.
    void prune(const watermarks& completed) noexcept;

    /// Turns all accesses into accesses of a former owner to the whole of `size` bytes, reduced to those that no other implies: the
    /// *death frontier* (rule L1). Drops complete accesses.
    void die(std::uint64_t size, const watermarks& completed) noexcept;

    /// Adds the death frontier of other memory, which becomes part of this resource's memory. May throw std::bad_alloc.
    void merge_death(const history& other, std::uint64_t size, const watermarks& completed);

    /// All accesses that are kept; writes come before reads.
    [[nodiscard]] std::span<const past_access> accesses() const noexcept { return accesses_; }
    [[nodiscard]] bool empty() const noexcept { return accesses_.empty(); }
    void clear() noexcept {
        accesses_.clear();
        writes_ = 0;
        reads_by_timeline_.invalidate();
    }

private:
    /// Up to so many reads are kept until a write, or a later read of the same timeline, covers them: comparing each new read with all of
    /// them would cost more than it saves.
    static constexpr std::size_t few_reads = 8;

    static reason why(const past_access& past, access_mode mode) noexcept;

    /// `conflicts` among the accesses for which `is_asked_for(past_access)`.
    template <class Ask, class Visit>
    void conflicts_among(Ask&& is_asked_for, const footprint& where, access_mode mode, Visit&& visit) const {
        const past_access* past = accesses_.data();
        const past_access* const end = past + concerned_by(mode);
        for (; past != end; ++past) {
            if (is_asked_for(*past) && overlap(past->where, where)) {
                visit(*past, why(*past, mode));
            }
        }
    }

    [[nodiscard]] std::size_t reads() const noexcept { return accesses_.size() - writes_; }
    /// The number of accesses, from the first, that an access of this mode may conflict with.
    [[nodiscard]] std::size_t concerned_by(access_mode mode) const noexcept {
        return mode == access_mode::read ? writes_ : accesses_.size();
    }
    [[gnu::cold]] void grow(std::size_t more);
    [[gnu::noinline]] void drop_all_but_one() noexcept {
        while (accesses_.size() > 1) {
            accesses_.pop_back();
        }
    }
    void record_read(const footprint& where, mark&& when, const watermarks& completed, accessor by) noexcept;
    void record_any(const footprint& where, access_mode mode, mark&& when, const watermarks& completed, accessor by,
                    bool is_after_all) noexcept;
    void replace(past_access& kept, const footprint& where, mark&& when, accessor by) noexcept;
    void insert(past_access&& added) noexcept;
    [[nodiscard]] bool merge(const past_access& added) noexcept;
    void add(past_access&& added, const watermarks& completed) noexcept;
    void add_to_many_reads(past_access&& added, const watermarks& completed) noexcept;
    void drop_implied() noexcept;

    template <class Drop>
    void drop_from(std::size_t first, Drop&& drop) noexcept;

    std::vector<past_access> accesses_;  ///< writes first
    std::size_t writes_ = 0;             ///< number of writes
    timeline_index reads_by_timeline_;   ///< used beyond `bound` reads
    std::size_t prune_at_ = bound;       ///< number of reads from which it pays to search for complete ones
};

inline void history::replace(past_access& kept, const footprint& where, mark&& when, accessor by) noexcept {
    kept.where.begin = where.begin;
    kept.where.end = where.end;
    if (kept.where.shape || where.shape) [[unlikely]] {
        detail::cold_path();
        set_shape(kept.where, where);
    }
    kept.former_owner = false;
    kept.by = by;
    // Field by field, as they were written just before: one wide load would have to wait until these stores have reached the cache.
    kept.when.at.timeline = when.at.timeline;
    kept.when.at.at = when.at.at;
    kept.when.known = std::move(when.known);
}

}  // namespace weir::order
