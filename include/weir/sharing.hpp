// Memory that Weir and other packages use at the same time. Layer: memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "weir/access.hpp"
#include "weir/buffer.hpp"
#include "weir/detail/footprint.hpp"
#include "weir/detail/passkey.hpp"
#include "weir/event.hpp"
#include "weir/export.hpp"
#include "weir/package.hpp"
#include "weir/source_location.hpp"
#include "weir/stream.hpp"

namespace weir {

class token;

/// What Weir may do with imported memory.
enum class import_access : std::uint8_t { writable, read_only };

namespace detail {

/// Throws argument_error if `one` is null.
WEIR_EXPORT void expect_package(const package* one);
/// Ties a buffer to a package, which has used the memory up to now, for as long as the buffer lives. `from`: the device from which the
/// package uses it; none: the memory's own.
WEIR_EXPORT void tie(const buffer& memory, std::shared_ptr<package> to, package_use use, import_access allowed,
                     const source_location& where, const std::optional<device>& from = std::nullopt);
/// Where all accesses of a package are known (package_order): what `on`, a stream of its, gets next comes after what the package does with
/// the memory on any stream. Else the package itself has seen to that. Does not block. Throws std::bad_alloc, and what the package throws.
WEIR_EXPORT void gather(package& from, const buffer& memory, const stream& on);

}  // namespace detail

/// Memory of a package's that Weir uses, tied to that package: a *live import* (rule X6). As `buffer::wrap`, which says what `owner` is and
/// when it is released. In addition, each operation that touches the memory starts after what the package has put into its current stream
/// by then, and what the package puts there afterwards starts after the operation. So the package may change the memory before and after
/// without further care. What live_export says of such operations applies here, too.
///
/// Memory that the package gives up for good (an *exclusive* import) needs no tie: `buffer::wrap`. Throws argument_error without a package
/// and as `wrap` does.
///
/// `allowed`: whether Weir may write there. An operation that declares a write to read-only memory throws argument_error, in every ordering
/// mode.
template <class Owner>
[[nodiscard]] buffer import_live(void* pointer, std::size_t bytes, device on, std::shared_ptr<package> from,
                                 Owner owner, package_use use = package_use::writes,
                                 import_access allowed = import_access::writable,
                                 source_location where = source_location::current()) {
    detail::expect_package(from.get());
    buffer made = buffer::wrap(pointer, bytes, on, std::move(owner), where);
    detail::tie(made, std::move(from), use, allowed, where);
    return made;
}

/// Whether a package that shares the memory forbids Weir to write to it (import_access::read_only).
[[nodiscard]] WEIR_EXPORT bool is_read_only(const buffer& memory);

/// Memory of Weir's that a package uses while this lives: a *live export* (rule X7). The code that passes the memory to the package keeps
/// this object until the package has let go of the memory; the object keeps the memory.
///
/// While it lives, each operation enqueued through Weir that conflicts with the package's declared use starts after what the package has
/// put into its current stream by then, and what the package puts there afterwards starts after the operation. If the operation runs on
/// that very stream, this costs nothing. If the package has no queues, the call that enqueues the operation returns once it is complete.
/// Reading and changing the memory on the host waits for the package's stream, too. Where ordering is `manual`, all that is left to the
/// program (rule O5). Any thread, one at a time.
///
/// Uses by the package on streams other than its current one must be stated by `used_on`.
class WEIR_EXPORT live_export {
public:
    /// Shares nothing.
    live_export() noexcept;
    /// Shares the whole of `of` from now on. Throws argument_error without a package, std::bad_alloc.
    [[nodiscard]] live_export(const buffer& of, std::shared_ptr<package> with, package_use use = package_use::writes);
    /// Shares a part of it.
    [[nodiscard]] live_export(const buffer& of, byte_range part, std::shared_ptr<package> with,
                              package_use use = package_use::writes);
    /// @{
    /// Shares the elements of an array. The package only reads those of a const array.
    template <class Array>
        requires(detail::use_of<Array> == package_use::writes && requires(Array & a) { a.used(detail::key); })
    [[nodiscard]] live_export(Array&& of, std::shared_ptr<package> with, package_use use = package_use::writes)
        : live_export(detail::key, of.buffer(), of.used(detail::key), of.device(), std::move(with), use) {}
    template <class Array>
        requires requires(const Array& a) { a.used(detail::key); }
    [[nodiscard]] live_export(const Array& of, std::shared_ptr<package> with)
        : live_export(detail::key, of.buffer(), of.used(detail::key), of.device(), std::move(with),
                      package_use::reads) {}
    /// @}
    /// The package uses the memory from the device `from`.
    [[nodiscard]] live_export(detail::passkey key, const buffer& of, const order::footprint& part,
                              const weir::device& from, std::shared_ptr<package> with, package_use use);
    /// Of a token, which the package uses from the device `from`.
    [[nodiscard]] live_export(detail::passkey key, const token& of, const weir::device& from,
                              std::shared_ptr<package> with, package_use use);
    /// @{
    /// Takes over what `other` shares, and ends what this object shared; `other` then shares nothing.
    live_export(live_export&& other) noexcept;
    live_export& operator=(live_export&& other) noexcept;
    /// @}
    /// As `end`: the package has let go. If that fails, because memory runs out, the package fails, or its stream is being captured, memory
    /// that was handed to another library goes into quarantine once it is dropped (rule L5), and operations are ordered with the package
    /// until then. Other memory is kept for ever rather than reused too early.
    ~live_export();

    /// States that the package has used the memory up to now on `by` as well, or only there (`exclusive`): then the export has ended when
    /// the call returns, and the package's current stream does not matter. What is enqueued through Weir later, or gets the memory later,
    /// comes after that. Does not block. Throws std::bad_alloc, and what the package's stream throws; nothing has changed then.
    void used_on(const stream_ref& by, bool exclusive = false, source_location where = source_location::current());
    /// The same, up to a moment that the package recorded.
    void used_on(const event& upto, bool exclusive = false);

    /// Ends the export: the package has let go, and its last work is in its current stream (as the calling thread sees it) or was stated by
    /// `used_on`. Does not block. Throws what the package and its stream throw; nothing has changed then.
    void end(source_location where = source_location::current());

private:
    struct state;
    void untie() noexcept;
    [[nodiscard]] bool is_tied() const;
    std::unique_ptr<state> state_;
};

/// States that other code has used `memory` up to now on a stream where Weir could not see it: uses of a live import or export beyond the
/// package's current stream (rule X7). What is enqueued through Weir later, or gets the memory later, comes after that. Does not block.
/// Throws std::bad_alloc, and what the stream throws.
WEIR_EXPORT void used_on(const buffer& memory, const stream_ref& by, package_use use = package_use::writes,
                         source_location where = source_location::current());
/// The same, up to a recorded moment.
WEIR_EXPORT void used_on(const buffer& memory, const event& upto, package_use use = package_use::writes);

/// No consumer uses the memory any more, and the work of all of them was stated by `used_on`: its live exports have ended when the call
/// returns, and when it is dropped it is not held in quarantine (rule L5). Live imports stay. Never blocks. Throws std::bad_alloc; nothing
/// has changed then.
WEIR_EXPORT void end_exports(const buffer& memory);

}  // namespace weir
