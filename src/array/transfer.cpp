#include "array/transfer.hpp"

#include <cstring>
#include <memory>
#include <utility>

#include "array/operation.hpp"
#include "backend/cuda/driver.hpp"
#include "backend/cuda/driver_api.hpp"
#include "backend/cuda/staging.hpp"
#include "backend/cuda/transfer.hpp"
#include "runtime/device_state.hpp"
#include "weir/detail/site.hpp"
#include "weir/detail/task.hpp"

namespace weir {

namespace {

namespace gpu = backend::cuda;

/// std::memmove, also for nothing from nowhere.
void move_bytes(std::span<std::byte> to, std::span<const std::byte> from) noexcept {
    if (!from.empty()) {
        std::memmove(to.data(), from.data(), from.size());
    }
}

bool is_on_gpu(const array& x) noexcept { return x.buffer().device().kind() == device_kind::cuda; }

gpu::device_pointer address_of(const std::byte* memory) noexcept {
    return reinterpret_cast<gpu::device_pointer>(memory);
}

/// The device's own memory, or memory of the host that it reaches.
auto on_the_gpu(gpu::device_context& in, std::byte* to, const std::byte* from, std::size_t bytes) {
    return detail::native_task{[&in, to, from, bytes] {
        auto* const stream = static_cast<gpu::stream_handle>(detail::native_queue_handle());
        in.expect(in.api().copy_async(address_of(to), address_of(from), bytes, stream), "cuMemcpyAsync");
    }};
}

/// From one GPU's memory into another's.
auto between_gpus(gpu::device_context& in, const array& dst, const array& src) {
    const gpu::transfer::place to{&gpu::context_of(dst.device().state().driver()), address_of(dst.device_data())};
    const gpu::transfer::place from{&gpu::context_of(src.device().state().driver()), address_of(src.device_data())};
    return detail::native_task{[&in, to, from, bytes = dst.nbytes()] {
        gpu::transfer::between(in, static_cast<gpu::stream_handle>(detail::native_queue_handle()), to, from, bytes);
    }};
}

}  // namespace

completion operation::transfer(const on& where, const array& dst, const array& src) {
    const runtime::access_request accesses[] = {writes(dst), reads(src)};
    std::byte* const to = dst.device_data();
    const std::byte* const from = src.device_data();
    const std::size_t bytes = dst.nbytes();
    const bool to_gpu = is_on_gpu(dst);
    const bool from_gpu = is_on_gpu(src);
    // The driver does not say what comes of copies that overlap; where host code stands for the device's, it moves them.
    const bool overlap = to < from + bytes && from < to + bytes;
    if (to_gpu && from_gpu && overlap && dst.device().state().driver().runs_host_code()) {
        return enqueue(where, accesses, [=] { move_bytes({to, bytes}, {from, bytes}); });
    }
    if (to_gpu && from_gpu) {
        gpu::device_context& in = gpu::context_of(where.stream().device().state().driver());
        if (dst.device() != src.device()) {
            return enqueue(where, accesses, between_gpus(in, dst, src), runtime::work_kind::copy);
        }
        return enqueue(where, accesses, on_the_gpu(in, to, from, bytes), runtime::work_kind::copy);
    }
    // Pinned memory of the host is the driver's to copy as well.
    if ((to_gpu && src.buffer().pinned()) || (from_gpu && dst.buffer().pinned())) {
        const device gpus = where.stream().device();
        if (gpus.kind() == device_kind::cuda) {
            return enqueue(where, accesses, on_the_gpu(gpu::context_of(gpus.state().driver()), to, from, bytes),
                           runtime::work_kind::copy);
        }
    }
    // Where one side is memory of the host that the device may not reach itself, a thread of Weir's sees to the copy.
    backend::driver* const device = &(to_gpu ? dst : src).device().state().driver();
    if (to_gpu) {
        return enqueue(
            where, accesses, [=] { device->store(to, from, bytes); }, runtime::work_kind::copy);
    }
    if (from_gpu) {
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
    if (is_on_gpu(dst) && where.stream().device() == dst.device() && bytes <= gpu::staging::piece_bytes) {
        gpu::device_context& in = gpu::context_of(dst.device().state().driver());
        if (gpu::staging::piece piece = in.pieces.try_take()) {
            move_bytes({piece.memory(), bytes}, src);
            auto body = [&in, to, bytes, kept = std::move(piece)] {
                auto* const stream = static_cast<gpu::stream_handle>(detail::native_queue_handle());
                in.expect(in.api().copy_to_device_async(address_of(to), kept.memory(), bytes, stream),
                          "cuMemcpyHtoDAsync");
            };
            return enqueue(where, accesses, detail::native_task{std::move(body)}, runtime::work_kind::copy);
        }
    }
    // The source may change as soon as the call returns: the operation owns a copy. Not in memory of the pool, which may
    // still be in use by work before this operation, and the host writes here at once.
    auto kept = std::make_unique_for_overwrite<std::byte[]>(bytes);
    move_bytes({kept.get(), bytes}, src);
    if (is_on_gpu(dst)) {
        backend::driver* const device = &dst.device().state().driver();
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
