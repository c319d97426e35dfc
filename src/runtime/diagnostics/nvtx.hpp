#pragma once

#include <atomic>
#include <cstdint>

namespace weir::runtime {

/// A named range for NVIDIA's profilers (NVTX) around the enqueueing of one labelled operation, on the thread that enqueues it. On if
/// WEIR_NVTX=1. Uses the tool that NVTX_INJECTION64_PATH names, which profilers set, or else the library libnvToolsExt.so.1
/// (WEIR_NVTX_LIBRARY names another).
class nvtx_range {
public:
    /// `label` may be null: then there is no range.
    explicit nvtx_range(const char* label) noexcept {
        if (mode_.load(std::memory_order_relaxed) != mode::off) {
            begin(label);
        }
    }
    ~nvtx_range() {
        if (is_open_) {
            end();
        }
    }
    nvtx_range(const nvtx_range&) = delete;
    nvtx_range& operator=(const nvtx_range&) = delete;

private:
    enum class mode : std::uint8_t { unknown, off, on };
    void begin(const char* label) noexcept;
    static void end() noexcept;
    static mode find() noexcept;

    static inline std::atomic<mode> mode_{mode::unknown};
    bool is_open_ = false;
};

}  // namespace weir::runtime
