#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "frontier/point.hpp"
#include "frontier/small_vector.hpp"
#include "order/mark.hpp"

namespace weir::order {

/// Why an operation must come after a point.
enum class reason : std::uint8_t {
    read_after_write,
    write_after_read,
    write_after_write,
    reuse,       ///< the memory's former owner may still use it (rule L1)
    dependency,  ///< `after=`, or a wait that the program asked for
    entry,       ///< work of a foreign package on an operand that is shared with it (rule X6)
    exit,        ///< handing an operand back to the foreign package (rule X6)
};

/// Why a wait that an operation needs need not be issued.
enum class witness_kind : std::uint8_t {
    same_stream,  ///< the stream runs its operations in order
    known,        ///< the stream is ordered after the point already
    other_wait,   ///< another wait of the same operation implies it
    complete,     ///< the point is complete
};

/// A device-side wait to issue: the operation must not start before `target` is complete.
struct wait {
    mark_view target;
    reason why = reason::dependency;
};

/// A wait that is needed and was not issued, with the evidence that it is implied.
struct elision {
    point target;
    reason why = reason::dependency;
    witness_kind kind = witness_kind::same_stream;
    point witness;  ///< for `other_wait` the wait that implies it; for `known` and `same_stream` the stream's own tail
};

/// Collects what one operation must come after and reduces it to the waits that are missing (rules O1, O2).
///
/// Use: `need` for each point, then `resolve`, then read `waits`. The waits are an antichain: none implies another, and what the stream
/// is ordered after implies none. With exact footprints and `nothing_completes`, the waits of all operations together are the transitive
/// reduction of the program's order (rule O10); the brute-force tests compare this with all linear extensions.
///
/// Refers to the clocks of the marks that are passed in: histories, events and the stream itself must keep them until `clock_after` has
/// been called.
class plan {
public:
    /// For an operation of `self`, whose stream is ordered after `known` and whose last reserved epoch is `tail`.
    /// With `keep_evidence`, elisions are kept too.
    plan(timeline_id self, epoch tail, const clock& known, const watermarks& completed, bool keep_evidence)
        : self_(self), tail_(tail), known_(&known), completed_(&completed), keep_evidence_(keep_evidence) {}

    /// The timeline of the operation.
    [[nodiscard]] timeline_id self() const noexcept { return self_; }

    /// Adds the requirement that the operation comes after `target`. May throw std::bad_alloc.
    void need(const mark_view& target, reason why);
    /// Whether `need` has any effect for `target`: not if the target is on the operation's own stream, unless evidence is kept.
    [[nodiscard]] bool concerns(point target) const noexcept { return target.timeline != self_ || keep_evidence_; }
    /// The same for a target of which `concerns` is true: inline, for the loop over an operation's accesses. May throw std::bad_alloc.
    void need_concerned(const mark_view& target, reason why);

    /// Drops the waits that others imply. Call once, after the last `need`. May throw std::bad_alloc.
    void resolve() {
        if (waits_.size() > few) {
            reduce_many();
        } else if (waits_.size() > 1) {
            reduce();
        }
    }

    [[nodiscard]] std::span<const wait> waits() const noexcept { return waits_; }
    [[nodiscard]] std::span<const elision> elisions() const noexcept { return elisions_; }
    /// How many waits for other streams were needed and are not issued. Evidence need not be kept.
    [[nodiscard]] std::uint64_t elided() const noexcept { return elided_; }

    /// What the stream is ordered after once it has issued the waits; its present clock if there are none. Call once. May throw
    /// std::bad_alloc.
    [[nodiscard]] clock clock_after();

private:
    /// Up to so many waits are compared with each other directly.
    static constexpr std::size_t few = 16;

    void keep_after(wait& kept, const mark_view& target, reason why);
    [[nodiscard]] bool is_own_past_implied() const noexcept;
    void begin_with(const frontier_base* first);
    void reduce();
    void reduce_many();
    void elide(point target, reason why, witness_kind kind, point witness);
    void note(point target, reason why, witness_kind kind, point witness);

    timeline_id self_;
    epoch tail_;
    const clock* known_;
    const watermarks* completed_;
    bool keep_evidence_;
    std::uint64_t elided_ = 0;
    detail::small_vector<wait, 8> waits_;
    std::optional<frontier> merged_;  ///< if there are two to `few` waits: what all of them know
    std::vector<elision> elisions_;
};

inline void plan::need_concerned(const mark_view& target, reason why) {
    const point at = target.at;
    if (at.at == 0) {
        return;  // "before everything"
    }
    wait* same = nullptr;
    if (waits_.size() <= few) {
        for (wait& other : waits_) {
            same = other.target.at.timeline == at.timeline ? &other : same;
        }
        if (same != nullptr && same->target.at.at >= at.at && !keep_evidence_) {
            return;  // implied by a wait for the same timeline
        }
    }
    if (at.timeline == self_) {
        elide(at, why, witness_kind::same_stream, {self_, tail_});
    } else if (*known_ && (*known_)->covers(at)) {
        elide(at, why, witness_kind::known, {self_, tail_});
    } else if (completed_->is_complete(at)) {
        elide(at, why, witness_kind::complete, at);
    } else if (same != nullptr) {
        keep_after(*same, target, why);
    } else {
        waits_.push_back({target, why});
    }
}

inline void plan::elide(point target, reason why, witness_kind kind, point witness) {
    elided_ += kind == witness_kind::same_stream ? 0 : 1;
    if (keep_evidence_) [[unlikely]] {
        note(target, why, kind, witness);
    }
}

}  // namespace weir::order
