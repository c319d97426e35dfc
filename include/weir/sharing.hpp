// Memory that Weir and other packages use at the same time. Layer: memory.
#pragma once

#include <memory>

#include "weir/buffer.hpp"
#include "weir/event.hpp"
#include "weir/export.hpp"
#include "weir/package.hpp"
#include "weir/source_location.hpp"
#include "weir/stream.hpp"

namespace weir {

namespace detail {

/// Throws argument_error if there is none.
WEIR_EXPORT void expect_package(const package* one);
/// Ties a buffer to a package, which has used the memory up to now, for as long as the buffer lives.
WEIR_EXPORT void tie(const buffer& memory, std::shared_ptr<package> to, package_use use, const source_location& where);

}  // namespace detail

/// Memory of a package's that Weir uses, tied to that package: a *live import* (rule X6). As `buffer::wrap`, which says what
/// `owner` is and when it is let go of. Besides, each operation that touches the memory starts after what the package has put
/// into its current stream by then, and what the package puts there afterwards starts after the operation: so the package
/// may change the memory before and after without a thought. What live_export says of such operations holds.
///
/// Memory that the package lets go of for good (an *exclusive* import) needs no tie: `buffer::wrap`. Throws argument_error
/// without a package and as `wrap` does.
template <class Owner>
[[nodiscard]] buffer import_live(void* pointer, std::size_t bytes, device on, std::shared_ptr<package> from,
                                 Owner owner, package_use use = package_use::writes,
                                 source_location where = source_location::current()) {
    detail::expect_package(from.get());
    buffer made = buffer::wrap(pointer, bytes, on, std::move(owner), where);
    detail::tie(made, std::move(from), use, where);
    return made;
}

/// Memory of Weir's that a package uses while this lives: a *live export* (rule X7). Whoever hands the memory to the
/// package keeps this until the package has let go of it; it keeps the memory.
///
/// While it lives, each operation enqueued through Weir that conflicts with what the package may do starts after what the
/// package has put into its current stream by then, and what the package puts there afterwards starts after the operation.
/// If the operation runs on that very stream, this costs nothing. If the package has no queues, the call that enqueues the
/// operation returns once it is over. Reading and changing the memory on the host waits for the package's stream, too.
/// Where ordering is `manual`, all that is left to the program (rule O5). Any thread, one at a time.
///
/// What the package does on streams other than its current one needs `used_on`.
class WEIR_EXPORT live_export {
public:
    /// Shares nothing.
    live_export() noexcept;
    /// The whole of `of` is shared from now on. Throws argument_error without a package, std::bad_alloc.
    live_export(const buffer& of, std::shared_ptr<package> with, package_use use = package_use::writes);
    /// A part of it.
    live_export(const buffer& of, const order::footprint& part, std::shared_ptr<package> with,
                package_use use = package_use::writes);
    /// The elements of an array.
    template <class Array>
        requires requires(const Array& a) { a.footprint(); }
    live_export(const Array& of, std::shared_ptr<package> with, package_use use = package_use::writes)
        : live_export(of.buffer(), of.footprint(), std::move(with), use) {}
    /// @{
    /// Takes over what `other` shares, and ends what this shared; `other` shares nothing then.
    live_export(live_export&& other) noexcept;
    live_export& operator=(live_export&& other) noexcept;
    /// @}
    /// The package has let go: `end`. What cannot be ended, because memory runs out or the package fails, is kept for ever
    /// rather than handed on too early.
    ~live_export();

    /// The package has used the memory up to now on `by` as well, or only there (`exclusive`): then this has ended when the
    /// call returns, and its current stream does not matter. What is enqueued through Weir later, or gets the memory later,
    /// comes after. Does not block. Throws std::bad_alloc, and what the package's stream throws; nothing has changed then.
    void used_on(const stream_ref& by, bool exclusive = false, source_location where = source_location::current());
    /// The same, up to a moment that the package recorded.
    void used_on(const event& upto, bool exclusive = false);

    /// The package has let go, and what it did last is in its current stream (as the calling thread sees it) or was told
    /// by `used_on`. Does not block. Throws what the package and its stream throw; nothing has changed then.
    void end(source_location where = source_location::current());

private:
    struct state;
    void untie() noexcept;
    std::unique_ptr<state> state_;
};

/// Others have used `memory` up to now on a stream that Weir could not see them use it on: the part of a live import or
/// export that goes beyond the package's current stream (rule X7). What is enqueued through Weir later, or gets the memory
/// later, comes after. Does not block. Throws std::bad_alloc, and what the stream throws.
WEIR_EXPORT void used_on(const buffer& memory, const stream_ref& by, package_use use = package_use::writes,
                         source_location where = source_location::current());
/// The same, up to a moment that was recorded.
WEIR_EXPORT void used_on(const buffer& memory, const event& upto, package_use use = package_use::writes);

}  // namespace weir
