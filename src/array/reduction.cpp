#include "weir/reduction.hpp"

#include <cmath>
#include <string>
#include <utility>

#include "array/axes.hpp"
#include "array/cuda/launch.hpp"
#include "array/cuda/reduction.hpp"
#include "array/cuda/source.hpp"
#include "array/elements/reduction_host.hpp"
#include "array/layout.hpp"
#include "array/operation.hpp"
#include "array/reduction_loops.hpp"
#include "array/walk.hpp"
#include "weir/detail/site.hpp"
#include "weir/detail/submission.hpp"
#include "weir/error.hpp"
#include "weir/stream.hpp"

namespace weir {

std::uint64_t layout::chosen_axes(const shape& extents, const along& axes) {
    if (!axes.axes) {
        return (std::uint64_t{1} << extents.dimensions()) - 1;
    }
    std::uint64_t chosen = 0;
    for (const std::int64_t one : *axes.axes) {
        const std::uint64_t bit = std::uint64_t{1} << layout::axis_of(one, extents);
        if ((chosen & bit) != 0) {
            throw argument_error("axis " + std::to_string(one) + " of an array of the shape " + extents.to_string() +
                                 " is named twice: name each axis once");
        }
        chosen |= bit;
    }
    return chosen;
}

namespace {

/// Adjacent results that the loops compute in one step.
constexpr std::int64_t rows_at_once = 32;

array_kernels::function same_by_kernels(reduction what) noexcept {
    switch (what) {
        case reduction::min:
            return array_kernels::function::lesser;
        case reduction::max:
            return array_kernels::function::larger;
        default:
            return array_kernels::function::plus;
    }
}

}  // namespace

array reduce(const on& where, reduction what, const array& x, const along& axes) {
    operation::expect_on_device_of(where, x);
    const std::uint64_t chosen = layout::chosen_axes(x.shape(), axes);
    layout::axes kept;
    layout::axes kept_strides;
    layout::axes reduced;
    layout::axes reduced_strides;
    layout::axes result;
    std::size_t kept_count = 0;
    std::size_t reduced_count = 0;
    std::size_t result_count = 0;
    for (std::size_t axis = 0; axis < x.dimensions(); ++axis) {
        if ((chosen >> axis & 1U) != 0) {
            reduced[reduced_count] = x.shape()[axis];
            reduced_strides[reduced_count++] = x.strides()[axis];
            if (axes.keep) {
                result[result_count++] = 1;
            }
        } else {
            kept[kept_count] = x.shape()[axis];
            kept_strides[kept_count++] = x.strides()[axis];
            result[result_count++] = x.shape()[axis];
        }
    }
    detail::expect_arithmetic(x.dtype(), "a reduction");
    const loops::reducer how = loops::find(what, x.dtype());
    const shape over(reduced.first(reduced_count));
    if (over.elements() == 0) {
        if (what == reduction::min || what == reduction::max) {
            throw argument_error(std::string(what == reduction::min ? "min" : "max") +
                                 " of no elements, of the shape " + x.shape().to_string() +
                                 ": there is none; reduce axes that are not empty");
        }
        const bool mean = what == reduction::mean;
        return full(shape(result.first(result_count)), mean ? std::nan("") : 0.0, how.result, where.stream(),
                    where.site(detail::key).where);
    }
    array out = empty(shape(result.first(result_count)), how.result, where.stream(), where.site(detail::key).where);
    if (out.size() == 0) {
        return out;
    }
    const shape kept_shape(kept.first(kept_count));
    const layout::axes packed = layout::packed_strides(kept_shape.extents(), size_of(how.result));
    const walk::operand results[] = {{out.device_data(), packed.first(kept_count)},
                                     {x.device_data(), kept_strides.first(kept_count)}};
    const walk::operand one[] = {{x.device_data(), reduced_strides.first(reduced_count)}};
    const bool mean = what == reduction::mean;
    if (array_kernels::kernels_of(where.stream().device()) != nullptr) {
        const walk::plan over_results(kept_shape.extents(), results);
        const walk::plan over_reduced(over.extents(), one);
        array_kernels::enqueue(where, out, x,
                               {same_by_kernels(what), mean, x.dtype(), how.computed, how.result, &over_results,
                                &over_reduced, x.device_data()});
        return out;
    }
    const runtime::access_request accesses[] = {operation::writes(out), operation::reads(x)};
    // Along one axis, elements are taken in their order; along several, in one that suits the memory.
    const auto order = reduced_count == 1 ? walk::order_of_elements::c : walk::order_of_elements::any;
    elements::host_reduction_plan plan{how.run,
                                       walk::large_plan(kept_shape.extents(), results),
                                       walk::large_plan(over.extents(), one, order),
                                       1,
                                       1,
                                       size_of(how.computed),
                                       rows_at_once,
                                       {}};
    // Where the order is backwards, the first element of a result is not the one with all indices 0.
    plan.results.move_to(1, plan.results.first(1) + (plan.reduced.first(0) - x.device_data()));
    // On the inline device only the calling thread runs operations; simulated devices have a time of their own.
    const bool shares = where.stream().device().kind() == device_kind::cpu;
    operation::enqueue(where, accesses, [plan = std::move(plan), shares] { elements::reduce_on_host(plan, shares); });
    return out;
}

}  // namespace weir
