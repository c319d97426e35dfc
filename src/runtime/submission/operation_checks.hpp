#pragma once

#include "runtime/lifetime/resource.hpp"
#include "runtime/streams/stream_state.hpp"
#include "weir/detail/submission.hpp"

namespace weir::runtime {

/// Throws argument_error if the operation is host code and the stream's device runs none. An operation on the fast path of the
/// driver's stream is always code for the device, and needs no check.
void expect_runnable(const stream_state& stream, const detail::operation& what);

/// Throws argument_error if an operation that declares `memory`, which belongs to another device than the stream's, cannot reach it, and
/// state_error if that device stayed with the parent of a fork.
void expect_reachable(const stream_state& stream, const submission& what, const resource& memory);

}  // namespace weir::runtime
