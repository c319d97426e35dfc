#pragma once

#include <exception>

#include "frontier/frontier.hpp"
#include "weir/detail/site.hpp"

namespace weir::runtime {

/// Operations that failed while they ran, kept until somebody is told (rule K4).
class failures {
public:
    /// Notes that the operation at `at` threw `why`. Called by the thread that ran it.
    static void note(frontiers::point at, const site& from, std::exception_ptr why) noexcept;

    /// Throws operation_error if the operation at exactly `at` failed, each time it is asked.
    static void throw_if_failed(frontiers::point at);

    /// Throws operation_error for the first operation at or before `upto` that failed and that nobody was told of by this
    /// function; from then on somebody was.
    static void throw_first_unreported(frontiers::point upto);

    /// The timeline's stream is gone: what failed on it is reported to nobody any more, but for `throw_if_failed`.
    static void forget_unreported(frontiers::timeline_id timeline) noexcept;
};

}  // namespace weir::runtime
