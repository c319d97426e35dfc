#include <algorithm>
#include <array>

#include "array/cuda/enqueue.hpp"
#include "array/layout.hpp"
#include "array/operation.hpp"
#include "array/walk.hpp"
#include "backend/capability/kernels.hpp"
#include "weir/array.hpp"
#include "weir/detail/passkey.hpp"
#include "weir/launch.hpp"

namespace weir {

completion fill(const on& where, array& dst, const scalar& value) {
    value.expect_fits(dst.dtype());
    detail::expect_own_elements(dst);
    operation::expect_on_device_of(where, dst);
    alignas(16) std::array<std::byte, 16> element{};
    value.store(dst.dtype(), element.data());
    const layout::axes nowhere;
    const walk::operand operands[] = {operation::operand_of(dst), {element.data(), nowhere.first(dst.dimensions())}};
    const runtime::access_request accesses[] = {operation::writes(dst)};
    walk::plan all(dst.shape().extents(), operands);
    if (const array_kernels::kernels* const device = array_kernels::kernels_of(where.stream().device())) {
        array_kernels::launches made(*device);
        made.add_fill(all, dst.dtype(), element.data());
        return array_kernels::enqueue(where, accesses, std::move(made));
    }
    return operation::enqueue(where, accesses, [element, item = size_of(dst.dtype()), both = std::move(all)]() mutable {
        both.move_to(1, element.data());
        walk::copy_elements(both, item);
    });
}

array empty(const shape& extents, dtype type, const stream_ref& on, source_location where) {
    const std::size_t bytes = bytes_for(type, static_cast<std::size_t>(extents.elements()));
    return bytes == 0 ? array(detail::key, type, extents, on.device()) : array(buffer(bytes, on, where), type, extents);
}

namespace {

array filled(const shape& extents, const scalar& value, dtype type, const on& where, const source_location& from) {
    value.expect_fits(type);
    array made = empty(extents, type, where.stream(), from);
    fill(where, made, value);
    return made;
}

}  // namespace

array zeros(const shape& extents, dtype type, const stream_ref& on, source_location where) {
    return filled(extents, 0, type, weir::on(on, where).label("zeros"), where);
}

array ones(const shape& extents, dtype type, const stream_ref& on, source_location where) {
    return filled(extents, 1, type, weir::on(on, where).label("ones"), where);
}

array full(const shape& extents, const scalar& value, dtype type, const stream_ref& on, source_location where) {
    return filled(extents, value, type, weir::on(on, where).label("full"), where);
}

}  // namespace weir
