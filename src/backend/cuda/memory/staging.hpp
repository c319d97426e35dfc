#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

#include "backend/capability/staging.hpp"
#include "backend/cuda/device/context.hpp"
#include "weir/detail/mutex.hpp"

namespace weir::backend::cuda {

/// Chunks of pinned memory.
class staging final : public capability::staging {
public:
    /// Limit of chunks in use at once by copies that do not wait.
    static constexpr std::size_t most_chunks = 16;

    explicit staging(const context& of) noexcept : of_(&of) {}
    ~staging() = default;

    [[nodiscard]] chunk take() override;
    [[nodiscard]] chunk try_take() noexcept override;

private:
    void put(std::byte* memory) noexcept override;

    const context* of_;
    detail::mutex mutex_;  ///< guards what follows; a leaf in the lock order
    std::vector<void*> free_;
    std::size_t made_ = 0;
};

}  // namespace weir::backend::cuda
