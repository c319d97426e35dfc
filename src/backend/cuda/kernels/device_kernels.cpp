#include "backend/cuda/kernels/device_kernels.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <vector>

#include "backend/cuda/api/driver_api.hpp"
#include "backend/cuda/kernels/compile.hpp"
#include "backend/cuda/kernels/compiler.hpp"
#include "backend/cuda/kernels/loaded_module.hpp"

namespace weir::backend::cuda {

namespace {

int attribute_of(const context& in, function_handle function, function_attribute which) {
    int value = 0;
    in.expect(in.api().function_get_attribute(&value, which, function), "cuFuncGetAttribute");
    return value;
}

std::optional<std::vector<std::size_t>> parameters_of(const context& in, function_handle function) {
    if (in.api().function_parameter == nullptr) {
        return std::nullopt;
    }
    // Older drivers are queried until they report an error, which tools that check driver calls report.
    std::size_t count = std::numeric_limits<std::size_t>::max();
    if (in.api().function_parameter_count != nullptr) {
        in.expect(in.api().function_parameter_count(function, &count), "cuFuncGetParamCount");
    }
    std::vector<std::size_t> all;
    std::size_t offset = 0;
    std::size_t bytes = 0;
    while (all.size() < count) {
        const result answer = in.api().function_parameter(function, all.size(), &offset, &bytes);
        if (in.api().function_parameter_count == nullptr && answer == error_invalid_value) {
            break;
        }
        in.expect(answer, "cuFuncGetParamInfo");
        all.push_back(bytes);
    }
    return all;
}

}  // namespace

compiled_program device_kernels::compile(const compile_request& what) const { return cuda::compile(*in_, what); }

std::unique_ptr<capability::loaded_code> device_kernels::load(const std::string& image, const std::string& what) const {
    return std::make_unique<loaded_module>(*in_, image, what);
}

function_handle device_kernels::find(const std::string& source, const char* name,
                                     std::span<const std::string> options) const {
    return compiled(*in_, source, name, options);
}

void device_kernels::load_function(function_handle what) const {
    const in_relaxed_context here(*in_);
    cuda::load_function(*in_, what);
}

capability::function_facts device_kernels::facts_of(function_handle what) const {
    const in_relaxed_context here(*in_);
    const auto bytes_of = [&](function_attribute which) {
        return static_cast<std::size_t>(attribute_of(*in_, what, which));
    };
    capability::function_facts found;
    found.max_threads = attribute_of(*in_, what, function_attribute::max_threads_per_block);
    found.own_shared_bytes = bytes_of(function_attribute::shared_size);
    found.most_shared_bytes = bytes_of(function_attribute::max_dynamic_shared_size);
    found.parameter_bytes = parameters_of(*in_, what);
    return found;
}

std::string device_kernels::name_of(function_handle what) const {
    const in_relaxed_context here(*in_);
    const char* name = nullptr;
    if (in_->api().function_name == nullptr || in_->api().function_name(&name, what) != success || name == nullptr) {
        return {};
    }
    return name;
}

void device_kernels::allow_shared_bytes(function_handle what, std::size_t bytes) const {
    const in_relaxed_context here(*in_);
    in_->expect(
        in_->api().function_set_attribute(what, function_attribute::max_dynamic_shared_size, static_cast<int>(bytes)),
        "cuFuncSetAttribute");
}

capability::launch_limits device_kernels::limits() const {
    constexpr std::array blocks = {device_attribute::max_grid_x, device_attribute::max_grid_y,
                                   device_attribute::max_grid_z};
    constexpr std::array threads = {device_attribute::max_block_x, device_attribute::max_block_y,
                                    device_attribute::max_block_z};
    capability::launch_limits found;
    for (std::size_t axis = 0; axis < 3; ++axis) {
        found.blocks[axis] = static_cast<std::uint32_t>(in_->attribute(blocks[axis]));
        found.threads[axis] = static_cast<std::uint32_t>(in_->attribute(threads[axis]));
    }
    // Both are attributes of a launch, which cuLaunchKernel does not take.
    const bool takes_attributes = in_->api().launch_as != nullptr;
    found.has_clusters = takes_attributes && in_->attribute_or_zero(device_attribute::cluster_launch) != 0;
    found.has_cooperative = takes_attributes && in_->attribute_or_zero(device_attribute::cooperative_launch) != 0;
    return found;
}

std::size_t device_kernels::most_shared_bytes() const {
    return static_cast<std::size_t>(std::max(in_->attribute(device_attribute::max_shared_bytes_per_block_opt_in),
                                             in_->attribute(device_attribute::max_shared_bytes_per_block)));
}

std::size_t device_kernels::most_resident_blocks(function_handle what, std::size_t threads,
                                                 std::size_t shared_bytes) const {
    const in_relaxed_context here(*in_);
    int blocks = 0;
    in_->expect(in_->api().most_active_blocks(&blocks, what, static_cast<int>(threads), shared_bytes),
                "cuOccupancyMaxActiveBlocksPerMultiprocessor");
    return static_cast<std::size_t>(blocks) * static_cast<std::size_t>(multiprocessors());
}

int device_kernels::multiprocessors() const noexcept {
    return in_->attribute_or_zero(device_attribute::multiprocessor_count);
}

std::string device_kernels::architecture() const { return "sm_" + in_->architecture(); }

void device_kernels::fill(std::byte* to, std::uint32_t value, std::size_t bytes, std::size_t count,
                          detail::queue_handle into) const {
    const in_context here(*in_);
    const driver_api& api = in_->api();
    auto* const stream = static_cast<stream_handle>(into.value);
    if (bytes == 1) {
        in_->expect(api.fill8_async(address_of(to), static_cast<unsigned char>(value), count, stream),
                    "cuMemsetD8Async");
    } else if (bytes == 2) {
        in_->expect(api.fill16_async(address_of(to), static_cast<unsigned short>(value), count, stream),
                    "cuMemsetD16Async");
    } else {
        in_->expect(api.fill32_async(address_of(to), value, count, stream), "cuMemsetD32Async");
    }
}

}  // namespace weir::backend::cuda
