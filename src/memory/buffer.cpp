#include "weir/buffer.hpp"

#include <mutex>

#include "memory/access.hpp"
#include "memory/device_memory.hpp"

namespace weir {

buffer::buffer(std::size_t bytes, const stream_ref& on, source_location where) {
    if (bytes != 0) {
        block_ = memory::allocate(bytes, on.state(), where);
    }
}

buffer::buffer() noexcept = default;
buffer::buffer(const buffer&) noexcept = default;
buffer::buffer(buffer&&) noexcept = default;
buffer& buffer::operator=(const buffer&) noexcept = default;
buffer& buffer::operator=(buffer&&) noexcept = default;
buffer::~buffer() = default;

std::byte* buffer::data() const noexcept { return block_ ? block_->address : nullptr; }

std::size_t buffer::bytes() const noexcept { return block_ ? block_->size() : 0; }

device buffer::device() const noexcept { return block_ ? weir::device(block_->home->device()) : cpu(); }

std::uint64_t buffer::unique_id() const noexcept { return block_ ? block_->id() : 0; }

bool buffer::ready(bool to_write) const {
    return !block_ || memory::nothing_pending(*block_, {0, block_->size()},
                                              to_write ? order::access_mode::write : order::access_mode::read);
}

void buffer::set_ordering(std::optional<ordering_mode> mode) const noexcept {
    if (block_) {
        block_->set_ordering(mode);
    }
}

runtime::resource* buffer::resource() const noexcept { return block_.get(); }

}  // namespace weir
