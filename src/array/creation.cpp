#include <algorithm>
#include <array>

#include "array/cuda/enqueue.hpp"
#include "array/layout.hpp"
#include "array/operation.hpp"
#include "array/walk.hpp"
#include "backend/cuda/compile.hpp"
#include "weir/array.hpp"
#include "weir/launch.hpp"

namespace weir {

completion fill(const on& where, const array& dst, const scalar& value) {
    value.expect_fits(dst.dtype());
    detail::expect_own_elements(dst);
    operation::expect_on_device_of(where, dst);
    alignas(16) std::array<std::byte, 16> element{};
    value.store(dst.dtype(), element.data());
    const layout::axes nowhere;
    const walk::operand operands[] = {operation::operand_of(dst), {element.data(), nowhere.first(dst.dimensions())}};
    const runtime::access_request accesses[] = {operation::writes(dst)};
    walk::plan all(dst.shape().extents(), operands);
    if (const array_kernels::context* const device = array_kernels::context_of(where.stream().device())) {
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
    const std::size_t bytes = static_cast<std::size_t>(extents.elements()) * size_of(type);
    array made(buffer(bytes, on, where), type, extents);
    if (bytes == 0) {
        // There is no memory that says it, and what is computed of the array belongs there.
        made.place_ = &on.device().state();
    }
    return made;
}

array zeros(const shape& extents, dtype type, const stream_ref& on, source_location where) {
    return full(extents, 0, type, on, where);
}

array ones(const shape& extents, dtype type, const stream_ref& on, source_location where) {
    return full(extents, 1, type, on, where);
}

array full(const shape& extents, const scalar& value, dtype type, const stream_ref& on, source_location where) {
    value.expect_fits(type);
    array made = empty(extents, type, on, where);
    fill({on, where}, made, value);
    return made;
}

}  // namespace weir
