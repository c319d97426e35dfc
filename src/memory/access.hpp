#pragma once

#include "runtime/lifetime/resource.hpp"
#include "weir/detail/footprint.hpp"
#include "weir/source_location.hpp"

namespace weir::memory {

/// Whether no pending operation conflicts with such an access of the host's. Never blocks.
[[nodiscard]] bool nothing_pending(runtime::resource& of, const order::footprint& where, order::access_mode mode);

/// The same for the program, which may rely on the answer: observers see it if it is yes.
[[nodiscard]] bool is_ready_for(runtime::resource& of, const order::footprint& where, order::access_mode mode);

/// Blocks until exactly those pending accesses are complete that conflict with one of the host's (rule O6). If the program orders this
/// resource itself (rule O5), these are only the accesses of the memory's former owner. Notifies the observers of the access. Throws
/// operation_error if the host is to read what a failed operation should have written.
///
/// The caller must have entered the access in `of.views` before, so that a conflicting operation that another thread enqueues meanwhile
/// is complete before that thread's call returns. If it `copies`, an operation that is enqueued after this returns begins only once the
/// access has ended.
void wait_for_conflicts(runtime::resource& of, const order::footprint& where, order::access_mode mode,
                        const source_location& from, bool copies);

}  // namespace weir::memory
