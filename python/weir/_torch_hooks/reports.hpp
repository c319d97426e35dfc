// What torch reports of streams, events and memory.
#pragma once

#include "hooks.h"
#include "running.hpp"
#include "state.hpp"

#include <c10/core/impl/GPUTrace.h>
#include <c10/core/impl/PyInterpreter.h>

#include <cstdint>
#include <cstdlib>
#include <string>

namespace weir_torch {

/// What torch reports of streams, events and memory. It takes the interface of an interpreter of Python for that, of which it calls these
/// functions alone.
struct reports final : c10::impl::PyInterpreterVTable {
    [[noreturn]] static void refuse() { std::abort(); }

    std::string name() const override { return "weir"; }
    void incref(PyObject*) const override { refuse(); }
    void decref(PyObject*) const override { refuse(); }
    bool try_incref(const c10::impl::PyObjectSlot&) const override { refuse(); }
    size_t refcnt(PyObject*) const override { refuse(); }
    c10::intrusive_ptr<c10::TensorImpl> detach(const c10::TensorImpl*) const override { refuse(); }
    void dispatch(const c10::OperatorHandle&, torch::jit::Stack*) const override { refuse(); }
    void reportErrorCallback(PyObject*, c10::DispatchKey) const override { refuse(); }
    void python_op_registration_trampoline(const c10::OperatorHandle&, c10::DispatchKey, c10::DispatchKeySet,
                                           torch::jit::Stack*, bool, bool) const override {
        refuse();
    }
    void throw_abstract_impl_not_imported_error(std::string, const char*, const char*) const override { refuse(); }
    void python_dispatcher(const c10::OperatorHandle&, c10::DispatchKeySet, torch::jit::Stack*) const override {
        refuse();
    }
    bool is_contiguous(const c10::TensorImpl*, at::MemoryFormat) const override { refuse(); }
    c10::SymBool sym_is_contiguous(const c10::TensorImpl*, at::MemoryFormat) const override { refuse(); }
    bool is_strides_like(const c10::TensorImpl*, at::MemoryFormat) const override { refuse(); }
    bool is_non_overlapping_and_dense(const c10::TensorImpl*) const override { refuse(); }
    c10::Device device(const c10::TensorImpl*) const override { refuse(); }
    int64_t dim(const c10::TensorImpl*) const override { refuse(); }
    c10::IntArrayRef strides(const c10::TensorImpl*) const override { refuse(); }
    c10::IntArrayRef sizes(const c10::TensorImpl*) const override { refuse(); }
    c10::SymIntArrayRef sym_sizes(const c10::TensorImpl*) const override { refuse(); }
    c10::Layout layout(const c10::TensorImpl*) const override { refuse(); }
    int64_t numel(const c10::TensorImpl*) const override { refuse(); }
    c10::SymInt sym_numel(const c10::TensorImpl*) const override { refuse(); }
    c10::SymIntArrayRef sym_strides(const c10::TensorImpl*) const override { refuse(); }
    c10::SymInt sym_storage_offset(const c10::TensorImpl*) const override { refuse(); }
    void reset_backward_hooks(const c10::TensorImpl*) const override { refuse(); }

    static bool watches() { return watching.load(std::memory_order_relaxed) && !is_our_own; }
    static bool orders() { return keeps_order.load(std::memory_order_relaxed) && !is_our_own; }
    static weir_torch_stream on(c10::DeviceType type, uintptr_t stream) { return {current_device(type), stream, 0}; }

    void trace_gpu_event_creation(c10::DeviceType, uintptr_t) const override {}
    void trace_gpu_event_deletion(c10::DeviceType, uintptr_t event) const override {
        if (watches()) {
            calls->event_gone(event);
        }
        if (orders()) {
            ordering->event_gone(event);
        }
    }
    void trace_gpu_event_record(c10::DeviceType type, uintptr_t event, uintptr_t stream) const override {
        if (watches()) {
            running::report_pending();
            calls->event_recorded(event, on(type, stream), running::place());
        }
        if (orders()) {
            ordering->event_recorded(event, on(type, stream));
        }
    }
    void trace_gpu_event_wait(c10::DeviceType type, uintptr_t event, uintptr_t stream) const override {
        if (watches()) {
            running::report_pending();
            calls->stream_waits(event, on(type, stream), running::place());
        }
        if (orders()) {
            ordering->stream_waits(event, on(type, stream));
        }
    }
    void trace_gpu_memory_allocation(c10::DeviceType type, uintptr_t address) const override {
        const bool is_watched = watches();
        const bool is_ordered = orders();
        if (!is_watched && !is_ordered) {
            return;
        }
        const weir_torch_stream stream = current_stream(c10::Device(type));  // of the current device
        if (is_watched) {
            calls->allocated(address, stream, running::place());
        }
        if (is_ordered) {
            ordering->allocated(address, stream);
        }
    }
    void trace_gpu_memory_deallocation(c10::DeviceType, uintptr_t address) const override {
        if (watches()) {
            running::report_pending(address);
            calls->freed(address);
        }
        if (orders()) {
            ordering->freed(address);
        }
    }
    void trace_gpu_stream_creation(c10::DeviceType, uintptr_t) const override {}
    void trace_gpu_device_synchronization(c10::DeviceType type) const override {
        if (watches()) {
            running::report_pending();
            calls->device_synchronized(current_device(type), running::place());
        }
        if (orders()) {
            ordering->device_synchronized(current_device(type));
        }
    }
    void trace_gpu_stream_synchronization(c10::DeviceType type, uintptr_t stream) const override {
        if (watches()) {
            running::report_pending();
            calls->stream_synchronized(on(type, stream), running::place());
        }
        if (orders()) {
            ordering->stream_synchronized(on(type, stream));
        }
    }
    void trace_gpu_event_synchronization(c10::DeviceType, uintptr_t event) const override {
        if (watches()) {
            running::report_pending();
            calls->event_synchronized(event, running::place());
        }
        if (orders()) {
            ordering->event_synchronized(event);
        }
    }
};

}  // namespace weir_torch
