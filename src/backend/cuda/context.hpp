#pragma once

#include <atomic>
#include <string>

#include "backend/cuda/driver_api.hpp"

namespace weir::backend::cuda {

/// The primary context of one device: the one that all libraries of the process share. Kept until the process ends.
class context {
public:
    /// Throws device_error.
    context(const driver_api& api, int number);
    context(const context&) = delete;
    context& operator=(const context&) = delete;

    [[nodiscard]] const driver_api& api() const noexcept { return *api_; }
    [[nodiscard]] context_handle handle() const noexcept { return handle_; }
    [[nodiscard]] int number() const noexcept { return number_; }
    [[nodiscard]] device_number device() const noexcept { return device_; }
    /// Throws device_error if the driver does not tell.
    [[nodiscard]] int attribute(device_attribute which) const;
    /// 0 if it does not: for what can be done without.
    [[nodiscard]] int attribute_if_told(device_attribute which) const noexcept;
    /// "90" for compute capability 9.0. Throws device_error.
    [[nodiscard]] std::string architecture() const;
    [[nodiscard]] std::string device_name() const;

    /// Throws device_error or out_of_memory, which names the call, unless `what` is success; and notes it (`note_error`).
    void expect(result what, const char* call) const {
        if (what != success) [[unlikely]] {
            refuse(what, call);
        }
    }
    [[noreturn, gnu::cold, gnu::noinline]] void refuse(result what, const char* call) const;
    /// Notes that the driver answered `what` where only a broken context can be the reason. Whether it is broken: nothing
    /// runs in it any more, and every call fails.
    bool note_error(result what) const noexcept;
    [[nodiscard]] bool is_broken() const noexcept { return error_.load(std::memory_order_relaxed) != success; }
    /// Why, for messages.
    [[nodiscard]] std::string why_broken() const;
    /// Throws device_error, which says why, if it is broken.
    void expect_sound() const;

private:
    const driver_api* api_;
    int number_;
    device_number device_ = 0;
    context_handle handle_ = nullptr;
    mutable std::atomic<result> error_{
        success};  ///< what is noted: no one changes the context. Asked by each operation
};

/// Makes a context current on the calling thread while it lives. Every call of the driver that needs one is made in such
/// a scope (but see by_handle). A thread that had none keeps that of device 0, which is what CUDA's runtime gives it at its
/// first call: to take it away again would cost each operation two calls.
class in_context {
public:
    explicit in_context(const context& of) noexcept : api_(&of.api()) {
        api_->context_get_current(&before_);
        if (before_ != of.handle()) {
            entered_ = api_->context_set_current(of.handle());
            restores_ = before_ != nullptr || of.number() != 0;
            is_another_ = true;
        }
    }
    ~in_context() {
        if (restores_) {
            api_->context_set_current(before_);
        }
    }
    in_context(const in_context&) = delete;
    in_context& operator=(const in_context&) = delete;

    /// success, or why it could not be made current: what is made now would belong to another context.
    [[nodiscard]] result entered() const noexcept { return entered_; }
    /// Whether it was not current before.
    [[nodiscard]] bool is_another() const noexcept { return is_another_; }

private:
    const driver_api* api_;
    context_handle before_ = nullptr;
    result entered_ = success;
    bool restores_ = false;
    bool is_another_ = false;
};

/// What `by_handle` does after an `answer` that is not success.
template <class Call>
[[nodiscard, gnu::cold, gnu::noinline]] result again_in_context(const context& of, result answer,
                                                                Call&& call) noexcept {
    if (answer != error_invalid_context && answer != error_invalid_handle) {
        return answer;
    }
    const in_context here(of);
    return here.is_another() ? call() : answer;
}

/// The answer of a call that names a stream of `of`, not a default one: a launch, a record or a wait. Driver 580 takes the
/// context from that, whichever is current, and to ask which one is would cost a launch some hundredths of its time. A driver
/// that wants it current says so, and is asked again in the context.
template <class Call>
[[nodiscard, gnu::always_inline]] inline result by_handle(const context& of, Call call) noexcept {
    const result answer = call();
    if (answer != success) [[unlikely]] {
        const Call again(call);  // one of its own: the first one can stay in registers
        return again_in_context(of, answer, again);
    }
    return answer;
}

/// The same for calls that could disturb a capture of others (queries, allocation, loading): they are made in relaxed
/// capture mode (rule G1).
class in_relaxed_context : in_context {
public:
    explicit in_relaxed_context(const context& of) noexcept : in_context(of), api_(&of.api()) {
        api_->exchange_capture_mode(&mode_);
    }
    ~in_relaxed_context() { api_->exchange_capture_mode(&mode_); }
    using in_context::entered;
    in_relaxed_context(const in_relaxed_context&) = delete;
    in_relaxed_context& operator=(const in_relaxed_context&) = delete;

private:
    const driver_api* api_;
    int mode_ = capture_mode_relaxed;
};

/// Throws state_error if what is put into a stream of that context, which others have as well, would become part of a graph that
/// they capture, or end that; device_error if the driver does not tell, but not of a broken context. The question harms no capture.
void expect_no_capture(const context& in, stream_handle stream);

}  // namespace weir::backend::cuda
