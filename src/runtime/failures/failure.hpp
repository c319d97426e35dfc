#pragma once

#include <exception>
#include <memory>

#include "frontier/point.hpp"
#include "weir/detail/site.hpp"
#include "weir/error.hpp"

namespace weir::runtime {

struct failure;
/// Releasing one runs no code of the program's, so it may be released under any lock.
using failure_ptr = std::shared_ptr<const failure>;

/// An operation that threw, or that did not run because it would have used what a failed operation was to write (rule K4).
struct failure {
    frontiers::point at;
    site from;
    std::exception_ptr why;  ///< null if it did not run
    failure_ptr origin;      ///< the operation that threw; null if this is the one

    /// The operation that threw.
    [[nodiscard]] const failure& root() const noexcept { return origin ? *origin : *this; }

    /// The exception for this failure: with the label and line of the operation that threw, and the story in the message. Calls
    /// `what` of the program's exception: must not be called under a lock. Throws std::bad_alloc.
    [[nodiscard]] operation_error error() const;

    /// For an operation that threw. If no memory is left, uses memory that was reserved for that.
    [[nodiscard]] static failure_ptr make(frontiers::point at, const site& from, std::exception_ptr why) noexcept;
    /// For an operation that did not run because of `cause`. If no memory is left, returns `cause` in its place.
    [[nodiscard]] static failure_ptr make_dependent(frontiers::point at, const site& from,
                                                    const failure_ptr& cause) noexcept;

    /// Destroys failures that nothing refers to any more, and with them exceptions of the program's. Must be called under no lock.
    static void dispose() noexcept;

    /// Reserves memory for failures that happen when no memory is left. Idempotent; called before anything can fail.
    static void arm();

    failure* next = nullptr;  ///< in the list of failures to destroy
};

}  // namespace weir::runtime
