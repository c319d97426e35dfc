// The sources of buffers' memory: resources, stackable adaptors, and scopes that select a resource. Layer: memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "weir/buffer.hpp"
#include "weir/detail/passkey.hpp"
#include "weir/device.hpp"
#include "weir/export.hpp"
#include "weir/source_location.hpp"
#include "weir/stream.hpp"

namespace weir {

namespace memory {
struct drop_notice;
}

/// A source of memory (rule L6): the device's pool, a driver, or an adaptor over another resource. Where a function takes a resource, null
/// means the device's pool.
///
/// To write a resource, implement `make`: it returns memory from another resource, from `buffer::wrap`, or from a plain `buffer`, which is
/// then the pool's. A resource must be owned by a std::shared_ptr. Any thread may call, several at once.
///
/// \code
/// const auto counted = weir::memory::counting();
/// const weir::memory::use scope(weir::memory::limiting(64 << 20, counted));
/// run();  // no more than 64 MiB at a time, and counted
/// \endcode
class WEIR_EXPORT memory_resource : public std::enable_shared_from_this<memory_resource> {
public:
    /// The default alignment, in bytes; pools and drivers do not support a greater one.
    static constexpr std::size_t default_alignment = 256;

    memory_resource() = default;
    memory_resource(const memory_resource&) = delete;
    memory_resource& operator=(const memory_resource&) = delete;
    /// Buffers keep their resource alive, so none of its buffers is left.
    virtual ~memory_resource();

    /// `bytes` of uninitialized memory on the device of `on`, as from `buffer`; 0 bytes is no memory. The address is a multiple of
    /// `alignment`, a power of two. The buffer keeps this resource alive. Throws what `make` throws; argument_error (not a power of two);
    /// state_error if no std::shared_ptr owns this, or if `make` returned too little or misaligned memory.
    [[nodiscard]] buffer allocate(std::size_t bytes, const stream_ref& on = current_stream(),
                                  std::size_t alignment = default_alignment,
                                  source_location where = source_location::current());

    /// `upstream->allocate`, or the pool's memory if it is null: for adaptors. The pool throws argument_error if `alignment` is greater
    /// than default_alignment.
    [[nodiscard]] static buffer allocate_from(const std::shared_ptr<memory_resource>& upstream, std::size_t bytes,
                                              std::size_t alignment, const stream_ref& on,
                                              const source_location& where);

protected:
    /// Returns at least `bytes` bytes, not 0, on the device of `on`, that no other buffer shares; the address is a multiple of
    /// `alignment`, a power of two. A resource that does not support the alignment throws argument_error. Called under no lock of Weir.
    /// Meanwhile no resource is in use on the calling thread: buffers made here are the pool's.
    [[nodiscard]] virtual buffer make(std::size_t bytes, std::size_t alignment, const stream_ref& on,
                                      const source_location& where) = 0;

    /// Called when the last copy of a buffer from `allocate` was dropped: exactly once, on the thread that dropped it, under no lock of
    /// Weir. Operations may still be using the memory. Must not block. As in `make`, no resource is in use.
    virtual void dropped(std::uint64_t /*unique_id*/, std::size_t /*bytes*/) noexcept {}

    /// Called before `dropped`, in the same way: `memory` is that buffer once more. Operations that are enqueued on it here come after
    /// those that the program enqueued, and before those of the memory's next owner. A copy that outlives the call keeps the memory;
    /// `dropping` is not called again for it. It is not called for memory that goes into quarantine (rule L5): a consumer may use that memory
    /// on streams that Weir does not know, and nothing that is enqueued here would come after it. `dropped` is called for all memory.
    virtual void dropping(const buffer& /*memory*/) noexcept {}

private:
    friend struct memory::drop_notice;
};

namespace memory {

/// Makes a resource the source of the calling thread's buffers while it lives; then restores the former one. Nests: the innermost scope for
/// the device counts. Must be destroyed on the thread that made it.
class WEIR_EXPORT use {
public:
    /// For every device. Null: the pools, whatever scopes are outside this one.
    [[nodiscard]] explicit use(std::shared_ptr<memory_resource> resource) noexcept;
    /// For one device, which is opened. Throws device_error.
    [[nodiscard]] use(std::shared_ptr<memory_resource> resource, const device& of);
    /// Restores the resource that was in use before.
    ~use();
    use(const use&) = delete;
    use& operator=(const use&) = delete;

    /// @{
    /// The calling thread's innermost scope for a device, null if there is none; and its resource.
    [[nodiscard]] static const use* innermost(detail::passkey key, const runtime::device_state& of) noexcept;
    [[nodiscard]] const std::shared_ptr<memory_resource>& resource(detail::passkey /*key*/) const noexcept {
        return resource_;
    }
    /// @}

private:
    std::shared_ptr<memory_resource> resource_;
    const runtime::device_state* device_;
    use* outer_;
};

/// A reference to a resource; null is the device's pool.
using resource_ptr = std::shared_ptr<memory_resource>;

/// Allows at most `most` live bytes: beyond that, allocations throw out_of_memory. Counts the requested bytes, from the allocation to the
/// drop of the last copy.
[[nodiscard]] WEIR_EXPORT resource_ptr limiting(std::size_t most, resource_ptr upstream = {});

/// Passes `sink` a line of JSON, without a line break, for each event:
///   {"event":"allocate","id":7,"bytes":4096,"device":"cpu","stream":"load","file":"main.cpp","line":12}
///   {"event":"drop","id":7,"bytes":4096}
///   {"event":"fail","bytes":4096,"device":"cpu","stream":"load","file":"main.cpp","line":12}
/// Called under no lock of Weir, on the thread that allocates or drops: several threads may call at once. An exception of `sink` is
/// swallowed, with a note under WEIR_LOG=debug. Without a sink, lines go to the standard error output.
[[nodiscard]] WEIR_EXPORT resource_ptr logging(std::function<void(std::string_view)> sink = {},
                                               resource_ptr upstream = {});

/// Counts allocations and drops.
class WEIR_EXPORT counting_resource : public memory_resource {
public:
    /// One figure, in buffers and in bytes.
    struct figure {
        std::uint64_t count = 0;  ///< buffers
        std::uint64_t bytes = 0;  ///< as requested
    };
    /// All counts of a resource.
    struct figures {
        figure live;    ///< buffers that are not dropped yet
        figure peak;    ///< the maximum of each count of `live`
        figure total;   ///< all buffers that were ever made
        figure failed;  ///< allocations that threw
    };
    /// The present counts.
    [[nodiscard]] virtual figures counts() const = 0;
};
/// Counts allocations and drops; any thread may read the counts at any time.
[[nodiscard]] WEIR_EXPORT std::shared_ptr<counting_resource> counting(resource_ptr upstream = {});

/// Selects the allocations that fail on purpose.
struct failures_wanted {
    std::uint64_t at = 0;    ///< this one, counted from 1; 0: no particular one
    double probability = 0;  ///< each with this probability, from 0 to 1
    std::uint64_t seed = 0;  ///< the same seed selects the same allocations
};

/// Throws out_of_memory on purpose.
class WEIR_EXPORT failing_resource : public memory_resource {
public:
    /// The number of allocations that were requested.
    [[nodiscard]] virtual std::uint64_t asked() const noexcept = 0;
    /// The number of allocations that failed on purpose.
    [[nodiscard]] virtual std::uint64_t failed() const noexcept = 0;
};
/// Throws argument_error (not a probability).
[[nodiscard]] WEIR_EXPORT std::shared_ptr<failing_resource> failing(failures_wanted which, resource_ptr upstream = {});

/// Pinned memory for arrays of the CPU. Copies between these and arrays of a CUDA device, on a stream of the CUDA device, are the driver's
/// own, and no thread of the host takes part. The memory is kept for the next array in a separate pool, which `limit` and `stats` do not
/// include; `trim` of the CPU gives it back, which takes effect when the CUDA device has done its present work. On a machine without a
/// CUDA device it is plain memory of the host (rule L6). An allocation throws argument_error on a stream of another kind.
[[nodiscard]] WEIR_EXPORT resource_ptr pinned();

/// Managed memory for arrays of a CUDA device that the host also reaches: host views are the memory itself, and not copies. If host and
/// device cannot use such memory at the same time, a host view waits for the device (rule O6), and nothing may be enqueued there while the
/// view lives. There may be more of it than the device has. Kept and given back as for `pinned`. For a simulated device it is plain
/// memory of the host, which the device uses as its own (rule L6). An allocation throws argument_error on a stream of another kind.
[[nodiscard]] WEIR_EXPORT resource_ptr managed();

/// Memory directly from the device's driver: one driver call for each allocation, and one for each drop, which the reaper makes once the
/// last access is complete. Not part of the pool: its limit and its statistics do not include it.
///
/// On a CUDA device this is the driver's stream-ordered allocator (cuMemAllocAsync), if there is one. The memory is valid for the stream of
/// the allocation and for everything ordered after it. It goes back in the stream that used it last, if no other stream is using it and no
/// other code has that stream. Dropping never waits. `trim` gives back what the driver caches.
[[nodiscard]] WEIR_EXPORT resource_ptr driver_pool();

/// For tests, as a negative control of rule L1: its buffers are freed as in other pools, on the stream on which they were allocated. Of
/// everything that may still use the memory, Weir then remembers only what was in that stream when the last owner went. Uses on other
/// streams, and those of earlier owners, are forgotten, and the memory is reused too early.
[[nodiscard]] WEIR_EXPORT resource_ptr allocating_stream(resource_ptr upstream = {});

}  // namespace memory

}  // namespace weir
