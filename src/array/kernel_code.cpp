#include "array/kernel_code.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include "backend/timeline.hpp"
#include "runtime/devices/device_state.hpp"
#include "runtime/host/fork.hpp"
#include "weir/detail/passkey.hpp"
#include "weir/error.hpp"

namespace weir::detail {

namespace {

struct retire {
    void operator()(kernel_code* one) const noexcept { one->retire(); }
};

/// The number as the program gave it: a negative one became larger than any valid number of blocks or threads.
std::int64_t as_given(std::size_t number) noexcept { return static_cast<std::int64_t>(number); }

std::string text_of(const dimensions& size) {
    return std::to_string(as_given(size.x)) + " x " + std::to_string(as_given(size.y)) + " x " +
           std::to_string(as_given(size.z));
}

}  // namespace

kernel_code::kernel_code(device on, const backend::capability::kernels& in, std::string name,
                         std::unique_ptr<backend::capability::loaded_code> code,
                         backend::capability::function_handle function)
    : device_(on), in_(&in), function_(function), name_(std::move(name)), code_(std::move(code)), unloading_(*this) {
    backend::capability::function_facts facts = in.facts_of(function);
    max_threads_ = facts.max_threads;
    own_shared_ = facts.own_shared_bytes;
    shared_ = facts.most_shared_bytes;
    parameter_bytes_ = std::move(facts.parameter_bytes);
    if (parameter_bytes_) {
        parameter_sizes_ = sizes_in_one(*parameter_bytes_, [](std::size_t bytes) { return bytes; });
    }
    const backend::capability::launch_limits limits = in.limits();
    most_blocks_ = limits.blocks;
    most_threads_ = limits.threads;
    most_in_row_ = std::min(most_threads_[0], static_cast<std::uint32_t>(max_threads_));
}

void kernel_code::have_shared(std::size_t bytes) const {
    const std::lock_guard lock(mutex_);
    if (bytes <= shared_.load(std::memory_order_relaxed)) {
        return;
    }
    const std::size_t most_of_block = in_->most_shared_bytes();
    const std::size_t most = most_of_block - std::min(own_shared_, most_of_block);
    if (bytes > most) {
        throw argument_error("the kernel " + name_ + " cannot have " + std::to_string(bytes) +
                             " bytes of shared memory for each block: " + device_.name() + " has " +
                             std::to_string(most_of_block) + ", of which the kernel itself declares " +
                             std::to_string(own_shared_) + "; make the block or the tile smaller");
    }
    in_->allow_shared_bytes(function_, bytes);
    shared_.store(bytes, std::memory_order_relaxed);
}

void kernel_code::expect_shape(const launch_config& config) const {
    const dimensions& grid = config.grid;
    const dimensions& block = config.block;
    const bool is_right = grid.x - 1 < most_blocks_[0] && grid.y - 1 < most_blocks_[1] &&
                          grid.z - 1 < most_blocks_[2] && block.x - 1 < most_threads_[0] &&
                          block.y - 1 < most_threads_[1] && block.z - 1 < most_threads_[2] &&
                          block.x * block.y * block.z <= static_cast<std::size_t>(max_threads_);
    if (!is_right) {
        refuse_shape(config);
    }
    if (config.shared_bytes > shared_.load(std::memory_order_relaxed)) {
        have_shared(config.shared_bytes);
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
            tails_ = what_->device_.state(detail::key).tails();
            has_tails_ = true;
        } catch (const std::bad_alloc&) {
            return what_->device_.state(detail::key).first_unfinished();  // waits further; then there may be memory
        }
    }
    while (!tails_.empty() && backend::timeline_table::instance().is_complete(tails_.back())) {
        tails_.pop_back();
    }
    return tails_.empty() ? std::nullopt : std::optional(tails_.back());
}

void kernel_code::unloading::release() noexcept { backend::task_threads::instance().schedule_surely(*this); }

void kernel_code::unloading::run_blocking() noexcept {
    delete what_;  // NOLINT(cppcoreguidelines-owning-memory): it owns itself after it was retired
}

void kernel_code::retire() noexcept {
    if (!runtime::fork_guard::is_refused()) {  // otherwise the driver belongs to the parent process
        runtime::reaper::push(unloading_);
    }
}

std::shared_ptr<const kernel_code> make_kernel_code(device on, const backend::capability::kernels& in, std::string name,
                                                    std::unique_ptr<backend::capability::loaded_code> code,
                                                    backend::capability::function_handle function) {
    return {new kernel_code(on, in, std::move(name), std::move(code), function), detail::retire()};
}

}  // namespace weir::detail
