#include "backend/cuda/memory/device_chunks.hpp"

#include <limits>
#include <new>

namespace weir::backend::cuda {

chunks::chunks(const context& of) noexcept : of_(&of) {
    const driver_api& api = of.api();
    // These functions come together: a driver has all or none.
    if (api.allocation_granularity == nullptr || api.address_reserve == nullptr || api.address_free == nullptr ||
        api.memory_create == nullptr || api.memory_release == nullptr || api.memory_map == nullptr ||
        api.memory_unmap == nullptr || api.memory_set_access == nullptr ||
        of.attribute_or_zero(device_attribute::virtual_memory_management) == 0) {
        return;
    }
    properties_.location.id = of.device();
    properties_.gpu_direct_rdma =
        of.attribute_or_zero(device_attribute::gpu_direct_rdma_with_virtual_memory) != 0 ? 1 : 0;
    try {
        those_.push_back({properties_.location});
        find_peers();
    } catch (const std::bad_alloc&) {
        return;
    }
    std::size_t granularity = 0;
    if (api.allocation_granularity(&granularity, &properties_, granularity_minimum) == success) {
        granularity_ = granularity;
    }
}

void chunks::find_peers() {
    const driver_api& api = of_->api();
    int count = 0;
    if (api.device_count(&count) != success) {
        return;
    }
    for (int id = 0; id < count; ++id) {
        device_number other = 0;
        int can = 0;
        if (id != of_->number() && api.device_get(&other, id) == success &&
            api.device_can_access_peer(&can, other, of_->device()) == success && can != 0) {
            those_.push_back({{.id = other}});
        }
    }
}

std::size_t chunks::rounded(std::size_t bytes) const noexcept {
    return (bytes + granularity_ - 1) / granularity_ * granularity_;
}

result chunks::allocate(device_pointer& made, std::size_t bytes) const noexcept {
    const driver_api& api = of_->api();
    if (!are_mapped()) {
        return api.memory_alloc(&made, bytes);
    }
    if (bytes > std::numeric_limits<std::size_t>::max() - granularity_) {
        return error_out_of_memory;
    }
    const std::size_t whole = rounded(bytes);
    device_pointer at = 0;
    if (const result answer = api.address_reserve(&at, whole, 0, 0, 0); answer != success) {
        return answer;
    }
    if (const result answer = map(at, whole); answer != success) {
        api.address_free(at, whole);
        return answer;
    }
    made = at;
    return success;
}

result chunks::map(device_pointer at, std::size_t bytes) const noexcept {
    const driver_api& api = of_->api();
    allocation_handle memory = 0;
    if (const result answer = api.memory_create(&memory, bytes, &properties_, 0); answer != success) {
        return answer;
    }
    result answer = api.memory_map(at, bytes, 0, memory, 0);
    api.memory_release(memory);  // the mapping keeps the memory
    if (answer != success) {
        return answer;
    }
    answer = api.memory_set_access(at, bytes, those_.data(), those_.size());
    if (answer != success && answer != error_out_of_memory && those_.size() > 1) {
        // A peer may refuse; copies then take another path.
        answer = api.memory_set_access(at, bytes, those_.data(), 1);
    }
    if (answer != success) {
        api.memory_unmap(at, bytes);
    }
    return answer;
}

void chunks::deallocate(device_pointer memory, std::size_t bytes) const noexcept {
    const driver_api& api = of_->api();
    if (!are_mapped()) {
        api.memory_free(memory);
        return;
    }
    api.memory_unmap(memory, rounded(bytes));
    api.address_free(memory, rounded(bytes));
}

}  // namespace weir::backend::cuda
