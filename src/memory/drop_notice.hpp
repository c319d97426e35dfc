#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "weir/memory_resource.hpp"

namespace weir::memory {

/// A notification for the drop of a buffer: one for each resource that the memory came through, outermost first. Keeps the resource
/// alive.
struct drop_notice {
    std::shared_ptr<memory_resource> to;
    std::uint64_t id = 0;
    std::size_t bytes = 0;
    bool memory_was_shown = false;  ///< memory_resource::dropping was called
    std::unique_ptr<drop_notice> next;

    /// Calls memory_resource::dropped of each resource in the list.
    static void tell(std::unique_ptr<drop_notice> list) noexcept;
    /// Calls memory_resource::dropping of each resource in the list, which stays as it is.
    static void show(drop_notice& list, const buffer& memory) noexcept;
};

/// While it lives, no resource is in use (memory::use) on the calling thread.
class none_in_use {
public:
    none_in_use() noexcept;
    ~none_in_use();
    none_in_use(const none_in_use&) = delete;
    none_in_use& operator=(const none_in_use&) = delete;

private:
    use* suspended_;
};

}  // namespace weir::memory
