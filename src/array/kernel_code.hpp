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
#include "backend/capability/kernels.hpp"
#include "backend/task_threads.hpp"
#include "frontier/point.hpp"
#include "runtime/lifetime/reaper.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/kernel.hpp"

namespace weir::detail {

/// A kernel that is loaded on a device. Launches do not own it. When the last `weir::kernel` is destroyed, the code is *retired*: the
/// reaper waits for what Weir has enqueued on the device up to then, its launches included, and another thread unloads the code, since
/// the driver may block there. So dropping a kernel never waits, and later work does not delay the unloading.
///
/// The members that each launch reads are on two cache lines.
class alignas(64) kernel_code {
public:
    /// `code` is null if other code loaded it. Throws device_error.
    kernel_code(device on, const backend::capability::kernels& in, std::string name,
                std::unique_ptr<backend::capability::loaded_code> code, backend::capability::function_handle function);

    [[nodiscard]] const device& on() const noexcept { return device_; }
    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    [[nodiscard]] backend::capability::function_handle function() const noexcept { return function_; }
    [[nodiscard]] const backend::capability::kernels& in() const noexcept { return *in_; }
    [[nodiscard]] int max_threads() const noexcept { return max_threads_; }
    /// The size of each parameter in bytes, if the driver reports it.
    [[nodiscard]] const std::optional<std::vector<std::size_t>>& parameter_bytes() const noexcept {
        return parameter_bytes_;
    }
    /// The same in the form of `sizes_in_one`; 0 if that cannot hold them or the driver does not report them.
    [[nodiscard]] std::uint64_t parameter_sizes() const noexcept { return parameter_sizes_; }

    /// Throws argument_error if the kernel cannot be launched with this configuration.
    [[nodiscard]] launch_shape shape_of(const launch_config& config) const {
        if (!takes_row(config)) {
            expect_shape(config);
        }
        return numbers_of(config);
    }
    /// Whether it is a launch along one axis, as most are, that needs no further checks.
    [[nodiscard, gnu::always_inline]] bool takes_row(const launch_config& config) const noexcept {
        const dimensions& grid = config.grid;
        const dimensions& block = config.block;
        // 0 wraps around to more than the maximum.
        const bool is_row = ((grid.y - 1) | (grid.z - 1) | (block.y - 1) | (block.z - 1)) == 0;
        return is_row && !is_special(config) && grid.x - 1 < most_blocks_[0] && block.x - 1 < most_in_row_ &&
               config.shared_bytes <= shared_.load(std::memory_order_relaxed);
    }
    /// Whether it is cooperative, or in clusters of another size than the kernel's own.
    [[nodiscard, gnu::always_inline]] static bool is_special(const launch_config& config) noexcept {
        const dimensions& cluster = config.cluster;
        return (((cluster.x - 1) | (cluster.y - 1) | (cluster.z - 1)) != 0) | config.cooperative;
    }
    /// See kernel::max_cooperative_blocks.
    [[nodiscard]] std::size_t most_cooperative_blocks(const dimensions& block, std::size_t shared_bytes) const;
    /// Whether a launch may request so much without a call of the driver.
    [[nodiscard]] bool allows_shared_bytes(std::size_t bytes) const noexcept {
        return bytes <= shared_.load(std::memory_order_relaxed);
    }
    /// The shape of a configuration that can be launched.
    [[nodiscard, gnu::always_inline]] static launch_shape numbers_of(const launch_config& config) noexcept {
        const auto narrow = [](std::size_t number) { return static_cast<unsigned>(number); };
        const dimensions& grid = config.grid;
        const dimensions& block = config.block;
        launch_shape made{{narrow(grid.x), narrow(grid.y), narrow(grid.z)},
                          {narrow(block.x), narrow(block.y), narrow(block.z)},
                          narrow(config.shared_bytes)};
        if (is_special(config)) [[unlikely]] {
            made.special = special_number(config);
        }
        return made;
    }

    /// Called when the last owner is gone. Destroys this object, now or later. Neither waits nor fails, on any thread.
    void retire() noexcept;

private:
    /// Part of the kernel, so that retiring it allocates nothing.
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
        std::vector<frontiers::point> tails_;  ///< ends of the device's streams when the kernel was retired
    };

    void expect_shape(const launch_config& config) const;
    [[noreturn]] void refuse_shape(const launch_config& config) const;
    void have_shared(std::size_t bytes) const;
    void expect_cluster(const launch_config& config) const;
    void expect_cooperative(const launch_config& config) const;
    [[nodiscard]] static std::uint32_t special_number(const launch_config& config) noexcept;

    device device_;
    const backend::capability::kernels* in_;
    backend::capability::function_handle function_;
    std::array<std::uint32_t, 3> most_blocks_{};   ///< along each axis
    std::array<std::uint32_t, 3> most_threads_{};  ///< of a block, along each axis
    std::uint32_t most_in_row_ = 0;                ///< threads of a block, along the first axis only
    int max_threads_ = 0;                          ///< of a block
    mutable std::atomic<std::size_t> shared_{0};   ///< bytes that a launch may request
    std::uint64_t parameter_sizes_ = 0;
    std::optional<std::vector<std::size_t>> parameter_bytes_;
    std::string name_;
    std::unique_ptr<backend::capability::loaded_code> code_;
    std::size_t own_shared_ = 0;    ///< bytes that the kernel itself declares
    bool has_clusters_ = false;     ///< whether the device takes such launches
    bool has_cooperative_ = false;  ///< the same
    mutable detail::mutex mutex_;   ///< held by threads that raise shared_; a leaf in the lock order
    unloading unloading_;
};

struct kernel_parameters {
    std::vector<kernels::parameter> all;
    bool has_structures = false;
};

/// Makes one with shared ownership. Throws device_error, out_of_memory, std::bad_alloc, std::system_error (no thread can be started).
[[nodiscard]] std::shared_ptr<const kernel_code> make_kernel_code(
    device on, const backend::capability::kernels& in, std::string name,
    std::unique_ptr<backend::capability::loaded_code> code, backend::capability::function_handle function);

}  // namespace weir::detail
