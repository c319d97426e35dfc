// Where buffers get their memory: resources, stackable adaptors, and scopes that put them to use. Layer: memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "weir/buffer.hpp"
#include "weir/device.hpp"
#include "weir/export.hpp"
#include "weir/source_location.hpp"
#include "weir/stream.hpp"

namespace weir {

namespace memory {
struct drop_notice;
}

/// Something that gives memory (rule L6): the device's pool, a driver, or an adaptor over another resource. Where a function
/// takes a resource, null means the device's pool.
///
/// To write one, say in `make` where memory comes from: from another resource, from `buffer::wrap`, or from a plain
/// `buffer`, which is then the pool's. Lives in a std::shared_ptr. Any thread may call, several at once.
///
/// \code
/// const auto counted = weir::memory::counting();
/// const weir::memory::use scope(weir::memory::limiting(64 << 20, counted));
/// run();  // no more than 64 MiB at a time, and counted
/// \endcode
class WEIR_EXPORT memory_resource : public std::enable_shared_from_this<memory_resource> {
public:
    memory_resource() = default;
    memory_resource(const memory_resource&) = delete;
    memory_resource& operator=(const memory_resource&) = delete;
    /// Buffers that it gave keep it alive: none is left.
    virtual ~memory_resource();

    /// `bytes` of uninitialised memory on the device of `on`, as `buffer` gives them; 0 bytes is no memory. The buffer keeps
    /// this resource alive. Throws what `make` throws; state_error if this is not in a std::shared_ptr.
    [[nodiscard]] buffer allocate(std::size_t bytes, const stream_ref& on = current_stream(),
                                  source_location where = source_location::current());

    /// `upstream->allocate`, or the pool's memory if it is null: for adaptors.
    [[nodiscard]] static buffer allocate_from(const std::shared_ptr<memory_resource>& upstream, std::size_t bytes,
                                              const stream_ref& on, const source_location& where);

protected:
    /// At least `bytes` bytes, not 0, that nobody else knows yet, on the device of `on`. Called under no lock of Weir.
    /// Meanwhile no resource is in use on the calling thread: buffers made here are the pool's.
    [[nodiscard]] virtual buffer make(std::size_t bytes, const stream_ref& on, const source_location& where) = 0;

    /// The last copy of a buffer that `allocate` gave was dropped: called exactly once, on the thread that dropped it, under
    /// no lock of Weir. Operations may still be using the memory. Must not block. As in `make`, no resource is in use.
    virtual void dropped(std::uint64_t /*unique_id*/, std::size_t /*bytes*/) noexcept {}

private:
    friend struct memory::drop_notice;
};

namespace memory {

/// Makes a resource the one that buffers of the calling thread come from while it lives; then what was there before. Nests:
/// the innermost that is for the device counts. Destroy on the thread that made it.
class WEIR_EXPORT use {
public:
    /// For every device. Null: the pools, whatever scopes are around it.
    explicit use(std::shared_ptr<memory_resource> resource) noexcept;
    /// For one device.
    use(std::shared_ptr<memory_resource> resource, const device& of) noexcept;
    /// Restores what was in use before.
    ~use();
    use(const use&) = delete;
    use& operator=(const use&) = delete;

    /// For Weir's own use: the innermost scope of the calling thread for a device; null if there is none.
    [[nodiscard]] static const use* innermost(const runtime::device_state& of) noexcept;
    /// For Weir's own use.
    [[nodiscard]] const std::shared_ptr<memory_resource>& resource() const noexcept { return resource_; }

private:
    std::shared_ptr<memory_resource> resource_;
    const runtime::device_state* device_;
    use* outer_;
};

/// How resources are passed; null is the device's pool.
using resource_ptr = std::shared_ptr<memory_resource>;

/// Lets no more than `most` bytes live at once: beyond that, out_of_memory. Counts what was asked for, from the allocation
/// to the drop of the last copy.
[[nodiscard]] WEIR_EXPORT resource_ptr limiting(std::size_t most, resource_ptr upstream = {});

/// Hands `sink` a line of JSON, without the end of the line, for each event:
///   {"event":"allocate","id":7,"bytes":4096,"device":"cpu","stream":"load","file":"main.cpp","line":12}
///   {"event":"drop","id":7,"bytes":4096}
///   {"event":"fail","bytes":4096,"device":"cpu","stream":"load","file":"main.cpp","line":12}
/// Called under no lock of Weir, on the thread that acts: several may call at once. What it throws is swallowed, with a
/// note under WEIR_LOG=debug. No sink: lines go to the standard error output.
[[nodiscard]] WEIR_EXPORT resource_ptr logging(std::function<void(std::string_view)> sink = {},
                                               resource_ptr upstream = {});

/// Counts what goes through it.
class WEIR_EXPORT counting_resource : public memory_resource {
public:
    /// One figure, in buffers and in bytes.
    struct figure {
        std::uint64_t count = 0;  ///< buffers
        std::uint64_t bytes = 0;  ///< as asked for
    };
    /// What the resource has counted.
    struct figures {
        figure live;    ///< of buffers that are not dropped yet
        figure peak;    ///< each the most that it ever was
        figure total;   ///< of all that were ever made
        figure failed;  ///< allocations that threw
    };
    /// The figures of this moment.
    [[nodiscard]] virtual figures counts() const = 0;
};
/// Counts what goes through it; any thread may ask at any time.
[[nodiscard]] WEIR_EXPORT std::shared_ptr<counting_resource> counting(resource_ptr upstream = {});

/// Which allocations fail on purpose.
struct failures_wanted {
    std::uint64_t at = 0;    ///< this one, the first being 1; 0: none in particular
    double probability = 0;  ///< each with this probability, from 0 to 1
    std::uint64_t seed = 0;  ///< the same seed, the same allocations
};

/// Throws out_of_memory on purpose.
class WEIR_EXPORT failing_resource : public memory_resource {
public:
    /// Allocations it was asked for.
    [[nodiscard]] virtual std::uint64_t asked() const noexcept = 0;
    /// Those that it made fail.
    [[nodiscard]] virtual std::uint64_t failed() const noexcept = 0;
};
/// Throws argument_error (no probability).
[[nodiscard]] WEIR_EXPORT std::shared_ptr<failing_resource> failing(failures_wanted which, resource_ptr upstream = {});

/// Pinned memory for arrays of the CPU: copies between these and arrays of a CUDA device, on a stream of the CUDA device, are
/// the driver's own, and no thread of the host takes part. Kept for the next array in a pool of its own, of which neither
/// `limit` nor `stats` know; `trim` of the CPU gives it back, which takes effect when the CUDA device gets to the end of what
/// it does then. On a machine without a CUDA device it is plain memory of the host (rule L6). An allocation throws argument_error on
/// a stream of another kind.
[[nodiscard]] WEIR_EXPORT resource_ptr pinned();

/// Managed memory for arrays of a CUDA device that the host reaches, too: host views are the memory itself, and not copies.
/// Where host and device cannot use such memory at once, a host view waits for the device (rule O6), and nothing may be
/// enqueued there while the view lives. There may be more of it than the device has. Kept and given back as `pinned` says.
/// Of a simulated device it is plain memory of the host, which the device uses as its own (rule L6). An allocation throws
/// argument_error on a stream of another kind.
[[nodiscard]] WEIR_EXPORT resource_ptr managed();

/// Memory straight from the device's driver: a call for each allocation, and one for each drop, once the last access is
/// over, made by the reaper. Not part of the pool: neither its limit nor its statistics know of it.
///
/// On a CUDA device this is the driver's allocator in stream order (cuMemAllocAsync), where there is one: the memory is
/// there for the stream that asks and whatever is ordered behind it, and goes back in the stream that used it last, if no
/// other one is using it and nobody else has that stream. Dropping never waits. What the driver keeps, `trim` gives back.
[[nodiscard]] WEIR_EXPORT resource_ptr driver_pool();

/// For tests, as a negative control of rule L1: its buffers are freed as other pools free them, on the stream on which they
/// were allocated. Of all that may still use the memory, Weir then remembers only what that stream had been given when
/// the last owner went: uses on other streams, and those of earlier owners, are forgotten, and the memory is reused too
/// early.
[[nodiscard]] WEIR_EXPORT resource_ptr allocating_stream(resource_ptr upstream = {});

}  // namespace memory

}  // namespace weir
