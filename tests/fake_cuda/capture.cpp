// cuStreamBeginCapture and the related functions.
#include "capture.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "driver.hpp"

using namespace weir_fake;

namespace {

constexpr std::array<std::string_view, 9> unsafe = {
    "cuMemAlloc_v2",   "cuMemFree_v2",          "cuMemAllocManaged",     "cuMemHostAlloc", "cuMemFreeHost",
    "cuMemPoolTrimTo", "cuMemPoolGetAttribute", "cuMemPoolSetAttribute", "cuModuleUnload"};
constexpr std::array<std::string_view, 2> of_context = {"cuCtxSynchronize", "cuCtxRecordEvent"};

template <class Names>
bool has(const Names& all, std::string_view name) {
    return std::find(all.begin(), all.end(), name) != all.end();
}

/// Invalidates the captures for which `is_one` is true. Returns whether there were any.
template <class Which>
bool invalidate(Which is_one) {
    bool any = false;
    for (const auto& each : driver().captures) {
        if (is_one(*each)) {
            each->is_invalid = true;
            any = true;
        }
    }
    return any;
}

void leave(capture& what) {
    for (const auto& each : what.members) {
        each->captured.reset();
    }
    std::erase_if(driver().captures, [&what](const auto& each) { return each.get() == &what; });
}

}  // namespace

namespace weir_fake {

int& capture_mode_of_thread() {
    thread_local int mode = mode_global;
    return mode;
}

CUresult refused_as_unsafe() {
    const int mine = capture_mode_of_thread();
    const auto me = std::this_thread::get_id();
    const bool any =
        mine != mode_relaxed && invalidate([mine, me](const capture& each) {
            return each.mode != mode_relaxed && (each.by == me || (each.mode == mode_global && mine == mode_global));
        });
    return any ? capture_unsupported : success;
}

CUresult refused_in_capture(const char* name, const context* in) {
    if (has(unsafe, name)) {
        return refused_as_unsafe();
    }
    const bool is_broken = has(of_context, name) && invalidate([in](const capture& each) { return each.in == in; });
    return is_broken ? capture_unsupported : success;
}

CUresult refused_as_implicit(const context& in, bool only_asks) {
    const auto is_behind = [&in](const capture& each) {
        return each.in == &in &&
               std::any_of(each.members.begin(), each.members.end(), [](const auto& one) { return one->blocking(); });
    };
    const auto& all = driver().captures;
    const bool any = only_asks ? std::any_of(all.begin(), all.end(), [&](const auto& each) { return is_behind(*each); })
                               : invalidate(is_behind);
    return any ? capture_implicit : success;
}

CUresult refused_to_ask(stream& what) {
    if (what.captured == nullptr) {
        return success;
    }
    what.captured->is_invalid = true;
    return capture_unsupported;
}

CUresult refused_captured_event(const std::shared_ptr<capture>& where, bool harms) {
    if (where == nullptr) {
        return success;
    }
    where->is_invalid = where->is_invalid || harms;
    return captured_event;
}

CUresult wait_in_capture(const std::shared_ptr<stream>& what, const std::shared_ptr<capture>& of_event) {
    if (what->captured == of_event) {
        return success;
    }
    if (what->captured != nullptr) {
        what->captured->is_invalid = true;
        return of_event == nullptr ? capture_isolation : capture_merge;
    }
    if (of_event->members.empty()) {
        return captured_event;  // its capture has ended
    }
    what->captured = of_event;
    of_event->members.push_back(what);
    return success;
}

}  // namespace weir_fake

WEIR_FAKE_EXPORT CUresult cuThreadExchangeStreamCaptureMode(int* mode) {
    if (const CUresult error = enter_safe("cuThreadExchangeStreamCaptureMode"); error != success) {
        return error;
    }
    if (*mode < mode_global || *mode > mode_relaxed) {
        return invalid_value;
    }
    std::swap(capture_mode_of_thread(), *mode);
    return success;
}

WEIR_FAKE_EXPORT CUresult cuStreamBeginCapture_v2(CUstream handle, int mode) {
    call in("cuStreamBeginCapture_v2", handle);
    const auto of = in.failed() ? nullptr : in.stream_of(handle);
    if (!of) {
        return in.error();
    }
    if (of->kind == stream_kind::legacy || mode < mode_global || mode > mode_relaxed || of->captured != nullptr) {
        return of->kind == stream_kind::legacy ? capture_unsupported : invalid_value;
    }
    of->captured =
        std::make_shared<capture>(capture{of->in, of.get(), mode, std::this_thread::get_id(), false, {of}, 0});
    driver().captures.push_back(of->captured);
    return success;
}

/// The graph is a number: how many entries were captured. Null if the capture has become invalid.
WEIR_FAKE_EXPORT CUresult cuStreamEndCapture(CUstream handle, void** graph) {
    call in("cuStreamEndCapture", handle);
    const auto of = in.failed() ? nullptr : in.stream_of(handle, true);
    if (!of) {
        return in.error();
    }
    const std::shared_ptr<capture> ended = of->captured;
    *graph = nullptr;
    if (ended == nullptr || ended->origin != of.get()) {
        return ended == nullptr ? invalid_value : capture_unmatched;
    }
    if (ended->mode != mode_relaxed && ended->by != std::this_thread::get_id()) {
        return capture_wrong_thread;
    }
    leave(*ended);
    ended->members.clear();
    if (ended->is_invalid) {
        return capture_invalidated;
    }
    *graph = reinterpret_cast<void*>(ended->nodes);
    return success;
}

WEIR_FAKE_EXPORT CUresult cuStreamIsCapturing(CUstream handle, int* status) {
    call in("cuStreamIsCapturing");
    if (in.failed()) {
        return in.error();
    }
    if (reinterpret_cast<std::uintptr_t>(handle) <= 1) {
        if (const CUresult refused = refused_as_implicit(in.in(), true); refused != success) {
            return refused;
        }
    }
    if (const auto of = in.stream_of(handle, true)) {
        *status = of->captured == nullptr ? 0 : of->captured->is_invalid ? 2 : 1;
    }
    return in.error();
}
