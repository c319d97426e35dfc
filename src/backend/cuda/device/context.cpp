#include "backend/cuda/device/context.hpp"

#include <array>

#include "weir/error.hpp"

namespace weir::backend::cuda {

context::context(const driver_api& api, int number) : api_(&api), number_(number) {
    expect(api.device_get(&device_, number), "cuDeviceGet");
    expect(api.primary_context_retain(&handle_, device_), "cuDevicePrimaryCtxRetain");
}

int context::attribute(enum device_attribute which) const {
    int value = 0;
    expect(api_->device_attribute(&value, which, device_), "cuDeviceGetAttribute");
    return value;
}

int context::attribute_or_zero(enum device_attribute which) const noexcept {
    int value = 0;
    return api_->device_attribute(&value, which, device_) == success ? value : 0;
}

std::string context::architecture() const {
    return std::to_string(attribute(device_attribute::compute_capability_major)) +
           std::to_string(attribute(device_attribute::compute_capability_minor));
}

std::string context::device_name() const {
    std::array<char, 256> text{};
    return api_->device_name(text.data(), static_cast<int>(text.size()) - 1, device_) == success ? text.data() : "";
}

void context::refuse(result what, const char* call) const {
    note_error(what);
    cuda::refuse(*api_, what, call);
}

bool context::note_error(result what) const noexcept {
    if (is_sticky(what)) {
        result none = success;
        error_.compare_exchange_strong(none, what);
    }
    return is_broken();
}

std::string context::why_broken() const {
    return "the CUDA context of device " + std::to_string(number_) + " is lost: " + describe(*api_, error_.load()) +
           what_a_sticky_error_means;
}

void context::expect_sound() const {
    if (is_broken()) {
        throw device_error(why_broken());
    }
}

void expect_no_capture(const context& in, stream_handle stream) {
    const in_context here(in);
    int capturing = 0;
    const result answer = in.api().stream_is_capturing(stream, &capturing);
    if (answer == error_capture_implicit) {
        throw state_error("the default stream of device " + std::to_string(in.number()) +
                          " cannot be used while a CUDA graph is captured from a stream that is ordered with it: call "
                          "this before the capture begins, or on another stream (weir::stream(device)), or capture a "
                          "non-blocking stream");
    }
    if (in.note_error(answer)) {
        return;  // the next use of the stream reports the broken context
    }
    in.expect(answer, "cuStreamIsCapturing");
    if (capturing != 0) {
        throw state_error(
            "the stream is being captured into a CUDA graph, and what Weir puts into a stream cannot be part of one: "
            "call this before the capture begins, after its end, or on another stream (weir::stream(device))");
    }
}

}  // namespace weir::backend::cuda
