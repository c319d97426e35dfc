#include "weir/buffer.hpp"

#include <array>
#include <charconv>
#include <mutex>
#include <utility>

#include "backend/backend.hpp"
#include "backend/timeline.hpp"
#include "memory/access.hpp"
#include "memory/device_memory.hpp"
#include "memory/lent_memory.hpp"
#include "runtime/diagnostics/watchdog.hpp"
#include "weir/memory_resource.hpp"

namespace weir {

buffer::buffer(std::size_t bytes, const stream_ref& on, source_location where)
    : buffer(detail::key, bytes, on, on, where) {}

buffer::buffer(detail::passkey /*key*/, std::size_t bytes, const stream_ref& on, const stream_ref& first,
               const source_location& where) {
    if (bytes == 0) {
        return;
    }
    if (const memory::use* const scope = memory::use::innermost(detail::key, on.state(detail::key).device())) {
        *this = memory_resource::allocate_from(scope->resource(detail::key), bytes, memory_resource::default_alignment,
                                               on, where);
    } else {
        block_ = memory::allocate(memory::pool_of(on.state(detail::key).device()), bytes, on.state(detail::key),
                                  first.state(detail::key), where);
    }
}

buffer buffer::at_hand(std::size_t bytes, const stream_ref& on, source_location where) {
    buffer made;
    if (bytes != 0 && memory::use::innermost(detail::key, on.state(detail::key).device()) == nullptr) {
        made.block_ = memory::allocate_at_hand(memory::pool_of(on.state(detail::key).device()), bytes,
                                               on.state(detail::key), where);
    }
    return made;
}

buffer buffer::wrap_lent(void* pointer, std::size_t bytes, const weir::device& on,
                         std::unique_ptr<detail::lender> owner, const source_location& where) {
    return buffer(detail::key, memory::lend({static_cast<std::byte*>(pointer), 0}, bytes, on.state(detail::key),
                                            std::move(owner), nullptr, where));
}

buffer::buffer(detail::passkey /*key*/, detail::owner<memory::block> memory) noexcept : block_(std::move(memory)) {}
buffer::buffer() noexcept = default;
buffer::buffer(const buffer&) noexcept = default;
buffer::buffer(buffer&&) noexcept = default;
buffer& buffer::operator=(const buffer&) noexcept = default;
buffer& buffer::operator=(buffer&&) noexcept = default;
buffer::~buffer() = default;

std::byte* buffer::data() const noexcept { return block_ ? block_->address + block_->to_host : nullptr; }

std::ptrdiff_t buffer::to_host(detail::passkey /*key*/) const noexcept { return block_ ? block_->to_host : 0; }

std::byte* buffer::device_data() const noexcept { return block_ ? block_->address : nullptr; }

buffer::tracked_memory buffer::tracked(detail::passkey /*key*/) const noexcept {
    return block_ ? tracked_memory{block_.get(), block_->address, block_->to_host} : tracked_memory{};
}

bool buffer::host_reachable(detail::passkey /*key*/) const noexcept {
    return block_ ? block_->source().host_reaches_memory() : device().state(detail::key).driver().host_reaches_memory();
}

bool buffer::pinned(detail::passkey /*key*/) const noexcept { return block_ && block_->source().is_pinned(); }

void buffer::await_idle_device(detail::passkey /*key*/, const source_location& where) const {
    if (!block_ || !block_->source().needs_idle_device()) {
        return;
    }
    // Observers do not see this wait: the program did not ask for it and must not rely on it.
    for (const frontiers::point end : block_->device().ends(where)) {
        const runtime::watchdog::waits_in here(where);
        backend::timeline_table::instance().host_wait(end);
    }
    block_->source().await_idle_device();
}

void buffer::fetch(detail::passkey /*key*/, std::byte* to, const std::byte* from, std::size_t bytes) const {
    device().state(detail::key).driver().fetch(to, from, bytes);
}

std::size_t buffer::bytes() const noexcept { return block_ ? block_->size() : 0; }

device buffer::device() const noexcept { return block_ ? weir::device(detail::key, block_->device()) : cpu(); }

std::uint64_t buffer::unique_id() const noexcept { return block_ ? block_->id() : 0; }

bool buffer::ready(bool to_write) const {
    return !block_ || memory::is_ready_for(*block_, {0, block_->size()},
                                           to_write ? order::access_mode::write : order::access_mode::read);
}

void buffer::set_ordering(std::optional<ordering_mode> mode) const noexcept {
    if (block_) {
        block_->set_ordering(mode);
    }
}

std::optional<ordering_mode> buffer::ordering() const noexcept { return block_ ? block_->ordering() : std::nullopt; }

std::string buffer::to_string() const {
    if (!block_) {
        return "<weir.buffer of nothing>";
    }
    std::array<char, 2 + 2 * sizeof(std::uintptr_t)> hex{};
    const auto end = std::to_chars(hex.begin(), hex.end(), reinterpret_cast<std::uintptr_t>(data()), 16);
    return "<weir.buffer #" + std::to_string(unique_id()) + " " + std::to_string(bytes()) + " bytes at 0x" +
           std::string(hex.begin(), end.ptr) + " on " + device().name() + ">";
}

runtime::resource* buffer::resource(detail::passkey /*key*/) const noexcept { return block_.get(); }

}  // namespace weir
