#pragma once

#include <optional>

#include "order/sequencer.hpp"

namespace weir::order {

/// A stream of a package that shares memory with Weir, for the length of one operation on that memory: a live import
/// (rule X6) or a live export (rule X7). Packages put work into their streams that Weir never sees, so each operation
/// brackets itself:
///
///     package's stream   ..work..  [entry]              [waits for the exit]  ..work..
///                                     \                 /
///     operation's stream               `-> operation --'
///
/// Made anew for each operation, one for each distinct stream among the operands' packages, since a package may change
/// its current stream at any time. Not synchronised: the package's sequencer is guarded by its stream's lock.
class foreign_peer {
public:
    explicit foreign_peer(sequencer& stream) noexcept : stream_(&stream) {}

    /// Makes the operation that `into` plans come after everything the package has enqueued so far. The point is fresh
    /// at each call, since whatever is known about an earlier one says nothing about work enqueued since (rule O2).
    ///
    /// Gives the point, of which an event must be recorded at once, before the package enqueues more; nothing, at no
    /// cost, if the operation runs on the package's own stream. May throw std::bad_alloc; the epoch that is then reserved
    /// in vain stands for no work and does no harm.
    std::optional<mark> enter(plan& into) {
        if (into.self() == stream_->timeline()) {
            return std::nullopt;
        }
        const mark fresh = stream_->enter_foreign();
        into.need(fresh, reason::entry);
        return fresh;
    }

    /// The waits that make everything the package enqueues from now on come after the operation at `done`: none, or the
    /// one for `done`. Issue them on the package's stream and commit them there with `sequencer::reserve(clock)`.
    [[nodiscard]] plan exit(const mark& done, const watermarks& completed, bool keep_evidence = false) const {
        plan waits = stream_->next(completed, keep_evidence);
        waits.need(done, reason::exit);
        waits.resolve();
        return waits;
    }

private:
    sequencer* stream_;
};

}  // namespace weir::order
