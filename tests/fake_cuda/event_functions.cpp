// cuEvent*, and cuCtxRecordEvent.
#include "capture.hpp"
#include "driver.hpp"

using namespace weir_fake;

namespace {

/// Returns success if the event exists.
CUresult check(CUevent event) { return driver().events.contains(event) ? success : invalid_handle; }

/// Returns success unless a capture forbids the calling thread to query the event.
CUresult refused(CUevent event) {
    if (!driver().events.contains(event)) {
        return invalid_handle;
    }
    const CUresult of_event = refused_captured_event(event->captured, true);
    return of_event != success ? of_event : refused_as_unsafe();
}

}  // namespace

WEIR_FAKE_EXPORT CUresult cuEventCreate(CUevent* made, unsigned flags) {
    call in("cuEventCreate");
    if (in.failed()) {
        return in.error();
    }
    if ((flags & ~3U) != 0) {
        return invalid_value;
    }
    *made = driver().events.take();
    (*made)->in = &in.in();
    (*made)->flags = flags;
    return success;
}

WEIR_FAKE_EXPORT CUresult cuEventDestroy_v2(CUevent event) {
    call in("cuEventDestroy_v2");
    if (in.failed()) {
        return in.error();
    }
    if (!driver().events.contains(event)) {
        return invalid_handle;
    }
    driver().events.give_back(event);
    return success;
}

WEIR_FAKE_EXPORT CUresult cuEventRecord(CUevent event, CUstream handle) {
    call in("cuEventRecord", handle);
    const auto on = in.failed() ? nullptr : in.stream_of(handle);
    if (!on) {
        return in.error();
    }
    if (!driver().events.contains(event) || event->in != on->in) {
        return invalid_handle;
    }
    if (on->captured != nullptr) {
        ++on->captured->nodes;
        event->last.reset();
        event->captured = on->captured;
        return success;
    }
    auto recorded = record(in.lock(), on);
    event->last = std::move(recorded);
    event->captured.reset();
    return success;
}

WEIR_FAKE_EXPORT CUresult cuCtxRecordEvent(CUcontext of, CUevent event) {
    call in("cuCtxRecordEvent");
    if (in.failed()) {
        return in.error();
    }
    context* const which = of != nullptr ? of : &in.in();
    if (!driver().events.contains(event) || event->in != which) {
        return invalid_handle;
    }
    std::vector<point> all{tail(which->legacy)};
    for (const auto& each : which->streams) {
        all.push_back(tail(each));
    }
    auto recorded = record(in.lock(), which->recorder, std::move(all));
    event->last = std::move(recorded);
    return success;
}

WEIR_FAKE_EXPORT CUresult cuEventQuery(CUevent event) {
    call in("cuEventQuery");
    if (in.failed()) {
        return in.error();
    }
    for (const CUresult error : {check(event), refused(event)}) {
        if (error != success) {
            return error;
        }
    }
    return !event->last || event->last->at.reached() ? success : not_ready;
}

WEIR_FAKE_EXPORT CUresult cuEventSynchronize(CUevent event) {
    call in("cuEventSynchronize");
    if (in.failed()) {
        return in.error();
    }
    for (const CUresult error : {check(event), refused(event)}) {
        if (error != success) {
            return error;
        }
    }
    context* const of = event->in;
    if (const auto last = event->last) {
        wait_for(in.lock(), last->at);
        trim_on_wait(*of);
    }
    return driver().error;
}

WEIR_FAKE_EXPORT CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
    call in("cuEventElapsedTime");
    if (in.failed()) {
        return in.error();
    }
    for (CUevent each : {start, end}) {
        if (const CUresult error = check(each); error != success) {
            return error;
        }
        if (const CUresult error = refused_captured_event(each->captured, false); error != success) {
            return error;
        }
        if ((each->flags & event_disable_timing) != 0 || !each->last) {
            return invalid_handle;
        }
    }
    if (start->in != end->in) {
        return invalid_handle;
    }
    if (!start->last->at.reached() || !end->last->at.reached()) {
        return not_ready;
    }
    *milliseconds = static_cast<float>(static_cast<double>(end->last->nanoseconds - start->last->nanoseconds) / 1e6);
    return success;
}
