// Adaptors from and to the standard library's memory resources. Layer: memory.
#pragma once

#include <cstddef>
#include <memory>
#include <memory_resource>

#include "weir/detail/raw_memory.hpp"
#include "weir/export.hpp"
#include "weir/memory_resource.hpp"

namespace weir::memory {

/// Memory of a standard memory resource, for buffers and arrays of the CPU. `upstream` knows no streams: it gets memory back once the last
/// operation that uses it is complete, not when the last buffer is dropped, and perhaps on a thread of Weir's. So it must allow calls of
/// several threads at once (as std::pmr::new_delete_resource and synchronized_pool_resource do; monotonic_buffer_resource does not), and
/// must outlive that moment: call synchronize on the CPU before it ends. An allocation throws argument_error on a stream of another device,
/// and what `upstream` throws.
[[nodiscard]] WEIR_EXPORT resource_ptr from_pmr(std::pmr::memory_resource& upstream);

/// Memory of Weir's for containers of the standard library: memory of the CPU, from `upstream`, or from the CPU's pool if that is null. The
/// standard interface knows no streams. So an allocation blocks until former owners' operations on the memory are complete, and the caller
/// must give back only memory that no operation uses any more: operations on such memory must be complete, by a wait or a host view, before
/// the container changes its size or ends. Memory that was not given back before is given back when this object ends. Any thread.
///
/// \code
/// weir::memory::pmr_resource from_pool;
/// std::pmr::vector<float> samples(1 << 20, &from_pool);
/// \endcode
class WEIR_EXPORT pmr_resource final : public std::pmr::memory_resource {
public:
    /// Uses memory of `upstream`; null is the CPU's pool. Allocates nothing.
    explicit pmr_resource(resource_ptr upstream = {});
    ~pmr_resource() override;

private:
    void* do_allocate(std::size_t bytes, std::size_t alignment) override;
    void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override;
    [[nodiscard]] bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override;

    detail::raw_memory memory_;
};

}  // namespace weir::memory
