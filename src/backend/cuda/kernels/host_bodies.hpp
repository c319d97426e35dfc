#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "backend/cuda/api/driver_api.hpp"
#include "backend/cuda/device/context.hpp"
#include "weir/detail/mutex.hpp"

namespace weir::backend::cuda {

/// For tests: runs host code as device work, so that programs whose bodies are plain C++ run on real streams, in the
/// order of the driver's own events and waits, without a compiler for the device.
///
/// A body is a write and a wait in the stream (cuStreamWriteValue, cuStreamWaitValue):
///
///     stream:   ... --> reached = n --> wait until done >= n --> ...
///     thread:            sees it, has another thread run the body and set done = n
///
/// The wait occupies the stream as a kernel would. Not meant to be fast.
class host_bodies {
public:
    explicit host_bodies(const context& of);
    host_bodies(const host_bodies&) = delete;
    host_bodies& operator=(const host_bodies&) = delete;
    ~host_bodies() = delete;  // its thread lives as long as the process

    /// Has a host thread run `body(with)` when `stream` reaches it; what is behind it starts once the body has
    /// returned. In the context. Throws device_error, std::bad_alloc: then nothing is in the stream.
    void put(stream_handle stream, void (*body)(void*) noexcept, void* with);

private:
    struct call;
    void work() noexcept;
    std::unique_ptr<call> make_call();

    const context* of_;
    detail::mutex mutex_;  ///< guards what follows; a leaf in the lock order
    detail::condition_variable changed_;
    std::vector<std::unique_ptr<call>> free_;
    std::vector<call*> fresh_;
};

}  // namespace weir::backend::cuda
