// What the hooks are told to do, and the streams that they do it on.
#pragma once

#include "hooks.h"

#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

namespace weir_torch {

inline const weir_torch_calls* calls = nullptr;        // set once
inline const weir_torch_ordering* ordering = nullptr;  // the same
inline std::atomic<bool> watching{false};
inline std::atomic<bool> keeps_order{false};
inline std::atomic<std::uint64_t> kept_in_order{0};  // the number of the program that is, or was last
inline thread_local bool is_our_own = false;         // what torch reports now
/// Tests on machines without a GPU: the tensors of the CPU count as memory of a device, and the operators run on this stream of it. Less
/// than 0: they do not.
inline std::atomic<std::int64_t> pretended{-1};
inline std::atomic<bool> knows_host_memory{false};  // memory of the host that a stream has used
inline thread_local std::uint64_t noted = 0;        // operations that this thread has reported

/// Whether torch's number of a stream is that of one that torch did not make: its handle, which is even.
inline bool is_external(std::int64_t number) { return number != 0 && number % 2 == 0; }

inline weir_torch_stream stream_of(const c10::Stream& stream) {
    return {stream.device_index(), reinterpret_cast<std::uint64_t>(stream.native_handle()),
            is_external(stream.id()) ? 1 : 0};
}
inline bool is_pretended() { return pretended.load(std::memory_order_relaxed) >= 0; }

inline void tell_unseen(const char* what) {
    if (watching.load(std::memory_order_relaxed)) {
        calls->unseen(what);
    }
    if (keeps_order.load(std::memory_order_relaxed)) {
        ordering->unseen(what);
    }
}

/// The streams that operators have run on, by device and handle.
class streams {
public:
    static void add(const c10::Stream& stream, const weir_torch_stream& known_as) {
        thread_local std::optional<c10::Stream> last;
        if (last != stream) {
            const std::lock_guard lock(mutex());
            all().insert_or_assign({known_as.device, known_as.handle}, stream);
            last = stream;
        }
    }
    /// A stream that another package uses, by torch's number of it, unless it is known.
    static void add_used(weir_torch_stream& which, std::int64_t number) {
        if (is_pretended()) {
            return;
        }
        const c10::Device device(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(which.device));
        const c10::Stream made(c10::Stream::UNSAFE, device, number);
        const std::lock_guard lock(mutex());
        const auto known = all().try_emplace({which.device, which.handle}, made).first;
        which.may_end = is_external(known->second.id()) ? 1 : 0;
    }
    static c10::Stream get(const weir_torch_stream& which) {
        const std::lock_guard lock(mutex());
        return all().at({which.device, which.handle});
    }

private:
    static std::mutex& mutex() {
        static auto* const one = new std::mutex;
        return *one;
    }
    static std::map<std::pair<std::int32_t, std::uint64_t>, c10::Stream>& all() {
        static auto* const one = new std::map<std::pair<std::int32_t, std::uint64_t>, c10::Stream>;
        return *one;
    }
};

inline weir_torch_stream current_stream(c10::Device on) {
    if (const std::int64_t stream = pretended.load(std::memory_order_relaxed); stream >= 0) {
        return {0, static_cast<std::uint64_t>(stream), 0};
    }
    const c10::Stream stream = c10::impl::VirtualGuardImpl(on.type()).getStream(on);
    const weir_torch_stream known_as = stream_of(stream);
    if (keeps_order.load(std::memory_order_relaxed)) {
        streams::add(stream, known_as);
    }
    return known_as;
}
inline c10::DeviceIndex current_device(c10::DeviceType type) {
    return is_pretended() ? c10::DeviceIndex{0} : c10::impl::VirtualGuardImpl(type).getDevice().index();
}

/// Whether a stream is being captured into a graph, by CUDA's driver, which torch has loaded. Also true for the legacy stream while others
/// are captured: it must not be used then.
inline bool is_capturing(const weir_torch_stream& stream) {
    using ask_driver = int (*)(void*, int*);
    static const auto ask = [] {
        void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
        return reinterpret_cast<ask_driver>(driver == nullptr ? nullptr : dlsym(driver, "cuStreamIsCapturing"));
    }();
    int status = 0;
    return ask != nullptr && (ask(reinterpret_cast<void*>(stream.handle), &status) != 0 || status != 0);
}

}  // namespace weir_torch
