#include "weir/reduction.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <string>

#include "array/convert.hpp"
#include "array/cuda/launch.hpp"
#include "array/cuda/reduction.hpp"
#include "array/cuda/source.hpp"
#include "array/layout.hpp"
#include "array/operation.hpp"
#include "array/reduction_loops.hpp"
#include "array/walk.hpp"
#include "weir/detail/site.hpp"
#include "weir/detail/submission.hpp"
#include "weir/error.hpp"
#include "weir/stream.hpp"

namespace weir {

namespace {

/// Results of pieces, put together in pairs of equal weight, as the carries of a binary counter: so a sum is taken
/// pairwise however long it is.
class pairing {
public:
    void add(const loops::reducer& how, loops::partial value) noexcept {
        std::size_t level = 0;
        for (; (count_ >> level & 1U) != 0; ++level) {
            how.two(&levels_[level], &value);
            value = levels_[level];
        }
        levels_[level] = value;
        ++count_;
    }
    /// At least one was added.
    [[nodiscard]] loops::partial result(const loops::reducer& how) const noexcept {
        auto level = static_cast<std::size_t>(std::countr_zero(count_));
        loops::partial value = levels_[level];
        for (++level; count_ >> level != 0; ++level) {
            if ((count_ >> level & 1U) != 0) {
                loops::partial larger = levels_[level];
                how.two(&larger, &value);
                value = larger;
            }
        }
        return value;
    }

private:
    std::array<loops::partial, 48> levels_;  // as many as the bits of the number of pieces
    std::uint64_t count_ = 0;
};

class reduce_work {
public:
    reduce_work(const loops::reducer& how, bool mean, walk::plan results, walk::plan reduced, const array& x, dtype to)
        : how_(how),
          mean_(mean),
          origin_(x.device_data()),
          results_(std::move(results)),
          reduced_(std::move(reduced)),
          convert_(x.dtype() == how.computed ? nullptr : convert::between(x.dtype(), how.computed)),
          finish_(convert::between(how.computed, to)),
          item_(size_of(x.dtype())) {}

    void operator()() const {
        // Some results side by side: what lies next to each other in memory is read together.
        results_.for_each_piece(beside, [&](const walk::plan::pointers& at, std::int64_t rows, std::int64_t columns) {
            for (std::int64_t row = 0; row < rows; ++row) {
                reduce(at[0] + row * results_.row_stride(0), at[1] + row * results_.row_stride(1), columns);
            }
        });
    }

private:
    static constexpr std::int64_t beside = 16;
    static constexpr std::int64_t most = 128;  ///< elements of each at a time

    void reduce(std::byte* out, std::byte* in, std::int64_t results) const {
        std::array<pairing, beside> all;
        alignas(64) std::byte gathered[beside * most * 16];
        alignas(64) std::byte converted[most * 16];
        const std::int64_t apart = results_.column_stride(1);
        reduced_.for_each_piece(most, [&](const walk::plan::pointers& at, std::int64_t rows, std::int64_t columns) {
            std::byte* const first = in + (at[0] - origin_);  // as far from the first element as in the first result
            const auto item = static_cast<std::int64_t>(item_);
            const auto count = static_cast<std::size_t>(rows * columns);
            const bool direct =
                walk::is_packed({first, reduced_.row_stride(0), reduced_.column_stride(0)}, rows, columns, item_);
            for (std::int64_t row = 0; row < rows && !direct; ++row) {
                walk::copy_grid({gathered + row * columns * item, most * item, item},
                                {first + row * reduced_.row_stride(0), apart, reduced_.column_stride(0)}, results,
                                columns, item_);
            }
            for (std::int64_t i = 0; i < results; ++i) {
                const std::byte* elements = direct ? first + i * apart : gathered + i * most * item;
                if (convert_ != nullptr) {
                    convert_(elements, converted, count);
                    elements = converted;
                }
                loops::partial value;
                how_.many(elements, count, &value);
                all[static_cast<std::size_t>(i)].add(how_, value);
            }
        });
        for (std::int64_t i = 0; i < results; ++i) {
            loops::partial value = all[static_cast<std::size_t>(i)].result(how_);
            if (mean_) {
                how_.divide(&value, reduced_.elements());
            }
            finish_(value.bytes, out + i * results_.column_stride(0), 1);
        }
    }

    loops::reducer how_;
    bool mean_;
    std::byte* origin_;
    walk::plan results_;  ///< over the results and the first elements of what is reduced to them
    walk::plan reduced_;  ///< over what is reduced to one of them
    convert::function convert_;
    convert::function finish_;
    std::size_t item_;
};

/// Which axes are reduced, one bit each.
std::uint64_t chosen_axes(const array& x, const along& axes) {
    if (!axes.axes) {
        return (std::uint64_t{1} << x.dimensions()) - 1;
    }
    std::uint64_t chosen = 0;
    for (const std::int64_t one : *axes.axes) {
        const std::uint64_t bit = std::uint64_t{1} << layout::axis_of(one, x.shape());
        if ((chosen & bit) != 0) {
            throw argument_error("axis " + std::to_string(one) + " of an array of the shape " + x.shape().to_string() +
                                 " is named twice: name each axis once");
        }
        chosen |= bit;
    }
    return chosen;
}

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
    const std::uint64_t chosen = chosen_axes(x, axes);
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
                    where.site().where);
    }
    array out = empty(shape(result.first(result_count)), how.result, where.stream(), where.site().where);
    if (out.size() == 0) {
        return out;
    }
    const shape kept_shape(kept.first(kept_count));
    const layout::axes packed = layout::packed_strides(kept_shape.extents(), size_of(how.result));
    const walk::operand results[] = {{out.device_data(), packed.first(kept_count)},
                                     {x.device_data(), kept_strides.first(kept_count)}};
    const walk::operand one[] = {{x.device_data(), reduced_strides.first(reduced_count)}};
    const bool mean = what == reduction::mean;
    walk::plan over_results(kept_shape.extents(), results);
    walk::plan over_reduced(over.extents(), one);
    if (array_kernels::context_of(where.stream().device()) != nullptr) {
        array_kernels::enqueue(where, out, x,
                               {same_by_kernels(what), mean, x.dtype(), how.computed, how.result, &over_results,
                                &over_reduced, x.device_data()});
        return out;
    }
    const runtime::access_request accesses[] = {operation::writes(out), operation::reads(x)};
    operation::enqueue(where, accesses,
                       reduce_work(how, mean, std::move(over_results), std::move(over_reduced), x, how.result));
    return out;
}

}  // namespace weir
