#pragma once

#include <span>

#include "array/cuda/launch.hpp"
#include "array/cuda/source.hpp"
#include "array/walk.hpp"
#include "weir/array.hpp"
#include "weir/completion.hpp"
#include "weir/detail/site.hpp"
#include "weir/detail/submission.hpp"
#include "weir/dtype.hpp"
#include "weir/on.hpp"

namespace weir::array_kernels {

/// Enqueues launches with exactly these accesses.
completion enqueue(const on& where, std::span<const runtime::access_request> accesses, launches what,
                   runtime::work_kind kind = runtime::work_kind::device);

/// Enqueues `first`, and then the kernel that computes `what` of inputs into `out`, operand 0 of the plan `all`. The function
/// returns results of the type `result`. Throws as launches::add and runtime::submit do.
///
/// A kernel cannot fail because of its data. Where integers are raised to a power, the kernel notes a negative exponent;
/// a second operation, which the host runs behind it, reads the note and fails. Returns the completion of that operation.
completion enqueue(const on& where, std::span<const runtime::access_request> accesses, launches first, function what,
                   const array& out, dtype result, std::span<const argument> inputs, const walk::plan& all);

}  // namespace weir::array_kernels
