#pragma once

#include <atomic>
#include <cstdint>

namespace weir::runtime {

/// Tells whether a resource still has the owner that it had. Outlives the resource, for code that remembers an access to it. Its
/// memory is never given back to the system, so it may be read at any time; it may then belong to another resource, whose
/// number differs.
class alignas(64) liveness_token {
public:
    /// Takes an unused token. Throws std::bad_alloc.
    static liveness_token& take();
    /// Returns the token for reuse.
    void give_back() noexcept;

    /// The resource's number; 0 if it has no owner.
    std::atomic<std::uint64_t> owner{0};

private:
    liveness_token* next_ = nullptr;
};

}  // namespace weir::runtime
