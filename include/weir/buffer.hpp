// Untyped memory that knows its pending accesses. Layer: memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "weir/detail/footprint.hpp"
#include "weir/detail/intrusive.hpp"
#include "weir/device.hpp"
#include "weir/export.hpp"
#include "weir/source_location.hpp"
#include "weir/stream.hpp"

namespace weir {

namespace memory {
class block;
}
namespace runtime {
class resource;
}

/// A piece of device memory from Weir's pool. Copies are the same memory. Dropping the last copy never blocks, never
/// stalls a stream, and the memory is not handed on before every access to it is over or ordered before the next owner's
/// (rule L1). Any thread.
class WEIR_EXPORT buffer {
public:
    buffer() noexcept;
    /// `bytes` of uninitialised memory, aligned to 256 bytes, on the device of `on`, taken from what is best for that
    /// stream. 0 bytes is no memory. Does not block as long as memory can be had without (rule L1). Throws out_of_memory.
    explicit buffer(std::size_t bytes, const stream_ref& on = current_stream(),
                    source_location where = source_location::current());
    buffer(const buffer&) noexcept;
    buffer(buffer&&) noexcept;
    buffer& operator=(const buffer&) noexcept;
    buffer& operator=(buffer&&) noexcept;
    ~buffer();

    /// The device's address of the first byte; null if there is no memory. On the CPU the host must not touch it while
    /// operations may be pending: host views wait, this does not.
    [[nodiscard]] std::byte* data() const noexcept;
    [[nodiscard]] std::size_t bytes() const noexcept;
    [[nodiscard]] weir::device device() const noexcept;
    /// Unique in the process: a later owner of the same memory has another.
    [[nodiscard]] std::uint64_t unique_id() const noexcept;

    /// Whether nothing pending conflicts with reading (or, with `to_write`, changing) it now. Never blocks.
    [[nodiscard]] bool ready(bool to_write = false) const;

    /// Who orders operations on this memory; std::nullopt leaves it to stream, scope and process (rule O5).
    void set_ordering(std::optional<ordering_mode> mode) const noexcept;

    explicit operator bool() const noexcept { return static_cast<bool>(block_); }

    /// For Weir's own use. Null if there is no memory.
    [[nodiscard]] runtime::resource* resource() const noexcept;

private:
    detail::owner<memory::block> block_;
};

/// The host's access to a range of a buffer while it lives (rules O6, X7). Making it blocks until exactly the pending
/// accesses that conflict are over. While it lives, an operation that conflicts with it is over before the call that
/// enqueues it returns, so that the host never sees memory change under its hands. Use `host_view` of array.hpp.
class WEIR_EXPORT host_access {
public:
    host_access(const buffer& of, const order::footprint& where, order::access_mode mode, source_location from);
    host_access(host_access&& other) noexcept;
    host_access& operator=(host_access&&) = delete;
    ~host_access();

private:
    buffer keep_;
    order::footprint where_;
    order::access_mode mode_;
};

}  // namespace weir
