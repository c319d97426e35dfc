#pragma once

#include <memory>

namespace weir::backend {
class memory_source;
}

namespace weir::backend::capability {

/// A device whose driver allocates memory that the host and the device both reach. `host` is the memory of the CPU: it reports how much
/// there is, and replaces the driver's where the device is simulated. Sources made here live as long as `host`. Any thread.
class shared_memory {
public:
    shared_memory() = default;
    shared_memory(const shared_memory&) = delete;
    shared_memory& operator=(const shared_memory&) = delete;

    /// Managed memory. Throws std::system_error (no thread can be started), std::bad_alloc.
    [[nodiscard]] virtual std::unique_ptr<memory_source> make_managed(memory_source& host) = 0;
    /// Pinned host memory, which all devices of this kind reach. Throws the same.
    [[nodiscard]] virtual std::unique_ptr<memory_source> make_pinned(memory_source& host) = 0;

protected:
    ~shared_memory() = default;
};

}  // namespace weir::backend::capability
