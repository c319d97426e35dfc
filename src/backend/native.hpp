#pragma once

#include <utility>

#include "backend/own_variable.hpp"

namespace weir::backend {

/// While it lives, names the device queue into which the calling thread puts work. The body of a *native* operation
/// (detail::task_type::native) does not do the work on an accelerator itself: it is called once, when it is its turn to be
/// submitted, and puts the work into that queue.
class submitting_to {
public:
    explicit submitting_to(void* queue) noexcept
        : of_thread_(&found_once(current_)), previous_(std::exchange(*of_thread_, queue)) {}
    ~submitting_to() { *of_thread_ = previous_; }
    submitting_to(const submitting_to&) = delete;
    submitting_to& operator=(const submitting_to&) = delete;

    /// The handle (CUstream); null where host code does the work itself.
    [[nodiscard]] static void* current() noexcept { return current_; }

private:
    static inline thread_local void* current_ = nullptr;
    void** of_thread_;
    void* previous_;
};

}  // namespace weir::backend
