#include "backend/cuda/memory/device_copies.hpp"

#include "backend/cuda/api/driver_api.hpp"
#include "backend/cuda/memory/transfer.hpp"

namespace weir::backend::cuda {

namespace {

stream_handle stream_of(detail::queue_handle queue) noexcept { return static_cast<stream_handle>(queue.value); }

/// Its destructor waits until the device has done everything in Weir's own stream, also after an error.
struct awaited {
    explicit awaited(const device_context& of) noexcept : in(&of) {}
    ~awaited() { in->api().stream_synchronize(in->own_stream()); }
    awaited(const awaited&) = delete;
    awaited& operator=(const awaited&) = delete;
    const device_context* in;
};

}  // namespace

void device_copies::copy(std::byte* to, const std::byte* from, std::size_t bytes, detail::queue_handle into) const {
    in_->expect(in_->api().copy_async(address_of(to), address_of(from), bytes, stream_of(into)), "cuMemcpyAsync");
}

void device_copies::copy_from_host(std::byte* to, const std::byte* from, std::size_t bytes,
                                   detail::queue_handle into) const {
    in_->expect(in_->api().copy_to_device_async(address_of(to), from, bytes, stream_of(into)), "cuMemcpyHtoDAsync");
}

void device_copies::copy_between(std::byte* to, const capability::copies& of_to, const std::byte* from,
                                 const capability::copies& of_from, std::size_t bytes,
                                 detail::queue_handle into) const {
    // Both are CUDA devices, as this one is.
    transfer::between(*in_, stream_of(into), {static_cast<const device_copies&>(of_to).in_, address_of(to)},
                      {static_cast<const device_copies&>(of_from).in_, address_of(from)}, bytes);
}

void device_copies::run_now(const std::function<void(detail::queue_handle)>& work) const {
    const in_relaxed_context here(*in_);
    const awaited before_it_returns(*in_);
    work({in_->own_stream()});
    in_->expect(in_->api().stream_synchronize(in_->own_stream()), "cuStreamSynchronize");
}

}  // namespace weir::backend::cuda
