#pragma once

#include <cstddef>
#include <vector>

#include "backend/backend.hpp"
#include "calls/sparse/structure.hpp"
#include "runtime/devices/device_state.hpp"
#include "weir/detail/passkey.hpp"
#include "weir/device.hpp"
#include "weir/dtype.hpp"

namespace weir::calls {

/// Row offsets and column indices in device memory, copied to the host. For host tasks: making one blocks until they are there. Throws
/// device_error.
class indices_on_host {
public:
    indices_on_host(const device& on, const sparse_system& system, const std::byte* offsets, const std::byte* columns)
        : offset_bytes_((static_cast<std::size_t>(system.n) + 1) * size_of(system.indices)),
          bytes_(offset_bytes_ + static_cast<std::size_t>(system.nonzeros) * size_of(system.indices)) {
        backend::driver& driver = on.state(detail::key).driver();
        driver.fetch(bytes_.data(), offsets, offset_bytes_);
        if (bytes_.size() > offset_bytes_) {
            driver.fetch(bytes_.data() + offset_bytes_, columns, bytes_.size() - offset_bytes_);
        }
    }

    [[nodiscard]] const std::byte* offsets() const noexcept { return bytes_.data(); }
    [[nodiscard]] const std::byte* columns() const noexcept { return bytes_.data() + offset_bytes_; }

    /// @{
    /// As numbers of the system's type.
    template <class Index>
    [[nodiscard]] std::vector<Index> offsets_as() const {
        const auto* const first = reinterpret_cast<const Index*>(offsets());
        return {first, first + offset_bytes_ / sizeof(Index)};
    }
    template <class Index>
    [[nodiscard]] std::vector<Index> columns_as() const {
        const auto* const first = reinterpret_cast<const Index*>(columns());
        return {first, first + (bytes_.size() - offset_bytes_) / sizeof(Index)};
    }
    /// @}

private:
    std::size_t offset_bytes_;
    std::vector<std::byte> bytes_;
};

}  // namespace weir::calls
