// Weir's memory for libraries that use a resource of CCCL's (cuda::mr, RMM). Layer: memory.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "weir/detail/raw_memory.hpp"
#include "weir/device.hpp"
#include "weir/memory_resource.hpp"
#include "weir/stream.hpp"

#if __has_include(<cuda/version>) && __has_include(<cuda/memory_resource>) && __has_include(<cuda/stream_ref>)
#include <cuda/version>
#if CCCL_VERSION >= 3001000  // older ones have another concept under the same name

#include <cuda/memory_resource>
#include <cuda/stream_ref>

namespace weir::memory {

/// Memory of a CUDA device as a model of CCCL's concept `cuda::mr::resource` (CCCL 3.1 and later, and RMM, which takes such resources).
/// The memory is from `upstream`, or from the device's pool if that is null. Defined only if CCCL's headers are available. Copies are the
/// same resource, and equal. Any thread; for each stream one thread at a time, as in CUDA.
///
/// `allocate` and `deallocate` follow the order of the stream, whose other work Weir does not see: work that is put into the stream after
/// `allocate` may use the memory, and its next owner, on any stream, comes after everything in the stream at `deallocate`. The stream
/// counts as an adopted one (stream::adopt) meanwhile. The functions ending in `sync` are for memory that any stream may use at once;
/// `allocate_sync` blocks until former owners' work on the memory is complete.
///
/// Memory must be given back before the last copy ends. Alignments beyond memory_resource::default_alignment are argument_errors, and so
/// are handles of streams of other devices.
class cuda_resource {
public:
    /// Throws what `cuda()` throws.
    explicit cuda_resource(weir::device of = cuda(), resource_ptr upstream = {})
        : device_(of), memory_(std::make_shared<detail::raw_memory>(std::move(upstream))) {}

    [[nodiscard]] void* allocate(::cuda::stream_ref on, std::size_t bytes,
                                 std::size_t alignment = memory_resource::default_alignment) {
        return memory_->allocate(bytes, alignment, native_stream{on.get()}, device_);
    }
    void deallocate(::cuda::stream_ref by, void* memory, std::size_t /*bytes*/,
                    std::size_t /*alignment*/ = memory_resource::default_alignment) noexcept {
        memory_->deallocate(memory, native_stream{by.get()}, device_);
    }
    [[nodiscard]] void* allocate_sync(std::size_t bytes, std::size_t alignment = memory_resource::default_alignment) {
        return memory_->allocate_sync(bytes, alignment, device_);
    }
    void deallocate_sync(void* memory, std::size_t /*bytes*/,
                         std::size_t /*alignment*/ = memory_resource::default_alignment) noexcept {
        memory_->deallocate_sync(memory);
    }

    friend bool operator==(const cuda_resource& a, const cuda_resource& b) noexcept { return a.memory_ == b.memory_; }
    /// The property that libraries query: device code reaches the memory.
    friend constexpr void get_property(const cuda_resource&, ::cuda::mr::device_accessible) noexcept {}

private:
    weir::device device_;
    std::shared_ptr<detail::raw_memory> memory_;
};

}  // namespace weir::memory

#endif
#endif
