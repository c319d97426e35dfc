#pragma once

#include <span>

#include "array/cuda/launch.hpp"
#include "array/cuda/source.hpp"
#include "array/walk.hpp"
#include "weir/completion.hpp"
#include "weir/detail/site.hpp"
#include "weir/dtype.hpp"
#include "weir/launch.hpp"

namespace weir::array_kernels {

/// Enqueues launches with exactly these accesses.
completion enqueue(const on& where, std::span<const runtime::access_request> accesses, launches what,
                   runtime::work_kind kind = runtime::work_kind::device);

/// Enqueues `first`, and then the kernel that computes `what` of inputs into `out`, operand 0 of the plan `all`. The function
/// gives results of the type `result`. Throws as launches::add and runtime::submit do.
///
/// A kernel cannot fail because of what it finds. Where integers are raised to a power, it notes that an exponent is
/// negative; a second operation, which the host runs behind it, looks at that and fails. Its completion is returned.
completion enqueue(const on& where, std::span<const runtime::access_request> accesses, launches first, function what,
                   const array& out, dtype result, std::span<const argument> inputs, const walk::plan& all);

}  // namespace weir::array_kernels
