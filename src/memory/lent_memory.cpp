#include "memory/lent_memory.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "backend/timeline.hpp"
#include "observe/observers.hpp"
#include "order/history.hpp"
#include "runtime/diagnostics/debug_log.hpp"
#include "runtime/host/fork.hpp"
#include "weir/error.hpp"

namespace weir {

detail::lender::~lender() = default;

namespace memory {

namespace {

/// Calls the owner's `let_go` and destroys it.
void let_go(std::unique_ptr<detail::lender> owner) noexcept {
    try {
        owner->let_go();
    } catch (const std::exception& thrown) {
        runtime::debug_log("the owner of wrapped memory threw as it was let go of:");
        runtime::debug_log(thrown.what());
    } catch (...) {
        runtime::debug_log("the owner of wrapped memory threw as it was let go of");
    }
}

void expect_range(const void* pointer, std::size_t bytes) {
    if (pointer == nullptr) {
        throw argument_error("wrap of " + std::to_string(bytes) +
                             " bytes at a null pointer: memory to wrap must be there; 0 bytes may be null");
    }
    if (reinterpret_cast<std::uintptr_t>(pointer) > std::numeric_limits<std::uintptr_t>::max() - bytes) {
        throw argument_error("wrap of " + std::to_string(bytes) +
                             " bytes: the range goes beyond the end of the address space; is the size right?");
    }
}

}  // namespace

lent_memory::lent_memory(backend::memory_chunk memory, std::size_t bytes, runtime::device_state& device,
                         std::unique_ptr<detail::lender> owner, ends_in_order* ends)
    : device_(&device), owner_(std::move(owner)), ends_(ends) {
    described_.renew(bytes);
    described_.address = memory.address;
    described_.to_host = memory.to_host;
    described_.capacity = bytes;
    described_.lent = this;
    described_.belong_to(&device.memory_space());
    if (device.kind() == device_kind::registered && device.driver().host_reaches_memory()) {
        described_.be_reached_by(runtime::memory_reach::host_too);
    }
}

void* lent_memory::operator new(std::size_t size, std::align_val_t alignment) {
    const auto boundary = static_cast<std::size_t>(alignment);
    std::size_t room = size + boundary;
    void* const whole = ::operator new(room + sizeof(void*));
    void* object = static_cast<void**>(whole) + 1;
    static_cast<void**>(std::align(boundary, size, object, room))[-1] = whole;
    return object;
}

void lent_memory::operator delete(void* object, std::align_val_t /*alignment*/) noexcept {
    ::operator delete(static_cast<void**>(object)[-1]);
}

void lent_memory::give_back() noexcept {
    described_.history.die(described_.capacity, backend::timeline_table::instance());
    if (described_.history.empty()) {
        release();
    } else {
        runtime::reaper::push(*this);
    }
}

std::optional<frontiers::point> lent_memory::pending() noexcept {
    described_.history.prune(backend::timeline_table::instance());
    const std::span<const order::past_access> left = described_.history.accesses();
    if (left.empty()) {
        return std::nullopt;
    }
    const frontiers::point first = left.front().when.at;
    if (ends_ != nullptr) {
        frontiers::point last = first;
        bool of_one = true;
        for (const order::past_access& each : left) {
            of_one = of_one && each.when.at.timeline == first.timeline;
            last.at = std::max(last.at, each.when.at.at);
        }
        if (of_one && ends_->end_behind(last)) {
            return std::nullopt;
        }
    }
    return first;
}

void lent_memory::release() noexcept {
    std::unique_ptr<detail::lender> owner = std::move(owner_);
    delete this;  // NOLINT(cppcoreguidelines-owning-memory): it has owned itself since it was made
    let_go(std::move(owner));
}

detail::owner<block> lend(backend::memory_chunk memory, std::size_t bytes, runtime::device_state& on,
                          std::unique_ptr<detail::lender> owner, const observe::stream_info* stream,
                          const source_location& where, ends_in_order* ends) {
    runtime::fork_guard::expect_usable();
    if (bytes == 0) {
        let_go(std::move(owner));
        return {};
    }
    expect_range(memory.address, bytes);
    runtime::reaper::start();
    auto* const lent = new lent_memory(memory, bytes, on, std::move(owner), ends);
    detail::owner<block> made(&lent->described());
    observe::observers::notify([&](observe::observer& one) {
        one.allocated({made->id(), made->size(), on.driver().name(), reinterpret_cast<std::uintptr_t>(made->address),
                       stream, where, observe::sharing::imported});
    });
    return made;
}

}  // namespace memory

}  // namespace weir
