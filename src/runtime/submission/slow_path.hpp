#pragma once

#include "weir/completion.hpp"
#include "weir/detail/submission.hpp"

namespace weir::runtime {

class stream_state;

/// The slow path of `submit`: supports every operation, including observers, explicit dependencies, operands that packages share or
/// that the host is reading, accesses that the program orders itself, and more dependencies than order::short_plan supports.
/// Issues the same waits as the fast path (tests/property/observed_waits_test.cpp).
completion submit_on_slow_path(stream_state& stream, const submission& what);

}  // namespace weir::runtime
