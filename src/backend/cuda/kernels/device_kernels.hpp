#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "backend/capability/kernels.hpp"
#include "backend/cuda/device/context.hpp"
#include "weir/detail/launch_shape.hpp"
#include "weir/detail/task.hpp"

namespace weir::backend::cuda {

/// CUDA C++, PTX and cubins on one device.
class device_kernels final : public capability::kernels {
public:
    explicit device_kernels(const context& in) noexcept : in_(&in) {}
    ~device_kernels() = default;

    [[nodiscard]] capability::compiled_program compile(const capability::compile_request& what) const override;
    [[nodiscard]] std::unique_ptr<capability::loaded_code> load(const std::string& image,
                                                                const std::string& what) const override;
    [[nodiscard]] function_handle find(const std::string& source, const char* name,
                                       std::span<const std::string> options) const override;
    void load_function(function_handle what) const override;
    [[nodiscard]] capability::function_facts facts_of(function_handle what) const override;
    [[nodiscard]] std::string name_of(function_handle what) const override;
    void allow_shared_bytes(function_handle what, std::size_t bytes) const override;
    [[nodiscard]] capability::launch_limits limits() const override;
    [[nodiscard]] std::size_t most_shared_bytes() const override;
    [[nodiscard]] std::size_t most_resident_blocks(function_handle what, std::size_t threads,
                                                   std::size_t shared_bytes) const override;
    [[nodiscard]] int multiprocessors() const noexcept override;
    [[nodiscard]] std::string architecture() const override;
    void launch(function_handle what, detail::launch_shape& as, void* const* arguments,
                detail::queue_handle into) const override;
    void fill(std::byte* to, std::uint32_t value, std::size_t bytes, std::size_t count,
              detail::queue_handle into) const override;

private:
    const context* in_;
};

}  // namespace weir::backend::cuda
