// Streams that are being captured, and the calls that are not allowed meanwhile: as driver 580 answered on an H100, call by call, in
// each mode, to the thread that captures and to another one.
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "cuda.hpp"
#include "stream.hpp"

namespace weir_fake {

enum capture_mode { mode_global = 0, mode_thread_local = 1, mode_relaxed = 2 };

/// One capture, from cuStreamBeginCapture to cuStreamEndCapture.
struct capture {
    context* in = nullptr;
    stream* origin = nullptr;
    int mode = mode_global;
    std::thread::id by;
    bool is_invalid = false;
    std::vector<std::shared_ptr<stream>> members;  ///< the origin, and the streams that waited for an event in it
    std::size_t nodes = 0;
};

/// The calling thread's capture mode.
int& capture_mode_of_thread();

/// Whether this thread may make a call of that name while there are captures, or while there is any in that context (null:
/// none). Returns success, or the error; then the captures are invalid. With the lock.
CUresult refused_in_capture(const char* name, const context* in);
/// The same for calls that are refused to a thread under the same rules as an allocation.
CUresult refused_as_unsafe();
/// The same for a call that names the legacy stream: that stream would come after a stream that is being captured. A query whether it is
/// itself captured is refused as well, but invalidates nothing.
CUresult refused_as_implicit(const context& in, bool only_asks = false);
/// The error of a call that queries a captured stream. With the lock.
CUresult refused_to_ask(stream& what);
/// The error of a call on an event that was recorded in a capture.
CUresult refused_captured_event(const std::shared_ptr<capture>& where, bool harms);
/// `what` waits for an event of a capture, or for an ordinary one (null): it joins the capture, or the wait is refused. With the lock.
CUresult wait_in_capture(const std::shared_ptr<stream>& what, const std::shared_ptr<capture>& of_event);

}  // namespace weir_fake
