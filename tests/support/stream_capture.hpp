// Captures of CUDA graphs as other libraries make them: directly through the driver, the fake one or a real one.
#pragma once

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>

#include "backend/cuda/device/context.hpp"

namespace weir::test {

enum class capture_mode : int { global = 0, of_thread = 1, relaxed = 2 };

/// A stream of another library that is being captured while this lives. The thread that made it must end it.
class stream_capture {
    using context = backend::cuda::context;
    using stream_handle = backend::cuda::stream_handle;

public:
    explicit stream_capture(const context& in, capture_mode mode = capture_mode::global,
                            unsigned flags = backend::cuda::stream_non_blocking)
        : stream_capture(in, made(in, flags), mode) {
        is_own_ = true;
    }
    /// Captures an existing stream.
    stream_capture(const context& in, void* stream, capture_mode mode = capture_mode::global)
        : in_(&in), stream_(static_cast<stream_handle>(stream)) {
        const backend::cuda::in_context here(in);
        in.expect(function<int(stream_handle, int)>("cuStreamBeginCapture_v2")(stream_, static_cast<int>(mode)),
                  "cuStreamBeginCapture");
    }
    ~stream_capture() {
        static_cast<void>(end());
        if (is_own_) {
            const backend::cuda::in_context here(*in_);
            in_->api().stream_destroy(stream_);
        }
    }
    stream_capture(const stream_capture&) = delete;
    stream_capture& operator=(const stream_capture&) = delete;

    [[nodiscard]] stream_handle handle() const { return stream_; }
    /// Whether the capture is still valid.
    [[nodiscard]] bool goes_on() const {
        const backend::cuda::in_context here(*in_);
        int status = 0;
        return in_->api().stream_is_capturing(stream_, &status) == backend::cuda::success && status == 1;
    }
    /// Whether the capture gave a graph. Called once.
    bool end() {
        if (has_ended_) {
            return false;
        }
        has_ended_ = true;
        const backend::cuda::in_context here(*in_);
        void* graph = nullptr;
        return function<int(stream_handle, void**)>("cuStreamEndCapture")(stream_, &graph) == backend::cuda::success;
    }

private:
    template <class Function>
    static Function* function(const char* name) {
        const char* const file = std::getenv("WEIR_CUDA_DRIVER");
        void* const library = ::dlopen(file != nullptr ? file : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
        void* const found = library != nullptr ? ::dlsym(library, name) : nullptr;
        if (found == nullptr) {
            throw std::runtime_error(std::string("the driver has no ") + name);
        }
        return reinterpret_cast<Function*>(found);
    }
    static void* made(const context& in, unsigned flags) {
        const backend::cuda::in_context here(in);
        stream_handle made = nullptr;
        in.expect(in.api().stream_create(&made, flags, 0), "cuStreamCreateWithPriority");
        return made;
    }

    const context* in_;
    stream_handle stream_;
    bool is_own_ = false;
    bool has_ended_ = false;
};

/// Runs `what` while another thread captures a stream. Returns whether the capture gave a graph.
inline bool while_another_thread_captures(const backend::cuda::context& in, capture_mode mode, unsigned flags,
                                          const std::function<void(stream_capture&)>& what) {
    std::atomic<stream_capture*> begun{nullptr};
    std::atomic<bool> is_done{false};
    bool has_graph = false;
    std::thread captures([&] {
        stream_capture theirs(in, mode, flags);
        begun = &theirs;
        begun.notify_all();
        is_done.wait(false);
        has_graph = theirs.end();
    });
    begun.wait(nullptr);
    what(*begun);
    is_done = true;
    is_done.notify_all();
    captures.join();
    return has_graph;
}

}  // namespace weir::test
