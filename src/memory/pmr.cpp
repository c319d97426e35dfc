#include "weir/pmr.hpp"

#include <utility>

#include "weir/buffer.hpp"
#include "weir/device.hpp"
#include "weir/error.hpp"
#include "weir/stream.hpp"

namespace weir::memory {

namespace {

class standard_resource final : public memory_resource {
public:
    explicit standard_resource(std::pmr::memory_resource& upstream) noexcept : upstream_(&upstream) {}

private:
    buffer make(std::size_t bytes, std::size_t alignment, const stream_ref& on, const source_location& where) override {
        const device of = on.device();
        if (of.kind() != device_kind::cpu && of.kind() != device_kind::cpu_inline) {
            throw argument_error("a std::pmr::memory_resource gives memory of the host, and the stream is one of " +
                                 of.name() + ": allocate on a stream of cpu");
        }
        // Owned from the start, so that the memory goes back if the buffer cannot be made.
        auto memory = std::unique_ptr<std::byte, give_back>(
            static_cast<std::byte*>(upstream_->allocate(bytes, alignment)), {upstream_, bytes, alignment});
        std::byte* const address = memory.get();
        return buffer::wrap(address, bytes, of, std::move(memory), where);
    }

    struct give_back {
        std::pmr::memory_resource* to;
        std::size_t bytes;
        std::size_t alignment;
        void operator()(std::byte* memory) const { to->deallocate(memory, bytes, alignment); }
    };

    std::pmr::memory_resource* upstream_;
};

}  // namespace

resource_ptr from_pmr(std::pmr::memory_resource& upstream) { return std::make_shared<standard_resource>(upstream); }

pmr_resource::pmr_resource(resource_ptr upstream) : memory_(std::move(upstream)) {}

pmr_resource::~pmr_resource() = default;

void* pmr_resource::do_allocate(std::size_t bytes, std::size_t alignment) {
    return memory_.allocate_sync(bytes, alignment, cpu());
}

void pmr_resource::do_deallocate(void* memory, std::size_t /*bytes*/, std::size_t /*alignment*/) {
    memory_.deallocate_sync(memory);
}

bool pmr_resource::do_is_equal(const std::pmr::memory_resource& other) const noexcept { return this == &other; }

}  // namespace weir::memory
