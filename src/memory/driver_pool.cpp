#include <string>

#include "backend/backend.hpp"
#include "memory/device_memory.hpp"
#include "memory/lent_memory.hpp"
#include "weir/error.hpp"
#include "weir/memory_resource.hpp"

namespace weir::memory {

namespace {

/// Memory of a driver, which gets it back.
class drivers_memory final : public detail::lender {
public:
    drivers_memory(backend::driver& from, std::size_t bytes) noexcept : from_(&from), bytes_(bytes) {}
    ~drivers_memory() override {
        if (piece.address != nullptr) {
            from_->deallocate(piece, bytes_);
        }
    }
    void let_go() override {}

    backend::memory_piece piece;

private:
    backend::driver* from_;
    std::size_t bytes_;
};

class driver_resource final : public memory_resource {
    buffer make(std::size_t bytes, const stream_ref& on, const source_location& where) override {
        runtime::device_state& device = on.state().device();
        on.state().expect_open();
        backend::driver& driver = device.driver();
        auto owner = std::make_unique<drivers_memory>(driver, bytes);
        owner->piece = driver.allocate(bytes);
        if (owner->piece.address == nullptr) {
            pool_of(device).trim();  // what the pool only keeps in store
            owner->piece = driver.allocate(bytes);
        }
        if (owner->piece.address == nullptr) {
            throw out_of_memory("out of memory on " + std::string(driver.name()) + ": the driver has no " +
                                std::to_string(bytes) +
                                " bytes left. Drop arrays that are no longer needed, or work in smaller parts.");
        }
        const backend::memory_piece piece = owner->piece;
        return buffer(lend(piece, bytes, device, std::move(owner), &on.state().info(), where));
    }
};

}  // namespace

resource_ptr driver_pool() { return std::make_shared<driver_resource>(); }

}  // namespace weir::memory
