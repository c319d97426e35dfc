#pragma once

#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

#include "backend/cuda/context.hpp"
#include "weir/detail/mutex.hpp"

namespace weir::backend::cuda {

/// Pieces of host memory that the device reaches itself, for copies from and to memory that it does not. Used again and
/// again; lives as long as the process.
class staging {
public:
    static constexpr std::size_t piece_bytes = std::size_t{1} << 22;
    /// So many at once for copies that do not wait.
    static constexpr std::size_t most_pieces = 16;

    explicit staging(const context& of) noexcept : of_(&of) {}
    staging(const staging&) = delete;
    staging& operator=(const staging&) = delete;
    ~staging() = default;

    /// A piece in use. Whoever has it sees to it that the device has done with it before it goes.
    class piece {
    public:
        piece() = default;
        piece(staging& of, void* memory) noexcept : of_(&of), memory_(static_cast<std::byte*>(memory)) {}
        piece(piece&& other) noexcept
            : of_(std::exchange(other.of_, nullptr)), memory_(std::exchange(other.memory_, nullptr)) {}
        piece& operator=(piece&& other) noexcept {
            std::swap(of_, other.of_);
            std::swap(memory_, other.memory_);
            return *this;
        }
        ~piece() {
            if (of_ != nullptr) {
                of_->put(memory_);
            }
        }
        piece(const piece&) = delete;
        piece& operator=(const piece&) = delete;

        explicit operator bool() const noexcept { return memory_ != nullptr; }
        [[nodiscard]] std::byte* memory() const noexcept { return memory_; }

    private:
        staging* of_ = nullptr;
        std::byte* memory_ = nullptr;
    };

    /// Throws out_of_memory, device_error, std::bad_alloc.
    [[nodiscard]] piece take();
    /// The same, empty if `most_pieces` are in use or there is no memory.
    [[nodiscard]] piece try_take() noexcept;

private:
    void put(std::byte* memory) noexcept;

    const context* of_;
    detail::mutex mutex_;  ///< guards what follows; a leaf in the lock order
    std::vector<void*> free_;
    std::size_t made_ = 0;
};

}  // namespace weir::backend::cuda
