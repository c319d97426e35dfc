// Streams that are being captured, and what may not be done meanwhile: as driver 580 answered on an H100, call by call, in each
// mode, to the thread that captures and to another one.
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "cuda.hpp"
#include "stream.hpp"

namespace weir_fake {

enum capture_mode { mode_global = 0, mode_thread_local = 1, mode_relaxed = 2 };

/// From cuStreamBeginCapture to cuStreamEndCapture.
struct capture {
    context* in = nullptr;
    stream* origin = nullptr;
    int mode = mode_global;
    std::thread::id by;
    bool is_invalid = false;
    std::vector<std::shared_ptr<stream>> members;  ///< the origin, and who waited for an event in it
    std::size_t nodes = 0;
};

/// The calling thread's.
int& capture_mode_of_thread();

/// Whether a call of that name is one that may not be made by this thread while there are captures, or in that context (null:
/// none) at all: success, or the error, and the captures are invalid. With the lock.
CUresult refused_in_capture(const char* name, const context* in);
/// The same for calls that are refused to a thread as an allocation is.
CUresult refused_as_unsafe();
/// The same for a call that names the legacy stream: which would come after a stream that is being captured. Asking whether it is
/// itself captured is refused as well, but harms nothing.
CUresult refused_as_implicit(const context& in, bool only_asks = false);
/// The error of a call that asks how a captured stream is. With the lock.
CUresult refused_to_ask(stream& what);
/// Of an event that was recorded in a capture.
CUresult refused_captured_event(const std::shared_ptr<capture>& where, bool harms);
/// `what` waits for an event of a capture, or for an ordinary one (null): joins it, or must not. With the lock.
CUresult wait_in_capture(const std::shared_ptr<stream>& what, const std::shared_ptr<capture>& of_event);

}  // namespace weir_fake
