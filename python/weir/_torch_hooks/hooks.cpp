// Hooks in torch: every operator that threads run which take part, and what torch itself reports of streams, events and memory. Compiled
// against the headers of the torch that is installed (_torch_build.py), and loaded beside it; calls the functions of hooks.h.
//
// Operators come through a dispatch key that torch has for such wrappers and uses for nothing itself (operators.hpp). What an operator reads
// and writes follows from its schema: annotated arguments, and results that alias none. Its accesses are reported once it has run; those to
// its arguments before, if it waits, records an event or calls another operator.
#include "hooks.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/impl/GPUTrace.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/PyInterpreter.h>
#include <torch/library.h>

#include <pthread.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "events.hpp"
#include "host_memory.hpp"
#include "operators.hpp"
#include "reports.hpp"
#include "rules.hpp"
#include "running.hpp"
#include "state.hpp"

using namespace weir_torch;

namespace {

/// A kernel that another package launches.
struct launch {
    rules of;
    running one;

    launch(const char* name, std::optional<weir_torch_stream> on)
        : of{rules::kind::usual, name, false, {}, {}}, one(of, on) {}
};

}  // namespace

TORCH_LIBRARY_IMPL(_, TESTING_ONLY_GenericWrapper, m) {
    m.fallback(torch::CppFunction::makeFromBoxedFunction<&run_boxed>());
}

extern "C" {

__attribute__((visibility("default"))) int weir_torch_install(const weir_torch_calls* to,
                                                              const weir_torch_ordering* by) {
    calls = to;
    ordering = by;
    static const reports table;
    static const c10::impl::PyInterpreter interpreter(&table);
    c10::impl::GPUTrace::set_trace(&interpreter);  // the first caller's counts
    if (c10::impl::GPUTrace::get_trace() != &interpreter) {
        return 0;
    }
    pass_by_what_does_nothing();
    take_the_usual_by_type();
    // In the child of a fork nothing is watched or ordered: other threads may have held locks, and the devices are the parent's.
    pthread_atfork(nullptr, nullptr, [] {
        watching.store(false);
        keeps_order.store(false);
    });
    return 1;
}

__attribute__((visibility("default"))) void weir_torch_watch(int on) {
    watching.store(on != 0);
    if (!keeps_order) {
        host_memory::instance().clear();
    }
}

__attribute__((visibility("default"))) void weir_torch_order(int on) {
    kept_in_order.fetch_add(on != 0 ? 1 : 0);
    keeps_order.store(on != 0);
    if (!watching) {
        host_memory::instance().clear();
    }
}

__attribute__((visibility("default"))) const weir_torch_events* weir_torch_own_events(void) { return &own_events; }

__attribute__((visibility("default"))) void weir_torch_thread(int on) {
    thread_local int parts = 0;  // checks that the thread takes part in
    parts += on != 0 ? 1 : -1;
    c10::impl::tls_set_dispatch_key_included(wrapper, parts > 0);
}

__attribute__((visibility("default"))) int weir_torch_keeps_order(weir_torch_stream* on) {
    if (!keeps_order.load(std::memory_order_relaxed) || !c10::impl::tls_is_dispatch_key_included(wrapper)) {
        return 0;
    }
    if (is_pretended() || on == nullptr) {
        return 1;
    }
    const c10::Device device(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(on->device));
    if (is_capturing(*on) || is_capturing(current_stream(device))) {
        return 0;
    }
    streams::add_used(*on, static_cast<std::int64_t>(on->handle));
    return 1;
}

__attribute__((visibility("default"))) void* weir_torch_launch(const char* name, const weir_torch_stream* on,
                                                               int64_t number, const weir_torch_operand* operands,
                                                               size_t count) {
    const bool orders = keeps_order.load(std::memory_order_relaxed);
    if ((!orders && !watching.load(std::memory_order_relaxed)) || !c10::impl::tls_is_dispatch_key_included(wrapper)) {
        return nullptr;
    }
    std::optional<weir_torch_stream> stream;
    if (on != nullptr) {
        stream = *on;
        streams::add_used(*stream, number);
    }
    auto made = std::make_unique<launch>(name, stream);
    for (size_t i = 0; i < count; ++i) {
        made->one.add_launched(operands[i]);
    }
    if (orders) {
        made->one.begin();
    }
    return made.release();
}

__attribute__((visibility("default"))) void weir_torch_launched(void* begun, const weir_torch_operand* results,
                                                                size_t count, int failed) {
    const std::unique_ptr<launch> made(static_cast<launch*>(begun));
    const std::size_t first = made->one.size();
    for (size_t i = 0; i < count; ++i) {
        made->one.add_launched(results[i]);
    }
    if (keeps_order.load(std::memory_order_relaxed)) {
        made->one.end(first);
    }
    if (failed == 0) {
        made->one.report();
    }
}

__attribute__((visibility("default"))) void weir_torch_event_done(uint64_t event) {
    if (watching.load(std::memory_order_relaxed)) {
        calls->event_synchronized(event, running::place());
    }
    if (keeps_order.load(std::memory_order_relaxed)) {
        ordering->event_synchronized(event);
    }
}

__attribute__((visibility("default"))) void weir_torch_stream_done(int32_t device, uint64_t stream) {
    if (watching.load(std::memory_order_relaxed)) {
        calls->stream_synchronized({device, stream, 0}, running::place());
    }
    if (keeps_order.load(std::memory_order_relaxed)) {
        ordering->stream_synchronized({device, stream, 0});
    }
}

__attribute__((visibility("default"))) void weir_torch_pretend(int64_t stream) { pretended.store(stream); }

__attribute__((visibility("default"))) void weir_torch_fail(int fails) {
    pretended_events::fail.store(fails != 0);
    pretended_events::device_waits.store(0);
}

__attribute__((visibility("default"))) uint64_t weir_torch_device_waits(void) {
    return pretended_events::device_waits.load();
}

__attribute__((visibility("default"))) void weir_torch_report(int32_t kind, uint64_t what, uint64_t stream) {
    constexpr c10::DeviceType type = c10::DeviceType::CUDA;
    const c10::impl::PyInterpreter& to = *c10::impl::GPUTrace::get_trace();
    switch (kind) {
        case WEIR_TORCH_ALLOCATED:
            to->trace_gpu_memory_allocation(type, what);
            break;
        case WEIR_TORCH_KEPT:
            calls->kept_until(what, {0, stream, 0});
            break;
        case WEIR_TORCH_FREED:
            to->trace_gpu_memory_deallocation(type, what);
            break;
        case WEIR_TORCH_RECORDED:
            to->trace_gpu_event_record(type, what, stream);
            break;
        case WEIR_TORCH_WAITS:
            to->trace_gpu_event_wait(type, what, stream);
            break;
        case WEIR_TORCH_EVENT_GONE:
            to->trace_gpu_event_deletion(type, what);
            break;
        case WEIR_TORCH_EVENT_SYNCHRONIZED:
            to->trace_gpu_event_synchronization(type, what);
            break;
        case WEIR_TORCH_STREAM_SYNCHRONIZED:
            to->trace_gpu_stream_synchronization(type, stream);
            break;
        case WEIR_TORCH_DEVICE_SYNCHRONIZED:
            to->trace_gpu_device_synchronization(type);
            break;
        default:
            break;
    }
}

}  // extern "C"
