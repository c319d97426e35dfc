#pragma once

#include <atomic>
#include <cstdint>

namespace weir::runtime {

/// Says whether a resource still has the owner it had: outlives the resource, for those who remember an access to it. Is
/// never given back to the system, so that it may be looked at at any time; what it says then may be of another resource,
/// whose numbers are others.
class alignas(64) life {
public:
    /// One that nobody uses. Throws std::bad_alloc.
    static life& take();
    /// Ends it.
    void give_back() noexcept;

    /// The resource's number, 0 if it belongs to nobody.
    std::atomic<std::uint64_t> owner{0};

private:
    life* next_ = nullptr;
};

}  // namespace weir::runtime
