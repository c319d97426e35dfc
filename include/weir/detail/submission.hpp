// The only way for work to enter a stream. Layer: runtime.
#pragma once

#include <cstdint>
#include <span>

#include "weir/completion.hpp"
#include "weir/detail/footprint.hpp"
#include "weir/detail/operation.hpp"
#include "weir/detail/site.hpp"
#include "weir/detail/task.hpp"
#include "weir/export.hpp"

namespace weir::runtime {

class resource;
class stream_state;

/// One access that an operation declares.
struct access_request {
    resource* target = nullptr;
    order::footprint where;
    order::access_mode mode = order::access_mode::read;
    /// A write of every byte of `where`, none of which is read before: what a failed operation left there does not matter (rule K4). For
    /// the order it makes no difference.
    bool overwrites = false;
    /// Ordered also where the program orders (rule O5): the call, or an argument of a protocol such as DLPack's `stream=`, asks for it.
    bool in_every_mode = false;
};

/// What an operation on memory that packages share does about their current streams (rule X6). `entry`: it starts after what is in them, and
/// is itself no work that they would have to come after. `exit`: they come after it, and it needs not come after them.
enum class package_sides : std::uint8_t { both, entry, exit };

/// One operation, before it has a place in a stream. Refers to its arguments: made for one call of `submit`.
struct submission : detail::operation {
    submission(std::span<const access_request> its_accesses, std::span<const completion> comes_after,
               detail::task_ref its_work, const site& its_site, work_kind its_kind = work_kind::device) noexcept
        : operation{its_work, its_site, its_kind}, accesses(its_accesses), after(comes_after) {}

    std::span<const access_request> accesses;
    std::span<const completion> after;
    package_sides sides = package_sides::both;
};

/// Enqueues one operation: orders it after the accesses that conflict with its own (rules O1, O2, O5), puts it into the stream and adds it
/// to the histories. Does not wait for other work, unless an access conflicts with a live view of the host's: then it returns once the
/// operation is complete (rule X7). Any thread.
///
/// An operation of the device may use only memory of its stream's device; a copy also that of one other device; a host task any memory.
///
/// Reads and writes `accesses` as declared. Throws state_error (closed stream), argument_error (memory that cannot be reached),
/// std::bad_alloc; then nothing has happened.
/// Throws race_error under a check_scope of mode `raise`; then the operation is enqueued, safely.
WEIR_EXPORT completion submit(stream_state& stream, const submission& what);

}  // namespace weir::runtime
