#pragma once

#include "order/mark.hpp"
#include "order/sequencer.hpp"

namespace weir::order {

/// A package that shares memory with Weir by a live import (rule X6) or a live export (rule X7) puts work into its streams
/// that Weir never sees. So each operation on that memory brackets itself:
///
///     package's stream   ..work..  [entry]              [waits for the exit]  ..work..
///                                     \                 /
///     operation's stream               `-> operation --'
///
/// The entry is a fresh point of the package's stream (`sequencer::enter_foreign`). Its event is recorded at once, before the package
/// enqueues more. The operation needs the entry for the reason `entry`. Both ends are made anew for each operation, one for each
/// distinct stream among the operands' packages, because a package may change its current stream at any time. An operation on the
/// package's own stream needs neither.
///
/// Returns the exit: the waits after which everything that the package enqueues from now on into its stream `package` comes after the
/// operation at `done`; there is no wait, or the one for `done`. Issue them on that stream and commit them there with
/// `sequencer::reserve(clock)`.
[[nodiscard]] inline plan hand_back(const sequencer& package, const mark& done, const watermarks& completed) {
    plan waits = package.next(completed);
    waits.need(done, reason::exit);
    waits.resolve();
    return waits;
}

}  // namespace weir::order
