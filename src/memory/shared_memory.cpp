// memory::pinned and memory::managed: what the host and CUDA devices both reach.
#include <memory>

#include "memory/device_memory.hpp"
#include "runtime/device_state.hpp"
#include "weir/error.hpp"
#include "weir/memory_resource.hpp"

namespace weir::memory {

namespace {

class pinned_resource final : public memory_resource {
    buffer make(std::size_t bytes, const stream_ref& on, const source_location& where) override {
        runtime::device_state& device = on.state().device();
        if (device.kind() == device_kind::cuda || device.kind() == device_kind::sim) {
            throw argument_error(
                "pinned memory is the host's, and the stream is one of " + on.device().name() +
                ": allocate on a stream of cpu; memory::managed() is for arrays of a CUDA device that the "
                "host reaches");
        }
        return buffer(memory::allocate(shared_pool_of(device), bytes, on.state(), where));
    }
};

class managed_resource final : public memory_resource {
    buffer make(std::size_t bytes, const stream_ref& on, const source_location& where) override {
        runtime::device_state& device = on.state().device();
        if (device.kind() != device_kind::cuda && device.kind() != device_kind::sim) {
            throw argument_error("managed memory is a CUDA device's, and the stream is one of " + on.device().name() +
                                 ": allocate on a stream of cuda; memory::pinned() is for arrays of cpu");
        }
        return buffer(memory::allocate(shared_pool_of(device), bytes, on.state(), where));
    }
};

}  // namespace

resource_ptr pinned() { return std::make_shared<pinned_resource>(); }

resource_ptr managed() { return std::make_shared<managed_resource>(); }

}  // namespace weir::memory
