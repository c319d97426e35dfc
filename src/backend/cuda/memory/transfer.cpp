#include "backend/cuda/memory/transfer.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "backend/capability/staging.hpp"
#include "backend/cuda/api/driver_api.hpp"

namespace weir::backend::cuda::transfer {

namespace {

/// Two chunks that take turns: while the device copies one, the host copies the other.
struct turns {
    explicit turns(device_context& of) : in(of) {
        for (one& each : both) {
            each.chunk = of.chunks.take();
            each.over = of.events.take();
        }
    }
    // Waits until the device has done with the chunks, also after an error.
    ~turns() { in.api().stream_synchronize(in.own_stream()); }
    turns(const turns&) = delete;
    turns& operator=(const turns&) = delete;

    struct one {
        staging::chunk chunk;
        event_ref over;
        bool in_use = false;
        std::byte* host = nullptr;
        std::size_t bytes = 0;
    };
    void record(one& each) {
        in.expect(in.api().event_record(each.over.handle(), in.own_stream()), "cuEventRecord");
        each.in_use = true;
    }
    void await(one& each) {
        if (each.in_use) {
            in.expect(in.api().event_synchronize(each.over.handle()), "cuEventSynchronize");
            each.in_use = false;
        }
    }

    device_context& in;
    std::array<one, 2> both;
};

}  // namespace

void to_device(device_context& in, std::byte* device, const std::byte* host, std::size_t bytes) {
    const in_relaxed_context here(in);
    turns all(in);
    for (std::size_t done = 0, turn = 0; done < bytes; turn ^= 1U) {
        turns::one& each = all.both[turn];
        const std::size_t now = std::min(bytes - done, staging::chunk_bytes);
        all.await(each);
        std::memcpy(each.chunk.memory(), host + done, now);
        in.expect(in.api().copy_to_device_async(address_of(device + done), each.chunk.memory(), now, in.own_stream()),
                  "cuMemcpyHtoDAsync");
        all.record(each);
        done += now;
    }
    for (turns::one& each : all.both) {
        all.await(each);
    }
}

void to_host(device_context& in, std::byte* host, const std::byte* device, std::size_t bytes) {
    const in_relaxed_context here(in);
    turns all(in);
    const auto take_over = [&](turns::one& each) {
        if (each.in_use) {
            all.await(each);
            std::memcpy(each.host, each.chunk.memory(), each.bytes);
        }
    };
    std::size_t turn = 0;
    for (std::size_t done = 0; done < bytes; turn ^= 1U) {
        turns::one& each = all.both[turn];
        take_over(each);
        each.host = host + done;
        each.bytes = std::min(bytes - done, staging::chunk_bytes);
        in.expect(
            in.api().copy_to_host_async(each.chunk.memory(), address_of(device + done), each.bytes, in.own_stream()),
            "cuMemcpyDtoHAsync");
        all.record(each);
        done += each.bytes;
    }
    take_over(all.both[turn]);
    take_over(all.both[turn ^ 1U]);
}

namespace {

/// Whether the device `device` may access the memory without being given its context. The driver reports this for mapped memory. (The
/// attribute CU_POINTER_ATTRIBUTE_ACCESS_FLAGS reports memory of the driver's pools as accessible to all devices, which is wrong.)
bool may_touch(const driver_api& api, device_number device, device_pointer memory) noexcept {
    const memory_location there{.id = device};
    unsigned long long access = 0;
    return api.memory_access != nullptr && api.memory_access(&access, &there, memory) == success &&
           access == access_read_write;
}

}  // namespace

/// If one device may not access memory of the other, the driver copies it only if it is given both contexts: without them it refuses mapped
/// memory and memory of a pool. With them it copies any memory, but a small copy takes the host longer.
void between(const context& here, stream_handle stream, place to, place from, std::size_t bytes) {
    const driver_api& api = here.api();
    const place& theirs = to.in == &here ? from : to;
    if (may_touch(api, here.device(), theirs.address)) {
        here.expect(api.copy_async(to.address, from.address, bytes, stream), "cuMemcpyAsync");
    } else {
        here.expect(api.copy_peer_async(to.address, to.in->handle(), from.address, from.in->handle(), bytes, stream),
                    "cuMemcpyPeerAsync");
    }
}

}  // namespace weir::backend::cuda::transfer
