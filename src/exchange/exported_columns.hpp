#pragma once

#include <cstddef>
#include <cstdint>

#include "weir/array.hpp"
#include "weir/buffer.hpp"
#include "weir/device.hpp"

namespace weir::exchange {

/// While it lives, consumers of Arrow hold the memory of an array. A consumer hands it on in columns of its own, so that the address is all
/// that tells where the memory is from.
class exported_column_memory {
public:
    /// Throws std::bad_alloc.
    explicit exported_column_memory(const array& x);
    ~exported_column_memory();
    exported_column_memory(const exported_column_memory&) = delete;
    exported_column_memory& operator=(const exported_column_memory&) = delete;

    /// The buffer among those that consumers hold now which has these bytes, and went out as memory of that device; no memory if there is none.
    [[nodiscard]] static buffer found_at(const device& on, const std::byte* first, std::size_t bytes);

private:
    std::uintptr_t at_ = 0;  ///< 0: there is no memory
    std::uint64_t id_ = 0;   ///< of the buffer
    device on_;
};

}  // namespace weir::exchange
