#include "array/kernel_code.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <utility>

#include "backend/timeline.hpp"
#include "runtime/device_state.hpp"
#include "runtime/fork.hpp"
#include "weir/error.hpp"

namespace weir::detail {

namespace {

using backend::cuda::device_attribute;
using backend::cuda::function_attribute;
using backend::cuda::in_relaxed_context;

struct retire {
    void operator()(kernel_code* one) const noexcept { one->retire(); }
};

int attribute_of(const backend::cuda::context& in, backend::cuda::function_handle function, function_attribute which) {
    int value = 0;
    in.expect(in.api().function_get_attribute(&value, which, function), "cuFuncGetAttribute");
    return value;
}

std::optional<std::vector<std::size_t>> parameters_of(const backend::cuda::context& in,
                                                      backend::cuda::function_handle function) {
    if (in.api().function_parameter == nullptr) {
        return std::nullopt;
    }
    // Older drivers are asked until they say that there are no more, which tools that watch their calls report.
    std::size_t count = std::numeric_limits<std::size_t>::max();
    if (in.api().function_parameter_count != nullptr) {
        in.expect(in.api().function_parameter_count(function, &count), "cuFuncGetParamCount");
    }
    std::vector<std::size_t> all;
    std::size_t offset = 0;
    std::size_t bytes = 0;
    while (all.size() < count) {
        const backend::cuda::result answer = in.api().function_parameter(function, all.size(), &offset, &bytes);
        if (in.api().function_parameter_count == nullptr && answer == backend::cuda::error_invalid_value) {
            break;
        }
        in.expect(answer, "cuFuncGetParamInfo");
        all.push_back(bytes);
    }
    return all;
}

/// As it was given: what was negative is beyond what any other number of blocks or threads can be.
std::int64_t as_given(std::size_t number) noexcept { return static_cast<std::int64_t>(number); }

std::string text_of(const dimensions& size) {
    return std::to_string(as_given(size.x)) + " x " + std::to_string(as_given(size.y)) + " x " +
           std::to_string(as_given(size.z));
}

}  // namespace

kernel_code::kernel_code(device on, backend::cuda::device_context& in, std::string name,
                         std::unique_ptr<backend::cuda::loaded_module> code, backend::cuda::function_handle function)
    : device_(on), in_(&in), function_(function), name_(std::move(name)), code_(std::move(code)), unloading_(*this) {
    const in_relaxed_context scope(in);
    max_threads_ = attribute_of(in, function, function_attribute::max_threads_per_block);
    own_shared_ = static_cast<std::size_t>(attribute_of(in, function, function_attribute::shared_size));
    shared_ = static_cast<std::size_t>(attribute_of(in, function, function_attribute::max_dynamic_shared_size));
    parameter_bytes_ = parameters_of(in, function);
    if (parameter_bytes_) {
        parameter_sizes_ = sizes_in_one(*parameter_bytes_, [](std::size_t bytes) { return bytes; });
    }
    constexpr std::array<device_attribute, 3> blocks = {device_attribute::max_grid_x, device_attribute::max_grid_y,
                                                        device_attribute::max_grid_z};
    constexpr std::array<device_attribute, 3> threads = {device_attribute::max_block_x, device_attribute::max_block_y,
                                                         device_attribute::max_block_z};
    for (std::size_t axis = 0; axis < 3; ++axis) {
        most_blocks_[axis] = static_cast<std::uint32_t>(in.attribute(blocks[axis]));
        most_threads_[axis] = static_cast<std::uint32_t>(in.attribute(threads[axis]));
    }
    most_in_row_ = std::min(most_threads_[0], static_cast<std::uint32_t>(max_threads_));
}

void kernel_code::have_shared(std::size_t bytes) const {
    const std::lock_guard lock(mutex_);
    if (bytes <= shared_.load(std::memory_order_relaxed)) {
        return;
    }
    const auto most_of_block =
        static_cast<std::size_t>(std::max(in_->attribute(device_attribute::max_shared_bytes_per_block_opt_in),
                                          in_->attribute(device_attribute::max_shared_bytes_per_block)));
    const std::size_t most = most_of_block - std::min(own_shared_, most_of_block);
    if (bytes > most) {
        throw argument_error("the kernel " + name_ + " cannot have " + std::to_string(bytes) +
                             " bytes of shared memory for each block: " + device_.name() + " has " +
                             std::to_string(most_of_block) + ", of which the kernel itself declares " +
                             std::to_string(own_shared_) + "; make the block or the tile smaller");
    }
    const in_relaxed_context scope(*in_);
    in_->expect(in_->api().function_set_attribute(function_, function_attribute::max_dynamic_shared_size,
                                                  static_cast<int>(bytes)),
                "cuFuncSetAttribute");
    shared_.store(bytes, std::memory_order_relaxed);
}

void kernel_code::expect_blocks(const launch_config& config) const {
    const dimensions& grid = config.grid;
    const dimensions& block = config.block;
    const bool is_right = grid.x - 1 < most_blocks_[0] && grid.y - 1 < most_blocks_[1] &&
                          grid.z - 1 < most_blocks_[2] && block.x - 1 < most_threads_[0] &&
                          block.y - 1 < most_threads_[1] && block.z - 1 < most_threads_[2] &&
                          block.x * block.y * block.z <= static_cast<std::size_t>(max_threads_);
    if (!is_right) {
        refuse_shape(config);
    }
}

void kernel_code::refuse_shape(const launch_config& config) const {
    const std::array<std::size_t, 3> grid{config.grid.x, config.grid.y, config.grid.z};
    const std::array<std::size_t, 3> block{config.block.x, config.block.y, config.block.z};
    for (std::size_t axis = 0; axis < 3; ++axis) {
        if (as_given(grid[axis]) < 1 || as_given(block[axis]) < 1) {
            throw argument_error("the kernel " + name_ + " cannot be launched with a grid of " + text_of(config.grid) +
                                 " blocks of " + text_of(config.block) +
                                 " threads: each number is at least 1; if there is nothing to do, do not launch");
        }
        if (grid[axis] > most_blocks_[axis]) {
            throw argument_error("the kernel " + name_ + " cannot be launched with " + std::to_string(grid[axis]) +
                                 " blocks along " + "xyz"[axis] + ": " + device_.name() + " takes " +
                                 std::to_string(most_blocks_[axis]) +
                                 "; let each thread do several elements (a loop with a stride of the grid)");
        }
        if (block[axis] > most_threads_[axis]) {
            throw argument_error("the kernel " + name_ + " cannot be launched with " + std::to_string(block[axis]) +
                                 " threads along " + "xyz"[axis] + ": " + device_.name() + " takes " +
                                 std::to_string(most_threads_[axis]) + " in a block; use more blocks");
        }
    }
    throw argument_error("the kernel " + name_ + " cannot be launched with blocks of " + text_of(config.block) +
                         " threads: with the registers that it needs, a block can have " +
                         std::to_string(max_threads_) + " on " + device_.name() + "; use more blocks");
}

kernel_code::unloading::unloading(kernel_code& what) : what_(&what) {
    runtime::reaper::start();
    backend::task_threads::instance().keep_one();
}

std::optional<frontiers::point> kernel_code::unloading::pending() noexcept {
    if (!has_tails_) {
        try {
            tails_ = what_->device_.state().tails();
            has_tails_ = true;
        } catch (const std::bad_alloc&) {
            return what_->device_.state().first_unfinished();  // then there may be memory
        }
    }
    while (!tails_.empty() && backend::timeline_table::instance().is_complete(tails_.back())) {
        tails_.pop_back();
    }
    return tails_.empty() ? std::nullopt : std::optional(tails_.back());
}

void kernel_code::unloading::release() noexcept { backend::task_threads::instance().schedule_surely(*this); }

void kernel_code::unloading::run_blocking() noexcept {
    delete what_;  // NOLINT(cppcoreguidelines-owning-memory): it owns itself since it was retired
}

void kernel_code::retire() noexcept {
    if (!runtime::fork_guard::is_refused()) {  // else the driver is the parent's
        runtime::reaper::push(unloading_);
    }
}

std::shared_ptr<const kernel_code> make_kernel_code(device on, backend::cuda::device_context& in, std::string name,
                                                    std::unique_ptr<backend::cuda::loaded_module> code,
                                                    backend::cuda::function_handle function) {
    return {new kernel_code(on, in, std::move(name), std::move(code), function), detail::retire()};
}

}  // namespace weir::detail
