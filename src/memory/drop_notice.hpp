#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "weir/memory_resource.hpp"

namespace weir::memory {

/// Who is to be told when a buffer is dropped: one for each resource that the memory came through, outermost first. Keeps
/// the resource alive.
struct drop_notice {
    std::shared_ptr<memory_resource> to;
    std::uint64_t id = 0;
    std::size_t bytes = 0;
    std::unique_ptr<drop_notice> next;

    /// Tells all in the list.
    static void tell(std::unique_ptr<drop_notice> list) noexcept;
};

/// While it lives, no resource is in use on the calling thread.
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
