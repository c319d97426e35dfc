// Events of torch for waits of Weir's own, which are not reported.
#pragma once

#include "hooks.h"
#include "state.hpp"

#include <c10/core/impl/GPUTrace.h>
#include <c10/core/impl/PyInterpreter.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <atomic>
#include <cstdint>
#include <stdexcept>

namespace weir_torch {

/// For tests without a GPU: events that do nothing, and that torch would report.
struct pretended_events {
    static inline std::atomic<bool> fail{false};
    static inline std::atomic<std::uint64_t> device_waits{0};

    static const c10::impl::PyInterpreterVTable& torch_reports() { return **c10::impl::GPUTrace::get_trace(); }
    static std::uintptr_t address(void* event) { return reinterpret_cast<std::uintptr_t>(event); }
};

/// Calls `act()`, whose effects are not reported, and returns 0; 1 if it throws.
template <class Act>
inline int on_our_own(Act&& act) {
    is_our_own = true;
    int failed = 0;
    try {
        act();
    } catch (...) {
        failed = 1;
    }
    is_our_own = false;
    return failed;
}
inline c10::impl::VirtualGuardImpl guard() { return c10::impl::VirtualGuardImpl(c10::DeviceType::CUDA); }

inline int record_event(weir_torch_stream on, void** event) {
    return on_our_own([&] {
        if (!is_pretended()) {
            if (is_capturing(on)) {
                throw std::runtime_error("it would become part of the graph that is captured");
            }
            const c10::Stream stream = streams::get(on);
            guard().record(event, stream, stream.device_index(), c10::EventFlag::PYTORCH_DEFAULT);
            return;
        }
        if (pretended_events::fail) {
            throw std::runtime_error("as the test wants");
        }
        *event = *event == nullptr ? new char : *event;
        pretended_events::torch_reports().trace_gpu_event_record(c10::DeviceType::CUDA,
                                                                 pretended_events::address(*event), on.handle);
    });
}
inline int wait_for_event(weir_torch_stream on, void* event) {
    return on_our_own([&] {
        if (!is_pretended()) {
            guard().block(event, streams::get(on));
        } else {
            pretended_events::torch_reports().trace_gpu_event_wait(c10::DeviceType::CUDA,
                                                                   pretended_events::address(event), on.handle);
        }
    });
}
inline int synchronize_event(void* event) {
    return is_pretended() ? 0 : on_our_own([&] { guard().synchronizeEvent(event); });
}
inline int is_event_complete(void* event, int* answer) {
    *answer = 0;
    return is_pretended() ? 0 : on_our_own([&] { *answer = guard().queryEvent(event) ? 1 : 0; });
}
inline void destroy_event(void* event) {
    if (is_pretended()) {
        delete static_cast<char*>(event);
    } else {
        on_our_own([&] { guard().destroyEvent(event, guard().getDevice().index()); });
    }
}
inline int synchronize_device(int32_t device) {
    if (is_pretended()) {
        ++pretended_events::device_waits;
        return 0;
    }
    return on_our_own([&] { guard().synchronizeDevice(static_cast<c10::DeviceIndex>(device)); });
}
inline constexpr weir_torch_events own_events{record_event,      wait_for_event, synchronize_event,
                                              is_event_complete, destroy_event,  synchronize_device};

}  // namespace weir_torch
