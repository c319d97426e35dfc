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

/// Blocks in a cluster: the portable number, which every device with clusters takes.
constexpr std::size_t most_in_cluster = 8;

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
    has_clusters_ = limits.has_clusters;
    has_cooperative_ = limits.has_cooperative;
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
    if (is_special(config)) {
        expect_cluster(config);
        expect_cooperative(config);
    }
}

void kernel_code::expect_cluster(const launch_config& config) const {
    const dimensions& cluster = config.cluster;
    const std::array<std::size_t, 3> grid{config.grid.x, config.grid.y, config.grid.z};
    const std::array<std::size_t, 3> along{cluster.x, cluster.y, cluster.z};
    const std::string start =
        "the kernel " + name_ + " cannot be launched in clusters of " + text_of(cluster) + " blocks: ";
    for (const std::size_t one : along) {
        if (one - 1 >= most_in_cluster) {
            throw argument_error(start + "each number is from 1 to " + std::to_string(most_in_cluster));
        }
    }
    if (cluster.x * cluster.y * cluster.z == 1) {
        return;
    }
    if (!has_clusters_) {
        throw argument_error(
            start + device_.name() +
            " has no thread block clusters, which need compute capability 9.0 and a driver for CUDA 11.8");
    }
    if (cluster.x * cluster.y * cluster.z > most_in_cluster) {
        throw argument_error(start + "a cluster has at most " + std::to_string(most_in_cluster) + " blocks");
    }
    for (std::size_t axis = 0; axis < 3; ++axis) {
        if (grid[axis] % along[axis] != 0) {
            throw argument_error(start + "its grid has " + std::to_string(grid[axis]) + " blocks along " + "xyz"[axis] +
                                 "; make that a multiple of " + std::to_string(along[axis]));
        }
    }
}

void kernel_code::expect_cooperative(const launch_config& config) const {
    if (!config.cooperative) {
        return;
    }
    const std::size_t blocks = config.grid.x * config.grid.y * config.grid.z;
    const std::string start = "the kernel " + name_ + " cannot be launched cooperatively";
    if (!has_cooperative_) {
        throw argument_error(start + ": " + device_.name() + " has no cooperative launch");
    }
    if (const std::size_t most = most_cooperative_blocks(config.block, config.shared_bytes); blocks > most) {
        throw argument_error(
            start + " with " + std::to_string(blocks) + " blocks of " + text_of(config.block) + " threads and " +
            std::to_string(config.shared_bytes) + " bytes of shared memory: " + device_.name() + " runs " +
            std::to_string(most) +
            " of them at the same time; make the grid smaller, and let each thread do several elements");
    }
}

std::size_t kernel_code::most_cooperative_blocks(const dimensions& block, std::size_t shared_bytes) const {
    expect_shape({1, block, shared_bytes});
    return has_cooperative_ ? in_->most_resident_blocks(function_, block.x * block.y * block.z, shared_bytes) : 0;
}

std::uint32_t kernel_code::special_number(const launch_config& config) noexcept {
    const dimensions& cluster = config.cluster;
    std::uint32_t number = config.cooperative ? launch_shape::cooperative_bit : 0;
    if (cluster.x * cluster.y * cluster.z > 1) {
        number |= static_cast<std::uint32_t>(cluster.x | cluster.y << 8U | cluster.z << 16U);
    }
    return number;
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
