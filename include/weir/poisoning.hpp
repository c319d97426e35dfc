// A memory resource that finds reads after a free. Layer: array.
#pragma once

#include "weir/export.hpp"
#include "weir/memory_resource.hpp"

namespace weir::memory {

/// Fills memory that is freed with bytes of 0xff: NaN as a floating-point number of any size, -1 as a signed integer. Code that reads
/// memory after it was freed, or before it was written, then computes NaN, and does so in each run.
///
/// The fill is an operation on a stream of the resource's own. It comes after all operations on the memory that were enqueued through Weir,
/// in every ordering mode, and before those of the memory's next owner (rule L1): the drop does not block, and no operation sees the
/// pattern too early. New memory from the driver is not filled. If the fill cannot be enqueued, the memory goes back unfilled, with a
/// note under WEIR_LOG=debug. Memory that goes into quarantine (rule L5) is not filled: a consumer may use it on streams that Weir does not
/// know, and Weir cannot order the fill behind that use. memory::statistics::quarantined says how much that is.
///
/// For tests: each drop costs a write of the whole memory.
[[nodiscard]] WEIR_EXPORT resource_ptr poisoning(resource_ptr upstream = {});

}  // namespace weir::memory
