#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "array/kernel_signature.hpp"
#include "backend/cuda/device_context.hpp"
#include "backend/cuda/driver_api.hpp"
#include "backend/cuda/loaded_module.hpp"
#include "backend/task_threads.hpp"
#include "frontier/point.hpp"
#include "runtime/reaper.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/kernel.hpp"

namespace weir::detail {

/// A kernel that is loaded on a device. Launches do not own it. When the last `weir::kernel` goes, the code is *retired*: the reaper
/// waits for what Weir has enqueued on the device up to then, its launches included, and another thread unloads the code, since
/// the driver may block there. So dropping a kernel never waits, and later work does not keep it.
///
/// What each launch asks is on two cache lines.
class alignas(64) kernel_code {
public:
    /// `code` is null if others loaded it. In no context. Throws device_error.
    kernel_code(device on, backend::cuda::device_context& in, std::string name,
                std::unique_ptr<backend::cuda::loaded_module> code, backend::cuda::function_handle function);

    [[nodiscard]] const device& on() const noexcept { return device_; }
    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    [[nodiscard]] backend::cuda::function_handle function() const noexcept { return function_; }
    [[nodiscard]] backend::cuda::device_context& in() const noexcept { return *in_; }
    [[nodiscard]] int max_threads() const noexcept { return max_threads_; }
    /// The bytes of each parameter, if the driver tells.
    [[nodiscard]] const std::optional<std::vector<std::size_t>>& parameter_bytes() const noexcept {
        return parameter_bytes_;
    }
    /// The same as `sizes_in_one` says it; 0 if that or the driver does not.
    [[nodiscard]] std::uint64_t parameter_sizes() const noexcept { return parameter_sizes_; }

    /// Throws argument_error if the kernel cannot be launched so.
    [[nodiscard]] launch_shape shape_of(const launch_config& config) const {
        if (!takes_row(config)) {
            expect_blocks(config);
            if (config.shared_bytes > shared_.load(std::memory_order_relaxed)) {
                have_shared(config.shared_bytes);
            }
        }
        return numbers_of(config);
    }
    /// Whether it is a launch along one axis, as a rule, of which nothing else is to be seen to.
    [[nodiscard, gnu::always_inline]] bool takes_row(const launch_config& config) const noexcept {
        const dimensions& grid = config.grid;
        const dimensions& block = config.block;
        // 0 wraps around to more than there can be.
        const bool is_row = ((grid.y - 1) | (grid.z - 1) | (block.y - 1) | (block.z - 1)) == 0;
        return is_row && grid.x - 1 < most_blocks_[0] && block.x - 1 < most_in_row_ &&
               config.shared_bytes <= shared_.load(std::memory_order_relaxed);
    }
    /// Of one that can be.
    [[nodiscard, gnu::always_inline]] static launch_shape numbers_of(const launch_config& config) noexcept {
        const auto narrow = [](std::size_t number) { return static_cast<unsigned>(number); };
        const dimensions& grid = config.grid;
        const dimensions& block = config.block;
        return {{narrow(grid.x), narrow(grid.y), narrow(grid.z)},
                {narrow(block.x), narrow(block.y), narrow(block.z)},
                narrow(config.shared_bytes)};
    }

    /// The last owner is gone. Ends this object, now or later. Neither waits nor fails, on any thread.
    void retire() noexcept;

private:
    /// Part of the kernel, so that a drop allocates nothing.
    class unloading final : public runtime::retired, public backend::blocking_work {
    public:
        explicit unloading(kernel_code& what);
        ~unloading() override = default;

    private:
        [[nodiscard]] std::optional<frontiers::point> pending() noexcept override;
        void release() noexcept override;
        void run_blocking() noexcept override;

        kernel_code* what_;
        bool has_tails_ = false;
        std::vector<frontiers::point> tails_;  ///< ends of the device's streams, after the kernel was retired
    };

    void expect_blocks(const launch_config& config) const;
    [[noreturn]] void refuse_shape(const launch_config& config) const;
    void have_shared(std::size_t bytes) const;

    device device_;
    backend::cuda::device_context* in_;
    backend::cuda::function_handle function_;
    std::array<std::uint32_t, 3> most_blocks_{};   ///< along each axis
    std::array<std::uint32_t, 3> most_threads_{};  ///< of a block, along each axis
    std::uint32_t most_in_row_ = 0;                ///< threads of a block, along the first axis alone
    int max_threads_ = 0;                          ///< of a block
    mutable std::atomic<std::size_t> shared_{0};   ///< bytes that a launch may ask for
    std::uint64_t parameter_sizes_ = 0;
    std::optional<std::vector<std::size_t>> parameter_bytes_;
    std::string name_;
    std::unique_ptr<backend::cuda::loaded_module> code_;
    std::size_t own_shared_ = 0;   ///< bytes that the kernel itself declares
    mutable detail::mutex mutex_;  ///< of those who raise shared_; a leaf in the lock order
    unloading unloading_;
};

struct kernel_parameters {
    std::vector<kernels::parameter> all;
};

/// Shared ownership of a new one. Throws device_error, out_of_memory, std::bad_alloc, std::system_error (no thread can be had).
[[nodiscard]] std::shared_ptr<const kernel_code> make_kernel_code(device on, backend::cuda::device_context& in,
                                                                  std::string name,
                                                                  std::unique_ptr<backend::cuda::loaded_module> code,
                                                                  backend::cuda::function_handle function);

}  // namespace weir::detail
