#include "array/cuda/enqueue.hpp"

#include <utility>
#include <vector>

#include "array/operation.hpp"
#include "runtime/devices/device_state.hpp"
#include "weir/arithmetic.hpp"
#include "weir/detail/internal_memory.hpp"
#include "weir/error.hpp"
#include "weir/shape.hpp"
#include "weir/stream.hpp"

namespace weir::array_kernels {

namespace {

/// Whether exponents in an array may be negative.
bool may_have_negative_exponent(function what, std::span<const argument> inputs) noexcept {
    return what == of(binary_operation::power) && inputs[1].number == nullptr &&
           kind_of(inputs[1].computed) == dtype_kind::signed_integer &&
           kind_of(inputs[1].stored) == dtype_kind::signed_integer;
}

}  // namespace

completion enqueue(const on& where, std::span<const runtime::access_request> accesses, launches what,
                   runtime::work_kind kind) {
    if (const small_launch* const one = what.alone()) {
        return operation::enqueue(where, accesses, detail::native_task{*one}, kind);
    }
    return operation::enqueue(where, accesses, detail::native_task{std::move(what)}, kind);
}

completion enqueue(const on& where, std::span<const runtime::access_request> accesses, launches first, function what,
                   const array& out, dtype result, std::span<const argument> inputs, const walk::plan& all) {
    const argument to{out.dtype(), result, nullptr};
    if (!may_have_negative_exponent(what, inputs) || all.elements() == 0) {
        first.add(what, to, inputs, all);
        return enqueue(where, accesses, std::move(first));
    }
    const array found = detail::internal(empty({1}, dtype::int32, where.stream(), where.site(detail::key).where));
    const walk::operand flag[] = {operation::operand_of(found)};
    const std::int32_t none = 0;
    first.add_fill({found.shape().extents(), flag}, dtype::int32, reinterpret_cast<const std::byte*>(&none));
    first.add(what, to, inputs, all, {reinterpret_cast<std::uintptr_t>(found.device_data()), 0});
    std::vector<runtime::access_request> more(accesses.begin(), accesses.end());
    more.push_back(operation::writes(found));
    enqueue(where, more, std::move(first));

    runtime::access_request spoiled = operation::writes(out);
    spoiled.overwrites = false;
    const runtime::access_request looked_at[] = {spoiled, operation::reads(found)};
    return operation::enqueue(
        where, looked_at,
        [from = &where.stream().device().state(detail::key).driver(), at = found.device_data()] {
            std::int32_t is_negative = 0;
            from->fetch(reinterpret_cast<std::byte*>(&is_negative), at, sizeof is_negative);
            if (is_negative != 0) {
                throw argument_error("integers to a negative power: convert them to a floating-point type first");
            }
        },
        runtime::work_kind::host_task);
}

}  // namespace weir::array_kernels
