#include "array/cuda/fetch.hpp"

#include <array>
#include <cstring>

#include "array/cuda/launch.hpp"
#include "backend/cuda/context.hpp"
#include "backend/cuda/driver.hpp"
#include "backend/cuda/staging.hpp"
#include "runtime/device_state.hpp"
#include "weir/error.hpp"

namespace weir::array_kernels {

namespace {

using backend::cuda::staging;

/// The device has done with what it was given here, also if something failed.
struct settled {
    explicit settled(backend::cuda::device_context& of) noexcept : in(&of) {}
    ~settled() { in->api().stream_synchronize(in->own_stream()); }
    settled(const settled&) = delete;
    settled& operator=(const settled&) = delete;
    backend::cuda::device_context* in;
};

/// Copies operand 1 of a plan to `to`, by way of a piece of memory that is large enough.
void fetch_piece(backend::cuda::device_context& in, const staging::piece& by, walk::plan both, dtype type,
                 std::byte* to) {
    both.move_to(0, by.memory());
    launches made(in);
    made.add_copy(both, type, type);
    made({in.own_stream()});
    in.expect(in.api().stream_synchronize(in.own_stream()), "cuStreamSynchronize");
    std::memcpy(to, by.memory(), static_cast<std::size_t>(both.elements()) * size_of(type));
}

}  // namespace

bool fetch(const array& of, const walk::plan& both) {
    if (context_of(of.device()) == nullptr) {
        return false;
    }
    backend::cuda::device_context& in = backend::cuda::context_of(of.device().state().driver());
    const staging::piece by = in.pieces.take();
    const backend::cuda::in_relaxed_context here(in);
    const settled before_it_goes(in);
    try {
        if (of.nbytes() <= staging::piece_bytes) {
            fetch_piece(in, by, both, of.dtype(), both.first(0));
            return true;
        }
        const std::size_t item = size_of(of.dtype());
        const auto most = static_cast<std::int64_t>(staging::piece_bytes / item);
        both.for_each_piece(most, [&](const walk::plan::pointers& at, std::int64_t rows, std::int64_t columns) {
            const std::array extents = {rows, columns};
            const std::array packed = {columns * static_cast<std::int64_t>(item), static_cast<std::int64_t>(item)};
            const std::array strides = {both.row_stride(1), both.column_stride(1)};
            const walk::operand operands[] = {{at[0], packed}, {at[1], strides}};
            fetch_piece(in, by, walk::plan(extents, operands), of.dtype(), at[0]);
        });
        return true;
    } catch (const missing_library&) {
        return false;
    }
}

}  // namespace weir::array_kernels
