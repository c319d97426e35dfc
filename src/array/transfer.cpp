#include "array/transfer.hpp"

#include <cstring>
#include <memory>
#include <utility>

#include "array/operation.hpp"
#include "backend/capability/capabilities.hpp"
#include "backend/capability/copies.hpp"
#include "runtime/devices/device_state.hpp"
#include "weir/detail/passkey.hpp"
#include "weir/detail/site.hpp"
#include "weir/detail/submission.hpp"
#include "weir/detail/task.hpp"
#include "weir/stream.hpp"

namespace weir {

namespace {

using backend::capability::copies;
using backend::capability::staging;

/// std::memmove, also for empty spans with null pointers.
void move_bytes(std::span<std::byte> to, std::span<const std::byte> from) noexcept {
    if (!from.empty()) {
        std::memmove(to.data(), from.data(), from.size());
    }
}

/// Null where host code copies the device's memory.
const copies* copies_of(const device& where) { return where.state(detail::key).driver().can().copies; }

/// Copies between the device's own memory, or host memory that it reaches.
auto by_device(const copies& by, std::byte* to, const std::byte* from, std::size_t bytes) {
    return detail::native_task{[&by, to, from, bytes] { by.copy(to, from, bytes, {detail::native_queue_handle()}); }};
}

}  // namespace

completion operation::transfer(const on& where, const array& dst, const array& src) {
    const runtime::access_request accesses[] = {writes(dst), reads(src)};
    std::byte* const to = dst.device_data();
    const std::byte* const from = src.device_data();
    const std::size_t bytes = dst.nbytes();
    const copies* const into = copies_of(dst.device());
    const copies* const out_of = copies_of(src.device());
    // For the driver the result of overlapping copies is undefined; where host code replaces device work, host code moves the bytes.
    const bool overlap = to < from + bytes && from < to + bytes;
    if (into != nullptr && out_of != nullptr && overlap && dst.device().state(detail::key).driver().runs_host_code()) {
        return enqueue(where, accesses, [=] { move_bytes({to, bytes}, {from, bytes}); });
    }
    const copies* const here = copies_of(where.stream().device());
    if (into != nullptr && out_of != nullptr) {
        if (into != out_of) {
            return enqueue(where, accesses, detail::native_task{[=] {
                               here->copy_between(to, *into, from, *out_of, bytes, {detail::native_queue_handle()});
                           }},
                           runtime::work_kind::copy);
        }
        return enqueue(where, accesses, by_device(*here, to, from, bytes), runtime::work_kind::copy);
    }
    // The driver can copy pinned host memory as well.
    const bool other_is_pinned = (into != nullptr && src.buffer().pinned(detail::key)) ||
                                 (out_of != nullptr && dst.buffer().pinned(detail::key));
    if (other_is_pinned && here != nullptr) {
        return enqueue(where, accesses, by_device(*here, to, from, bytes), runtime::work_kind::copy);
    }
    // Where one side is host memory that the device may not reach itself, a thread of Weir's copies.
    backend::driver* const device = &(into != nullptr ? dst : src).device().state(detail::key).driver();
    if (into != nullptr) {
        return enqueue(
            where, accesses, [=] { device->store(to, from, bytes); }, runtime::work_kind::copy);
    }
    if (out_of != nullptr) {
        return enqueue(
            where, accesses, [=] { device->fetch(to, from, bytes); }, runtime::work_kind::copy);
    }
    return enqueue(
        where, accesses,
        [=] {
            move_bytes({to, bytes}, {from, bytes});
        },
        runtime::work_kind::copy);
}

completion operation::transfer_from_host(const on& where, const array& dst, std::span<const std::byte> src) {
    const runtime::access_request accesses[] = {writes(dst)};
    std::byte* const to = dst.device_data();
    const std::size_t bytes = src.size();
    const copies* const into = copies_of(dst.device());
    if (into != nullptr && where.stream().device() == dst.device() && bytes <= staging::chunk_bytes) {
        if (staging::chunk chunk = into->staging().try_take()) {
            move_bytes({chunk.memory(), bytes}, src);
            auto body = [into, to, bytes, kept = std::move(chunk)] {
                into->copy_from_host(to, kept.memory(), bytes, {detail::native_queue_handle()});
            };
            return enqueue(where, accesses, detail::native_task{std::move(body)}, runtime::work_kind::copy);
        }
    }
    // The source may change as soon as the call returns: the operation owns a copy. Not in pool memory, which work before this
    // operation may still use, since the host writes the copy at once.
    auto kept = std::make_unique_for_overwrite<std::byte[]>(bytes);
    move_bytes({kept.get(), bytes}, src);
    if (into != nullptr) {
        backend::driver* const device = &dst.device().state(detail::key).driver();
        return enqueue(
            where, accesses, [=, kept = std::move(kept)] { device->store(to, kept.get(), bytes); },
            runtime::work_kind::copy);
    }
    return enqueue(
        where, accesses,
        [=, kept = std::move(kept)] {
            move_bytes({to, bytes}, {kept.get(), bytes});
        },
        runtime::work_kind::copy);
}

}  // namespace weir
