#pragma once

#include <cstddef>
#include <utility>

namespace weir::backend::capability {

/// Chunks of host memory that a device reaches itself, for copies from and to host memory that it does not reach. Used again and
/// again; never destroyed. Any thread.
class staging {
public:
    static constexpr std::size_t chunk_bytes = std::size_t{1} << 22;

    staging() = default;
    staging(const staging&) = delete;
    staging& operator=(const staging&) = delete;

    /// A chunk in use. Its owner keeps it until the device has done with it.
    class chunk {
    public:
        chunk() = default;
        chunk(staging& of, void* memory) noexcept : of_(&of), memory_(static_cast<std::byte*>(memory)) {}
        chunk(chunk&& other) noexcept
            : of_(std::exchange(other.of_, nullptr)), memory_(std::exchange(other.memory_, nullptr)) {}
        chunk& operator=(chunk&& other) noexcept {
            std::swap(of_, other.of_);
            std::swap(memory_, other.memory_);
            return *this;
        }
        ~chunk() {
            if (of_ != nullptr) {
                of_->put(memory_);
            }
        }
        chunk(const chunk&) = delete;
        chunk& operator=(const chunk&) = delete;

        explicit operator bool() const noexcept { return memory_ != nullptr; }
        [[nodiscard]] std::byte* memory() const noexcept { return memory_; }

    private:
        staging* of_ = nullptr;
        std::byte* memory_ = nullptr;
    };

    /// Throws out_of_memory, device_error, std::bad_alloc.
    [[nodiscard]] virtual chunk take() = 0;
    /// The same; empty if the limit of chunks in use is reached, or there is no memory.
    [[nodiscard]] virtual chunk try_take() noexcept = 0;

protected:
    ~staging() = default;

private:
    virtual void put(std::byte* memory) noexcept = 0;
};

}  // namespace weir::backend::capability
