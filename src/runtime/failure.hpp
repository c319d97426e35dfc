#pragma once

#include <exception>
#include <memory>

#include "frontier/point.hpp"
#include "weir/detail/site.hpp"
#include "weir/error.hpp"

namespace weir::runtime {

struct failure;
/// Letting go of one runs no code of the program's, so that it may be done under any lock.
using failure_ptr = std::shared_ptr<const failure>;

/// An operation that threw, or that did not run since it would have used what one that threw was to write (rule K4).
struct failure {
    frontiers::point at;
    site from;
    std::exception_ptr why;  ///< null if it did not run
    failure_ptr origin;      ///< the operation that threw; null if this is the one

    /// The operation that threw.
    [[nodiscard]] const failure& root() const noexcept { return origin ? *origin : *this; }

    /// With the label and line of the operation that threw, and the story in the message. Runs the `what` of the program's
    /// exception: not to be called under a lock. Throws std::bad_alloc.
    [[nodiscard]] operation_error error() const;

    /// One that threw. Where no memory is left, from what was kept for that.
    [[nodiscard]] static failure_ptr make(frontiers::point at, const site& from, std::exception_ptr why) noexcept;
    /// One that did not run because of `cause`. Where no memory is left, `cause` stands for it.
    [[nodiscard]] static failure_ptr make_dependent(frontiers::point at, const site& from,
                                                    const failure_ptr& cause) noexcept;

    /// Destroys what nobody needs any more, and with it exceptions of the program's. Under no lock.
    static void dispose() noexcept;

    /// Keeps room for failures where no memory is left. Idempotent; called before anything can fail.
    static void arm();

    failure* next = nullptr;  ///< in the list of what is to be disposed of
};

}  // namespace weir::runtime
