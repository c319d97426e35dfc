#pragma once

#include "weir/completion.hpp"
#include "weir/detail/submission.hpp"

namespace weir::runtime {

class stream_state;

/// What `submit` does, for any operation: also one that somebody is told of, that packages share in, whose memory the host is
/// looking at, that others than Weir order, or that must come after more than a short plan can tell.
completion submit_at_length(stream_state& stream, const submission& what);

}  // namespace weir::runtime
