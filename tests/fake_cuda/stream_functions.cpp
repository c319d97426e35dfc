// cuStream*: creation, queries, waits and values in memory.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "capture.hpp"
#include "driver.hpp"

using namespace weir_fake;

namespace {

enum wait_condition : unsigned { greater_or_equal = 0, equal = 1, any_bit = 2, nor = 3 };

bool holds(std::uint64_t now, std::uint64_t value, unsigned condition) {
    switch (condition) {
        case greater_or_equal:
            return static_cast<std::int64_t>(now - value) >= 0;
        case equal:
            return now == value;
        case any_bit:
            return (now & value) != 0;
        default:
            return ~(now | value) != 0;
    }
}

/// The address as a place for a 64-bit value that the device can reach; null if it is none.
std::uint64_t* value_at(CUdeviceptr address) {
    if (address % sizeof(std::uint64_t) != 0 || allocation_at(address, sizeof(std::uint64_t)) == nullptr) {
        return nullptr;
    }
    return reinterpret_cast<std::uint64_t*>(address);
}

}  // namespace

WEIR_FAKE_EXPORT CUresult cuStreamCreateWithPriority(CUstream* made, unsigned flags, int priority) {
    call in("cuStreamCreateWithPriority");
    if (in.failed()) {
        return in.error();
    }
    if ((flags & ~stream_non_blocking) != 0) {
        return invalid_value;
    }
    *made = driver().streams.take();
    (*made)->is = make_stream(in.in(), stream_kind::user, flags, std::clamp(priority, -5, 0));
    return success;
}

WEIR_FAKE_EXPORT CUresult cuStreamDestroy_v2(CUstream handle) {
    call in("cuStreamDestroy_v2");
    if (in.failed()) {
        return in.error();
    }
    if (!driver().streams.contains(handle)) {
        return invalid_handle;
    }
    if (handle->is->captured != nullptr) {
        return capture_unsupported;  // not tried on a device
    }
    end(handle->is);
    driver().streams.give_back(handle);
    return success;
}

WEIR_FAKE_EXPORT CUresult cuStreamGetId(CUstream handle, unsigned long long* id) {
    call in("cuStreamGetId");
    const auto of = in.failed() ? nullptr : in.stream_of(handle, true);
    if (!of) {
        return in.error();
    }
    *id = of->id;
    return refused_to_ask(*of);
}

WEIR_FAKE_EXPORT CUresult cuStreamGetCtx(CUstream handle, CUcontext* found) {
    call in("cuStreamGetCtx");
    if (const auto of = in.failed() ? nullptr : in.stream_of(handle)) {
        *found = of->in;
    }
    return in.error();
}

WEIR_FAKE_EXPORT CUresult cuStreamGetFlags(CUstream handle, unsigned* flags) {
    call in("cuStreamGetFlags");
    const auto of = in.failed() ? nullptr : in.stream_of(handle, true);
    if (!of) {
        return in.error();
    }
    *flags = of->flags;
    return refused_to_ask(*of);
}

WEIR_FAKE_EXPORT CUresult cuStreamGetPriority(CUstream handle, int* priority) {
    call in("cuStreamGetPriority");
    if (const auto of = in.failed() ? nullptr : in.stream_of(handle)) {
        *priority = of->priority;
    }
    return in.error();
}

WEIR_FAKE_EXPORT CUresult cuStreamQuery(CUstream handle) {
    call in("cuStreamQuery");
    const auto of = in.failed() ? nullptr : in.stream_of(handle, true);
    if (!of) {
        return in.error();
    }
    for (const CUresult refused : {refused_to_ask(*of), refused_as_unsafe()}) {
        if (refused != success) {
            return refused;
        }
    }
    bool done = tail(of).reached();
    if (of->kind == stream_kind::legacy) {
        for (const auto& other : of->in->streams) {
            done = done && (!other->blocking() || tail(other).reached());
        }
    }
    return done ? success : not_ready;
}

WEIR_FAKE_EXPORT CUresult cuStreamSynchronize(CUstream handle) {
    call in("cuStreamSynchronize");
    const auto of = in.failed() ? nullptr : in.stream_of(handle, true);
    if (!of) {
        return in.error();
    }
    for (const CUresult refused : {refused_to_ask(*of), refused_as_unsafe()}) {
        if (refused != success) {
            return refused;
        }
    }
    // An entry of the legacy stream is behind the blocking streams.
    wait_for(in.lock(), of->kind == stream_kind::legacy ? enqueue(in.lock(), of, {}) : tail(of));
    trim_on_wait(*of->in);
    return driver().error;
}

WEIR_FAKE_EXPORT CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned flags) {
    call in("cuStreamWaitEvent", handle);
    const auto of = in.failed() ? nullptr : in.stream_of(handle);
    if (!of) {
        return in.error();
    }
    if (!driver().events.contains(event)) {
        return invalid_handle;
    }
    if ((flags & ~1U) != 0) {
        return invalid_value;
    }
    // The most recent record now; a later one changes nothing.
    if (event->last || event->captured) {
        if (const CUresult refused = wait_in_capture(of, event->captured); refused != success) {
            return refused;
        }
    }
    if (event->last) {
        enqueue(in.lock(), of, {{event->last->at}, nullptr});
    }
    return success;
}

WEIR_FAKE_EXPORT CUresult cuStreamWriteValue64_v2(CUstream handle, CUdeviceptr address, std::uint64_t value,
                                                  unsigned flags) {
    call in("cuStreamWriteValue64_v2");
    const auto of = in.failed() ? nullptr : in.stream_of(handle);
    if (!of) {
        return in.error();
    }
    std::uint64_t* const place = value_at(address);
    if (place == nullptr || flags > 1) {
        return invalid_value;
    }
    enqueue(in.lock(), of, {{}, [place, value] {
                                __atomic_store_n(place, value, __ATOMIC_SEQ_CST);
                                return success;
                            }});
    return success;
}

WEIR_FAKE_EXPORT CUresult cuStreamWaitValue64_v2(CUstream handle, CUdeviceptr address, std::uint64_t value,
                                                 unsigned flags) {
    call in("cuStreamWaitValue64_v2");
    const auto of = in.failed() ? nullptr : in.stream_of(handle);
    if (!of) {
        return in.error();
    }
    std::uint64_t* const place = value_at(address);
    if (place == nullptr || flags > nor) {
        return invalid_value;
    }
    enqueue(in.lock(), of, {{}, [place, value, flags] {
                                while (!holds(__atomic_load_n(place, __ATOMIC_SEQ_CST), value, flags) && !is_broken()) {
                                    std::this_thread::sleep_for(std::chrono::microseconds(20));
                                }
                                return success;
                            }});
    return success;
}
