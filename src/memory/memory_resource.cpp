#include "weir/memory_resource.hpp"

#include <string>
#include <utility>

#include "memory/device_memory.hpp"
#include "memory/drop_notice.hpp"
#include "weir/error.hpp"

namespace weir {

memory_resource::~memory_resource() = default;

buffer memory_resource::allocate(std::size_t bytes, const stream_ref& on, source_location where) {
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
        return make(bytes, on, where);
    }();
    if (made.bytes() < bytes || &made.device().state() != &on.device().state()) {
        throw state_error("a memory resource was asked for " + std::to_string(bytes) + " bytes of " +
                          on.device().name() + " and made " + std::to_string(made.bytes()) + " bytes of " +
                          made.device().name());
    }
    memory::block& described = static_cast<memory::block&>(*made.resource());  // every buffer's is one
    notice->id = described.id();
    notice->bytes = bytes;
    notice->next = std::move(described.notices);
    described.notices = std::move(notice);
    return made;
}

buffer memory_resource::allocate_from(const std::shared_ptr<memory_resource>& upstream, std::size_t bytes,
                                      const stream_ref& on, const source_location& where) {
    return upstream ? upstream->allocate(bytes, on, where) : buffer(memory::allocate(bytes, on.state(), where));
}

namespace memory {

namespace {

use*& innermost_of_all() noexcept {
    thread_local use* one = nullptr;
    return one;
}

}  // namespace

void drop_notice::tell(std::unique_ptr<drop_notice> list) noexcept {
    const none_in_use none;
    while (list) {
        list->to->dropped(list->id, list->bytes);
        list = std::move(list->next);
    }
}

none_in_use::none_in_use() noexcept : suspended_(std::exchange(innermost_of_all(), nullptr)) {}

none_in_use::~none_in_use() { innermost_of_all() = suspended_; }

use::use(std::shared_ptr<memory_resource> resource) noexcept
    : resource_(std::move(resource)), device_(nullptr), outer_(std::exchange(innermost_of_all(), this)) {}

use::use(std::shared_ptr<memory_resource> resource, const device& of) noexcept
    : resource_(std::move(resource)), device_(&of.state()), outer_(std::exchange(innermost_of_all(), this)) {}

use::~use() {
    // Usually the innermost; scopes in containers may end in any order.
    for (use** link = &innermost_of_all(); *link != nullptr; link = &(*link)->outer_) {
        if (*link == this) {
            *link = outer_;
            return;
        }
    }
}

const use* use::innermost(const runtime::device_state& of) noexcept {
    const use* one = innermost_of_all();
    while (one != nullptr && one->device_ != nullptr && one->device_ != &of) {
        one = one->outer_;
    }
    return one;
}

}  // namespace memory

}  // namespace weir
