#pragma once

#include <cstddef>
#include <functional>

#include "backend/capability/copies.hpp"
#include "backend/cuda/device/device_context.hpp"
#include "weir/detail/task.hpp"

namespace weir::backend::cuda {

/// Copies by the streams of one device.
class device_copies final : public capability::copies {
public:
    explicit device_copies(device_context& in) noexcept : in_(&in) {}
    ~device_copies() = default;

    void copy(std::byte* to, const std::byte* from, std::size_t bytes, detail::queue_handle into) const override;
    void copy_from_host(std::byte* to, const std::byte* from, std::size_t bytes,
                        detail::queue_handle into) const override;
    void copy_between(std::byte* to, const capability::copies& of_to, const std::byte* from,
                      const capability::copies& of_from, std::size_t bytes, detail::queue_handle into) const override;
    [[nodiscard]] capability::staging& staging() const noexcept override { return in_->chunks; }
    void run_now(const std::function<void(detail::queue_handle)>& work) const override;

private:
    device_context* in_;
};

}  // namespace weir::backend::cuda
