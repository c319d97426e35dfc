// Memory that is given back by its address, as in other libraries' allocators. Layer: memory.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "weir/buffer.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/device.hpp"
#include "weir/export.hpp"
#include "weir/memory_resource.hpp"
#include "weir/stream.hpp"

namespace weir::detail {

/// Buffers of one resource, found by the addresses of their memory, which the program uses without Weir. Memory that was not given back
/// when this is destroyed counts as given back with nothing pending. Any thread.
class WEIR_EXPORT raw_memory {
public:
    /// `upstream` may be null: the memory is then from the pools.
    explicit raw_memory(memory::resource_ptr upstream) noexcept : upstream_(std::move(upstream)) {}
    ~raw_memory();
    raw_memory(const raw_memory&) = delete;
    raw_memory& operator=(const raw_memory&) = delete;

    /// Memory for work of `on` that comes after this call in the stream. Does not block. 0 bytes count as 1. Throws what
    /// memory_resource::allocate throws.
    [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment, const stream_ref& on);
    /// The same on a stream that its device knows by this handle.
    [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment, native_stream on, const weir::device& of);
    /// Memory that any stream, or the host if it reaches the memory, may use at once. Blocks until former owners' work on it is complete.
    [[nodiscard]] void* allocate_sync(std::size_t bytes, std::size_t alignment, const weir::device& of);

    /// Gives the memory back. Work that is in the stream by now may still use it: its next owner comes after that. If Weir cannot record
    /// that, because there is no memory for the record or no such stream, the call blocks until the device is idle.
    void deallocate(void* memory, native_stream by, const weir::device& of) noexcept;
    /// Gives back memory that nothing uses any more. Ignores addresses that were not allocated here.
    void deallocate_sync(void* memory) noexcept;

private:
    [[nodiscard]] void* keep(buffer made);
    [[nodiscard]] buffer take(void* memory) noexcept;

    const memory::resource_ptr upstream_;
    detail::mutex mutex_;  ///< guards buffers_; a leaf in the lock order
    std::unordered_map<void*, buffer> buffers_;
};

}  // namespace weir::detail
