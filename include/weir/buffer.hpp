// Untyped memory that knows its pending accesses. Layer: memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

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

namespace detail {

/// The owner of lent memory, of any type.
class WEIR_EXPORT lender {
public:
    lender() = default;
    lender(const lender&) = delete;
    lender& operator=(const lender&) = delete;
    virtual ~lender();
    /// Calls the owner if it is a function. Called at most once, before the owner is destroyed.
    virtual void let_go() = 0;
};

template <class Owner>
class lender_of final : public lender {
public:
    explicit lender_of(Owner&& owner) : owner_(std::move(owner)) {}
    void let_go() override {
        if constexpr (std::is_invocable_v<Owner&>) {
            owner_();
        }
    }

private:
    Owner owner_;
};

}  // namespace detail

/// A chunk of device memory, from Weir's pool or, by `wrap`, of another owner. Copies share the same memory. Dropping the last copy never
/// blocks and never stalls a stream; the memory is not reused before every access to it is complete or ordered before the next owner's
/// (rule L1). Any thread.
class WEIR_EXPORT buffer {
public:
    /// No memory.
    buffer() noexcept;
    /// `bytes` of uninitialized memory, aligned to 256 bytes, on the device of `on`; memory that this stream can use without a wait comes
    /// first. From the device's pool, unless a memory::use says otherwise. 0 bytes is no memory. Does not block as long as memory is
    /// available without a wait (rule L1). Throws out_of_memory, device_error (the device is lost).
    explicit buffer(std::size_t bytes, const stream_ref& on = current_stream(),
                    source_location where = source_location::current());
    /// The same, but only memory of the pool that `on` used last: waits for nothing, and does not call the driver. Returns no memory if
    /// there is none, or within a memory::use; the caller then constructs the buffer as above. Throws state_error (closed stream).
    [[nodiscard]] static buffer at_hand(std::size_t bytes, const stream_ref& on,
                                        source_location where = source_location::current());
    /// Memory that Weir does not own: `bytes` bytes of the device `on` from its address `pointer` on, tracked like any other memory and
    /// never part of the pool. Weir does not see what other code does to it without Weir. Does not block.
    ///
    /// `owner` is an object that keeps the memory valid; any movable type. Once the last copy of the buffer is dropped and the last access
    /// made through Weir is complete, and not before, the owner is released exactly once (rule L4): called if it can be called without
    /// arguments, then destroyed. That happens on the thread that drops the buffer if nothing is pending, else on a thread of Weir's, under
    /// no lock; it should not block. An exception is swallowed, with a note under WEIR_LOG=debug. At the exit of the process, memory that
    /// is in use is not released any more.
    ///
    /// Two wraps of the same memory are two buffers that know nothing of each other: wrap once, and copy the buffer. 0 bytes is no memory:
    /// the owner is released at once. Throws argument_error (null with bytes, a range that does not fit the address space), out_of_memory,
    /// std::bad_alloc: then the owner is destroyed without being called. An array refuses memory that is misaligned for its elements.
    template <class Owner>
    [[nodiscard]] static buffer wrap(void* pointer, std::size_t bytes, weir::device on, Owner owner,
                                     source_location where = source_location::current()) {
        return wrap_lent(pointer, bytes, on, std::make_unique<detail::lender_of<Owner>>(std::move(owner)), where);
    }
    /// @{
    /// The same memory.
    buffer(const buffer&) noexcept;
    buffer(buffer&&) noexcept;
    buffer& operator=(const buffer&) noexcept;
    buffer& operator=(buffer&&) noexcept;
    ~buffer();
    /// @}

    /// The host's address of the first byte; null if there is no memory. The host must not touch it while operations may be pending: host
    /// views wait, this does not. Memory that the host cannot reach faults when it is touched.
    [[nodiscard]] std::byte* data() const noexcept;
    /// The size that was asked for.
    [[nodiscard]] std::size_t bytes() const noexcept;
    /// The device whose memory it is; the CPU if there is none.
    [[nodiscard]] weir::device device() const noexcept;
    /// Unique in the process: a later owner of the same memory has another.
    [[nodiscard]] std::uint64_t unique_id() const noexcept;

    /// Whether no pending access conflicts with reading it now (with `to_write`: changing it). Never blocks. For `check` a yes is a wait.
    [[nodiscard]] bool ready(bool to_write = false) const;

    /// Whether Weir or the program orders operations on this memory; std::nullopt leaves that to stream, scope and process (rule O5).
    void set_ordering(std::optional<ordering_mode> mode) const noexcept;
    /// The mode that set_ordering has set; std::nullopt if none is set or there is no memory.
    [[nodiscard]] std::optional<ordering_mode> ordering() const noexcept;

    /// `<weir.buffer #12 4096 bytes at 0x7f... on cpu>`. Never blocks.
    [[nodiscard]] std::string to_string() const;

    /// Whether there is memory.
    explicit operator bool() const noexcept { return static_cast<bool>(block_); }

    /// The device's address of the first byte, for code that runs in a stream. What uses it must be declared in another way.
    [[nodiscard]] std::byte* device_data() const noexcept;

    /// As `buffer(bytes, on)`, for memory that `first`, a stream of any device, uses first: what that stream can use without a wait comes
    /// first.
    buffer(detail::passkey /*key*/, std::size_t bytes, const stream_ref& on, const stream_ref& first,
           const source_location& where);
    /// `memory` may be null.
    buffer(detail::passkey /*key*/, detail::owner<memory::block> memory) noexcept;
    /// Null if there is no memory.
    [[nodiscard]] runtime::resource* resource(detail::passkey /*key*/) const noexcept;
    /// The bytes to add to the device's address to get the host's address of the same byte.
    [[nodiscard]] std::ptrdiff_t to_host(detail::passkey /*key*/) const noexcept;
    /// The resource and both addresses.
    struct tracked_memory {
        runtime::resource* resource = nullptr;  ///< null if there is no memory
        std::byte* device_data = nullptr;       ///< the device's address of the first byte
        std::ptrdiff_t to_host = 0;             ///< add this to get the host's address of the same byte
    };
    /// The resource and both addresses, in one call.
    [[nodiscard]] tracked_memory tracked(detail::passkey /*key*/) const noexcept;
    /// Whether host code can use the memory as the device does.
    [[nodiscard]] bool host_reachable(detail::passkey /*key*/) const noexcept;
    /// Whether CUDA devices copy from and to it directly.
    [[nodiscard]] bool pinned(detail::passkey /*key*/) const noexcept;
    /// If the host may touch the memory only while nothing runs on the device, waits for that (rule O6). Throws
    /// device_error.
    void await_idle_device(detail::passkey /*key*/, const source_location& where) const;
    /// Copies `bytes` bytes from the device's address `from` to the host. Blocks. No operation may be writing there.
    /// Throws device_error.
    void fetch(detail::passkey /*key*/, std::byte* to, const std::byte* from, std::size_t bytes) const;

private:
    static buffer wrap_lent(void* pointer, std::size_t bytes, const weir::device& on,
                            std::unique_ptr<detail::lender> owner, const source_location& where);

    detail::owner<memory::block> block_;
};

/// The host's access to a range of a buffer, while it lives (rules O6, X7). The constructor blocks until exactly the pending accesses
/// that conflict are complete. While it lives, an operation that conflicts with it is complete before the call that enqueues it
/// returns, so that memory does not change while the host uses it. Use `host_view` of array.hpp.
class WEIR_EXPORT host_access {
public:
    /// The host reads `where` of `of` or, with access_mode::write, changes it. Blocks as described above. Throws operation_error if it
    /// reads what a failed operation was to write (rule K4), std::bad_alloc.
    ///
    /// `copies`: it lives only until the host has copied the bytes. A conflicting operation that another thread enqueues meanwhile begins
    /// after that, and its call waits for it; without `copies`, that operation may change what this thread reads.
    host_access(detail::passkey /*key*/, const buffer& of, const order::footprint& where, order::access_mode mode,
                source_location from, bool copies = false);
    /// Takes over the access of `other`.
    host_access(host_access&& other) noexcept;
    host_access& operator=(host_access&&) = delete;
    /// Ends the access: what is enqueued later is ordered after it. Never blocks.
    ~host_access();

private:
    buffer keep_;
    order::footprint where_;
    order::access_mode mode_;
    bool copies_;
};

}  // namespace weir
