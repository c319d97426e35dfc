// How long library calls take, for the logger "weir".
#pragma once

#include "bind.hpp"

#include <atomic>
#include <chrono>

namespace weir::python {

/// A library call under way: when it ends, the logger "weir" gets a line with its name and how long it took, if the level INFO is
/// enabled (weir/_logging.py says how Weir knows). Without that it is one load of a flag. Made and destroyed with the GIL.
class logged_call {
public:
    /// As in "weir.linalg", "matmul". Both are kept, not copied.
    logged_call(const char* module, const char* name) noexcept
        : module_(enabled_.load(std::memory_order_relaxed) ? module : nullptr), name_(name) {
        if (module_ != nullptr) {
            began_ = std::chrono::steady_clock::now();
        }
    }
    ~logged_call() {
        if (module_ != nullptr) {
            say();
        }
    }
    logged_call(const logged_call&) = delete;
    logged_call& operator=(const logged_call&) = delete;

    /// Whether there is a reader.
    static void enable(bool on) noexcept { enabled_.store(on, std::memory_order_relaxed); }

private:
    void say() const noexcept;

    static inline std::atomic<bool> enabled_{false};

    const char* module_;  ///< null: not recorded
    const char* name_;
    std::chrono::steady_clock::time_point began_;
};

void bind_call_log(nb::module_& m);

}  // namespace weir::python
