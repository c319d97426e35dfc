#include "array/cuda/fetch.hpp"

#include <array>
#include <cstring>

#include "array/cuda/launch.hpp"
#include "backend/capability/capabilities.hpp"
#include "backend/capability/copies.hpp"
#include "runtime/devices/device_state.hpp"
#include "weir/detail/passkey.hpp"
#include "weir/error.hpp"

namespace weir::array_kernels {

namespace {

using backend::capability::copies;
using backend::capability::staging;

/// Copies operand 1 of a plan to `to`, through a staging chunk that is large enough.
void fetch_chunk(const kernels& in, const copies& device, const staging::chunk& by, walk::plan both, dtype type,
                 std::byte* to) {
    both.move_to(0, by.memory());
    launches made(in);
    made.add_copy(both, type, type);
    device.run_now(made);
    std::memcpy(to, by.memory(), static_cast<std::size_t>(both.elements()) * size_of(type));
}

}  // namespace

bool fetch(const array& of, const walk::plan& both) {
    const kernels* const in = kernels_of(of.device());
    if (in == nullptr) {
        return false;
    }
    const copies& device = *of.device().state(detail::key).driver().can().copies;
    const staging::chunk by = device.staging().take();
    try {
        if (of.nbytes() <= staging::chunk_bytes) {
            fetch_chunk(*in, device, by, both, of.dtype(), both.first(0));
            return true;
        }
        const std::size_t item = size_of(of.dtype());
        const auto most = static_cast<std::int64_t>(staging::chunk_bytes / item);
        both.for_each_chunk(most, [&](const walk::plan::pointers& at, std::int64_t rows, std::int64_t columns) {
            const std::array extents = {rows, columns};
            const std::array packed = {columns * static_cast<std::int64_t>(item), static_cast<std::int64_t>(item)};
            const std::array strides = {both.row_stride(1), both.column_stride(1)};
            const walk::operand operands[] = {{at[0], packed}, {at[1], strides}};
            fetch_chunk(*in, device, by, walk::plan(extents, operands), of.dtype(), at[0]);
        });
        return true;
    } catch (const missing_library&) {
        return false;
    }
}

}  // namespace weir::array_kernels
