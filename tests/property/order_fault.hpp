// Faults that can be planted in the order driver.
#pragma once

#include <cstddef>
#include <cstdint>

namespace order_test {

/// A fault in the engine or in how it is driven.
enum class fault : std::uint8_t {
    none,
    smaller_clock,     ///< merging two clocks keeps the smaller epoch
    clock_runs_ahead,  ///< after a wait the stream counts as ordered after everything in the other stream
    clocks_ignored,    ///< a waiting stream does not learn what its target was itself ordered after
    epochs_ignored,    ///< a stream ordered after any epoch of a timeline counts as ordered after all
    no_read_after_write,
    no_write_after_read,
    no_write_after_write,
    no_reuse,
    no_dependency,
    unordered_dropped,     ///< a covering write drops earlier accesses that it is not ordered after
    former_owner_dropped,  ///< a covering write drops the former owner's accesses
    death_forgotten,       ///< memory goes to its new owner without its death frontier
    late_event,            ///< a wait takes the tail of the event's stream at the wait, not at the record
    first_event,           ///< recording again does not overwrite
    wait_without_epoch,    ///< a wait moves a stream's clock and not its tail
    outermost_mode,        ///< of array, stream, scope and process the outermost wins
    host_does_not_wait,
    watermark_ahead,  ///< work counts as complete before it is
    stale_entry,      ///< an entry takes the point of the entry before
    no_entry,
    no_exit,
    last,
};

inline const char* name(fault planted) {
    constexpr const char* names[static_cast<std::size_t>(fault::last)] = {
        "none",
        "smaller_clock",
        "clock_runs_ahead",
        "clocks_ignored",
        "epochs_ignored",
        "no_read_after_write",
        "no_write_after_read",
        "no_write_after_write",
        "no_reuse",
        "no_dependency",
        "unordered_dropped",
        "former_owner_dropped",
        "death_forgotten",
        "late_event",
        "first_event",
        "wait_without_epoch",
        "outermost_mode",
        "host_does_not_wait",
        "watermark_ahead",
        "stale_entry",
        "no_entry",
        "no_exit",
    };
    return names[static_cast<std::size_t>(planted)];
}

}  // namespace order_test
