#pragma once

#include <utility>

namespace weir::backend {

/// Into which queue of the device's own the calling thread puts work, while it lives. The body of a *native* operation
/// (detail::task_type::native) does not do the work on an accelerator: it is called once, when its turn to be submitted
/// has come, and puts the work into that queue.
class submitting_to {
public:
    explicit submitting_to(void* queue) noexcept : previous_(std::exchange(current_, queue)) {}
    ~submitting_to() { current_ = previous_; }
    submitting_to(const submitting_to&) = delete;
    submitting_to& operator=(const submitting_to&) = delete;

    /// The handle (CUstream); null where host code does the work itself.
    [[nodiscard]] static void* current() noexcept { return current_; }

private:
    static inline thread_local void* current_ = nullptr;
    void* previous_;
};

}  // namespace weir::backend
