// memory::pinned and memory::managed: memory that both the host and CUDA devices reach.
#include <memory>

#include "backend/capability/capabilities.hpp"
#include "memory/device_memory.hpp"
#include "runtime/devices/device_state.hpp"
#include "weir/error.hpp"
#include "weir/memory_resource.hpp"

namespace weir::memory {

namespace {

class pinned_resource final : public memory_resource {
    buffer make(std::size_t bytes, std::size_t alignment, const stream_ref& on, const source_location& where) override {
        expect_alignment(alignment);
        runtime::device_state& device = on.state(detail::key).device();
        if (device.kind() != device_kind::cpu && device.kind() != device_kind::cpu_inline) {
            throw argument_error(
                "pinned memory is the host's, and the stream is one of " + on.device().name() +
                ": allocate on a stream of cpu; memory::managed() is for arrays of a CUDA device that the "
                "host reaches");
        }
        runtime::stream_state& stream = on.state(detail::key);
        return buffer(detail::key, memory::allocate(shared_pool_of(device), bytes, stream, stream, where));
    }
};

class managed_resource final : public memory_resource {
    buffer make(std::size_t bytes, std::size_t alignment, const stream_ref& on, const source_location& where) override {
        expect_alignment(alignment);
        runtime::device_state& device = on.state(detail::key).device();
        if (device.driver().can().shared_memory == nullptr) {
            throw argument_error("managed memory is a CUDA device's, and the stream is one of " + on.device().name() +
                                 ": allocate on a stream of cuda; memory::pinned() is for arrays of cpu");
        }
        runtime::stream_state& stream = on.state(detail::key);
        return buffer(detail::key, memory::allocate(shared_pool_of(device), bytes, stream, stream, where));
    }
};

}  // namespace

resource_ptr pinned() { return std::make_shared<pinned_resource>(); }

resource_ptr managed() { return std::make_shared<managed_resource>(); }

}  // namespace weir::memory
