#pragma once

#include <atomic>
#include <cstdint>

namespace weir::runtime {

/// Ranges by name for NVIDIA's profilers (NVTX), one around the enqueueing of each labelled operation, on the thread that
/// enqueues. On where WEIR_NVTX=1, through whichever is there: the tool that NVTX_INJECTION64_PATH names, as profilers set
/// it, or the library libnvToolsExt.so.1 (WEIR_NVTX_LIBRARY names another).
class nvtx_range {
public:
    /// `label` may be null: then there is none.
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
