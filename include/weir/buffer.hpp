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

/// What memory that others own is lent with, whatever it is.
class WEIR_EXPORT lender {
public:
    lender() = default;
    lender(const lender&) = delete;
    lender& operator=(const lender&) = delete;
    virtual ~lender();
    /// Calls it if it is a function. Called at most once, before it is destroyed.
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

/// A piece of device memory, from Weir's pool or, by `wrap`, of somebody else. Copies are the same memory. Dropping the
/// last copy never blocks, never stalls a stream, and the memory is not handed on before every access to it is over or
/// ordered before the next owner's (rule L1). Any thread.
class WEIR_EXPORT buffer {
public:
    /// No memory.
    buffer() noexcept;
    /// `bytes` of uninitialised memory, aligned to 256 bytes, on the device of `on`, taken from what is best for that
    /// stream: from its pool, unless a memory::use says otherwise. 0 bytes is no memory. Does not block as long as memory
    /// can be had without (rule L1). Throws out_of_memory, device_error (the device is lost).
    explicit buffer(std::size_t bytes, const stream_ref& on = current_stream(),
                    source_location where = source_location::current());
    /// The same, if `on`'s pool has it at hand: waits for nobody, and asks no driver. Else no memory, as under a memory::use,
    /// and the caller makes the buffer as above. Throws state_error (closed stream).
    [[nodiscard]] static buffer at_hand(std::size_t bytes, const stream_ref& on,
                                        source_location where = source_location::current());
    /// Memory that others own: `bytes` bytes of the device `on` from its address `pointer` on, tracked as any other and
    /// never part of the pool. What others do to it without Weir, Weir does not see. Does not block.
    ///
    /// `owner` is whatever keeps the memory there; anything that can be moved. Once the last copy of the buffer is dropped
    /// and the last access made through Weir is over, and not before, it is let go of exactly once (rule L4): called if it
    /// can be called without arguments, then destroyed. That happens on the thread that drops if nothing is pending, else on
    /// a thread of Weir's, under no lock; it should not block. An exception is swallowed, with a note under
    /// WEIR_LOG=debug. At the exit of the process what is in use is not let go of any more.
    ///
    /// Two wraps of the same memory are two buffers that know nothing of each other: wrap once, and copy the buffer. 0
    /// bytes is no memory: the owner is let go of at once. Throws argument_error (null with bytes, a range that does not
    /// fit the address space), out_of_memory, std::bad_alloc: then the owner is destroyed without being called. An array
    /// refuses memory that is misaligned for its elements.
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

    /// The host's address of the first byte; null if there is no memory. The host must not touch it while operations may
    /// be pending: host views wait, this does not. Memory that the host cannot reach faults when it is touched.
    [[nodiscard]] std::byte* data() const noexcept;
    /// Its size, as asked for.
    [[nodiscard]] std::size_t bytes() const noexcept;
    /// The device whose memory it is; the CPU if there is none.
    [[nodiscard]] weir::device device() const noexcept;
    /// Unique in the process: a later owner of the same memory has another.
    [[nodiscard]] std::uint64_t unique_id() const noexcept;

    /// Whether nothing pending conflicts with reading (or, with `to_write`, changing) it now. Never blocks.
    [[nodiscard]] bool ready(bool to_write = false) const;

    /// Who orders operations on this memory; std::nullopt leaves it to stream, scope and process (rule O5).
    void set_ordering(std::optional<ordering_mode> mode) const noexcept;
    /// What set_ordering has set; std::nullopt, too, if there is no memory.
    [[nodiscard]] std::optional<ordering_mode> ordering() const noexcept;

    /// `<weir.buffer #12 4096 bytes at 0x7f... on cpu>`. Never blocks.
    [[nodiscard]] std::string to_string() const;

    /// Whether there is memory.
    explicit operator bool() const noexcept { return static_cast<bool>(block_); }

    /// For Weir's own use. Takes null.
    explicit buffer(detail::owner<memory::block> memory) noexcept;
    /// For Weir's own use. Null if there is no memory.
    [[nodiscard]] runtime::resource* resource() const noexcept;
    /// For Weir's own use: the device's address of the first byte, for code that runs in a stream.
    [[nodiscard]] std::byte* device_data() const noexcept;
    /// For Weir's own use: how many bytes from there the host finds the same byte.
    [[nodiscard]] std::ptrdiff_t to_host() const noexcept;
    /// For Weir's own use: the three of them.
    struct tracked_memory {
        runtime::resource* resource = nullptr;  ///< null if there is no memory
        std::byte* device_data = nullptr;       ///< the device's address of the first byte
        std::ptrdiff_t to_host = 0;             ///< bytes from there to where the host finds it
    };
    /// For Weir's own use: the three of them, in one call.
    [[nodiscard]] tracked_memory tracked() const noexcept;
    /// For Weir's own use: whether host code can use the memory as the device does.
    [[nodiscard]] bool host_reachable() const noexcept;
    /// For Weir's own use: whether CUDA devices copy straight from and to it.
    [[nodiscard]] bool pinned() const noexcept;
    /// For Weir's own use: where the host may touch the memory only while nothing runs on the device, waits until that is
    /// so (rule O6). Throws device_error.
    void await_idle_device(const source_location& where) const;
    /// For Weir's own use: copies `bytes` bytes from the device's address `from` to the host. Blocks. Nothing may be
    /// writing there. Throws device_error.
    void fetch(std::byte* to, const std::byte* from, std::size_t bytes) const;

private:
    static buffer wrap_lent(void* pointer, std::size_t bytes, const weir::device& on,
                            std::unique_ptr<detail::lender> owner, const source_location& where);

    detail::owner<memory::block> block_;
};

/// The host's access to a range of a buffer while it lives (rules O6, X7). Making it blocks until exactly the pending
/// accesses that conflict are over. While it lives, an operation that conflicts with it is over before the call that
/// enqueues it returns, so that the host never sees memory change under its hands. Use `host_view` of array.hpp.
class WEIR_EXPORT host_access {
public:
    /// The host reads or, with access_mode::write, changes `where` of `of`. Blocks as said above. Throws operation_error if
    /// it reads what a failed operation was to write (rule K4), std::bad_alloc.
    ///
    /// `copies`: it lives only until the host has copied what is there. A conflicting operation that another thread enqueues
    /// meanwhile begins after that, and its call waits for it; without, it may change what this thread looks at.
    host_access(const buffer& of, const order::footprint& where, order::access_mode mode, source_location from,
                bool copies = false);
    /// Takes over the access of `other`.
    host_access(host_access&& other) noexcept;
    host_access& operator=(host_access&&) = delete;
    /// The access is over: what is enqueued later is ordered after it. Never blocks.
    ~host_access();

private:
    buffer keep_;
    order::footprint where_;
    order::access_mode mode_;
    bool copies_;
};

}  // namespace weir
