#pragma once

#include "runtime/resource.hpp"
#include "weir/detail/footprint.hpp"
#include "weir/source_location.hpp"

namespace weir::memory {

/// Whether no operation that conflicts with an access of the host's is pending. Never blocks.
[[nodiscard]] bool nothing_pending(runtime::resource& of, const order::footprint& where, order::access_mode mode);

/// Blocks until exactly those pending accesses are over that conflict with one of the host's (rule O6); where the program
/// orders this resource itself (rule O5), those of the memory's former owner alone. Tells the observers of the access.
/// Throws operation_error if the host is to read what a failed operation should have written.
///
/// The caller has entered the access in `of.views` before, so that what others enqueue meanwhile is over when they go on. If it
/// `copies`, what others enqueue from the return on begins once the access has ended.
void wait_for_conflicts(runtime::resource& of, const order::footprint& where, order::access_mode mode,
                        const source_location& from, bool copies);

}  // namespace weir::memory
