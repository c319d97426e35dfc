#pragma once

#include <atomic>
#include <string>

#include "backend/cuda/api/driver_api.hpp"

namespace weir::backend::cuda {

/// The primary context of one device, which all libraries of the process share. Kept until the process ends.
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
    /// Throws device_error if the driver does not report it.
    [[nodiscard]] int attribute(device_attribute which) const;
    /// The same; 0 if the driver does not report it. For optional features.
    [[nodiscard]] int attribute_or_zero(device_attribute which) const noexcept;
    /// "90" for compute capability 9.0. Throws device_error.
    [[nodiscard]] std::string architecture() const;
    [[nodiscard]] std::string device_name() const;

    /// Throws device_error or out_of_memory, with the name of the call, unless `what` is success; and notes it (`note_error`).
    void expect(result what, const char* call) const {
        if (what != success) [[unlikely]] {
            refuse(what, call);
        }
    }
    [[noreturn, gnu::cold, gnu::noinline]] void refuse(result what, const char* call) const;
    /// Notes the error `what`, if only a broken context can be the reason for it. Returns whether the context is broken: nothing
    /// runs in it any more, and every call fails.
    bool note_error(result what) const noexcept;
    [[nodiscard]] bool is_broken() const noexcept { return error_.load(std::memory_order_relaxed) != success; }
    /// The reason, for messages.
    [[nodiscard]] std::string why_broken() const;
    /// Throws device_error, with the reason, if it is broken.
    void expect_sound() const;

private:
    const driver_api* api_;
    int number_;
    device_number device_ = 0;
    context_handle handle_ = nullptr;
    /// The error noted. Mutable, since the context itself stays the same. Read by each operation.
    mutable std::atomic<result> error_{success};
};

/// Makes a context current on the calling thread while it lives. Every driver call that needs one is made in such
/// a scope (but see by_handle). On a thread without a context, that of device 0 stays current afterwards, as with the first call
/// of CUDA's runtime: to restore the former state would cost each operation two calls.
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

    /// success, or why the context could not be made current: what is made now would then belong to another context.
    [[nodiscard]] result entered() const noexcept { return entered_; }
    /// Whether another context, or none, was current before.
    [[nodiscard]] bool is_another() const noexcept { return is_another_; }

private:
    const driver_api* api_;
    context_handle before_ = nullptr;
    result entered_ = success;
    bool restores_ = false;
    bool is_another_ = false;
};

/// What `by_handle` does if `answer` is not success.
template <class Call>
[[nodiscard, gnu::cold, gnu::noinline]] result again_in_context(const context& of, result answer,
                                                                Call&& call) noexcept {
    if (answer != error_invalid_context && answer != error_invalid_handle) {
        return answer;
    }
    const in_context here(of);
    return here.is_another() ? call() : answer;
}

/// Makes a call (a launch, a record or a wait) that names a stream of `of`, not a default one, and returns its answer. Driver 580 derives
/// the context from the stream, whichever context is current, and a query for the current one would cost a launch some hundredths of its
/// time. A driver that needs the context to be current returns an error, and the call is repeated in the context.
template <class Call>
[[nodiscard, gnu::always_inline]] inline result by_handle(const context& of, Call call) noexcept {
    const result answer = call();
    if (answer != success) [[unlikely]] {
        const Call again(call);  // a copy, so that the first one can stay in registers
        return again_in_context(of, answer, again);
    }
    return answer;
}

/// The same for calls that could disturb a capture of other code (queries, allocation, loading): they are made in relaxed
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

/// For a stream of that context that other code uses, too. Throws state_error if what is put into the stream would become part of a graph
/// that other code captures, or end that capture; device_error if the driver gives no answer, but not for a broken context. The query
/// harms no capture.
void expect_no_capture(const context& in, stream_handle stream);

}  // namespace weir::backend::cuda
