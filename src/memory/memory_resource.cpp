#include "weir/memory_resource.hpp"

#include <bit>
#include <cstdint>
#include <string>
#include <utility>

#include "memory/device_memory.hpp"
#include "memory/drop_notice.hpp"
#include "weir/error.hpp"

namespace weir {

memory_resource::~memory_resource() = default;

namespace {

/// Throws state_error unless the resource has made what it was asked for.
void expect_made(const buffer& made, std::size_t bytes, std::size_t alignment, const stream_ref& on) {
    if (made.bytes() < bytes || made.device() != on.device()) {
        throw state_error("a memory resource was asked for " + std::to_string(bytes) + " bytes of " +
                          on.device().name() + " and made " + std::to_string(made.bytes()) + " bytes of " +
                          made.device().name());
    }
    if (reinterpret_cast<std::uintptr_t>(made.device_data()) % alignment != 0) {
        throw state_error("a memory resource was asked for memory aligned to " + std::to_string(alignment) +
                          " bytes and made memory that is not: its `make` must take the alignment into account");
    }
}

}  // namespace

buffer memory_resource::allocate(std::size_t bytes, const stream_ref& on, std::size_t alignment,
                                 source_location where) {
    if (!std::has_single_bit(alignment)) {
        throw argument_error("an alignment of " + std::to_string(alignment) + " bytes: pass a power of two, such as " +
                             std::to_string(default_alignment));
    }
    if (bytes == 0) {
        return {};
    }
    auto notice = std::make_unique<memory::drop_notice>();
    notice->to = weak_from_this().lock();
    if (!notice->to) {
        throw state_error("a memory resource that no std::shared_ptr owns: make it with std::make_shared");
    }
    buffer made = [&] {
        const memory::none_in_use none;
        return make(bytes, alignment, on, where);
    }();
    expect_made(made, bytes, alignment, on);
    // The resource of every buffer is a block.
    memory::block& described = static_cast<memory::block&>(*made.resource(detail::key));
    notice->id = described.id();
    notice->bytes = bytes;
    notice->next = std::move(described.notices);
    described.notices = std::move(notice);
    return made;
}

buffer memory_resource::allocate_from(const std::shared_ptr<memory_resource>& upstream, std::size_t bytes,
                                      std::size_t alignment, const stream_ref& on, const source_location& where) {
    if (upstream) {
        return upstream->allocate(bytes, on, alignment, where);
    }
    memory::expect_alignment(alignment);
    runtime::stream_state& stream = on.state(detail::key);
    return buffer(detail::key, memory::allocate(memory::pool_of(stream.device()), bytes, stream, stream, where));
}

namespace memory {

namespace {

use*& innermost_of_all() noexcept {
    thread_local use* one = nullptr;
    return one;
}

}  // namespace

void expect_alignment(std::size_t alignment) {
    if (alignment > memory_resource::default_alignment) {
        throw argument_error(
            "memory aligned to " + std::to_string(alignment) + " bytes is wanted, and pools and drivers align to " +
            std::to_string(memory_resource::default_alignment) +
            ": ask for a smaller alignment, or for more bytes and use those from an aligned address on");
    }
}

void drop_notice::tell(std::unique_ptr<drop_notice> list) noexcept {
    const none_in_use none;
    while (list) {
        list->to->dropped(list->id, list->bytes);
        list = std::move(list->next);
    }
}

void drop_notice::show(drop_notice& list, const buffer& memory) noexcept {
    const none_in_use none;
    for (drop_notice* one = &list; one != nullptr; one = one->next.get()) {
        one->memory_was_shown = true;
    }
    for (drop_notice* one = &list; one != nullptr; one = one->next.get()) {
        one->to->dropping(memory);
    }
}

none_in_use::none_in_use() noexcept : suspended_(std::exchange(innermost_of_all(), nullptr)) {}

none_in_use::~none_in_use() { innermost_of_all() = suspended_; }

use::use(std::shared_ptr<memory_resource> resource) noexcept
    : resource_(std::move(resource)), device_(nullptr), outer_(std::exchange(innermost_of_all(), this)) {}

use::use(std::shared_ptr<memory_resource> resource, const device& of)
    : resource_(std::move(resource)),
      device_(&of.state(detail::key)),
      outer_(std::exchange(innermost_of_all(), this)) {}

use::~use() {
    // Usually the innermost; scopes in containers may end in any order.
    for (use** link = &innermost_of_all(); *link != nullptr; link = &(*link)->outer_) {
        if (*link == this) {
            *link = outer_;
            return;
        }
    }
}

const use* use::innermost(detail::passkey /*key*/, const runtime::device_state& of) noexcept {
    const use* one = innermost_of_all();
    while (one != nullptr && one->device_ != nullptr && one->device_ != &of) {
        one = one->outer_;
    }
    return one;
}

}  // namespace memory

}  // namespace weir
