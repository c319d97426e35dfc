#pragma once

#include <functional>

#include "backend/capability/libraries.hpp"
#include "backend/cuda/device/context.hpp"

namespace weir::backend::cuda {

/// NVIDIA libraries on one device: they use the current context.
class device_libraries final : public capability::libraries {
public:
    explicit device_libraries(const context& in) noexcept : in_(&in) {}
    ~device_libraries() = default;

    [[nodiscard]] int number() const noexcept override { return in_->number(); }
    [[nodiscard]] int version() const override;
    void run_in_context(const std::function<void()>& calls) const override;
    void run_work(void (*work)(const void* with), const void* with) const override;

private:
    const context* in_;
};

}  // namespace weir::backend::cuda
