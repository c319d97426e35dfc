#include "array/cuda/reduction.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "array/cuda/call.hpp"
#include "array/cuda/enqueue.hpp"
#include "array/operation.hpp"
#include "weir/detail/internal_memory.hpp"
#include "weir/detail/submission.hpp"
#include "weir/stream.hpp"

namespace weir::array_kernels {

namespace {

std::uint64_t magnitude(std::int64_t stride) noexcept {
    return stride < 0 ? std::uint64_t{0} - word(stride) : word(stride);
}

/// One dimension of the elements that a launch visits.
struct dimension {
    std::int64_t extent = 1;
    std::int64_t out = 0;  ///< strides in bytes
    std::int64_t in = 0;
};

/// One launch: reduces `elements` elements for each result, or for each part of one.
struct step {
    std::vector<dimension> results;
    std::vector<dimension> reduced;
    std::uint64_t result_count = 1;
    std::uint64_t elements = 1;
    const std::byte* in = nullptr;
    dtype stored = dtype::bool_;

    [[nodiscard]] reduction_launch shape() const noexcept {
        const bool is_across = result_count == 1 || elements == 1
                                   ? result_count > 1
                                   : magnitude(results.back().in) < magnitude(reduced.back().in);
        return {result_count, elements, is_across};
    }
    [[nodiscard]] std::uint64_t parts() const noexcept { return shape().parts(); }
};

step first_step(const reduction_of& what) {
    step made;
    for (std::size_t d = 0; d < what.results->dimensions(); ++d) {
        made.results.push_back({what.results->extent(d), what.results->stride(d, 0), what.results->stride(d, 1)});
    }
    for (std::size_t d = 0; d < what.reduced->dimensions(); ++d) {
        made.reduced.push_back({what.reduced->extent(d), 0, what.reduced->stride(d, 0)});
    }
    made.result_count = word(what.results->elements());
    made.elements = word(what.reduced->elements());
    made.in = what.results->first(1) + (what.reduced->first(0) - what.origin);
    made.stored = what.stored;
    return made;
}

/// The launch that combines the parts that `before` has left at `parts`: each part of all results one after the other.
step next_step(const step& before, const array& parts) {
    step made = before;
    const auto item = static_cast<std::int64_t>(size_of(parts.dtype()));
    std::int64_t stride = item;
    for (auto one = made.results.rbegin(); one != made.results.rend(); ++one) {
        one->in = stride;
        stride *= one->extent;
    }
    made.elements = before.parts();
    made.reduced.clear();
    made.reduced.push_back({static_cast<std::int64_t>(made.elements), 0, stride});
    made.in = parts.device_data();
    made.stored = parts.dtype();
    return made;
}

void add(launches& to, const reduction_of& what, const step& of, std::byte* out, bool last) {
    description kernel;
    kernel.what = what.what;
    kernel.operands = 2;
    kernel.stored = {what.result, of.stored};
    kernel.computed = {what.computed, what.computed};
    kernel.rank = rank_for(of.results.size());
    kernel.reduced_rank = rank_for(of.reduced.size());
    kernel.wide = std::max(of.result_count * of.parts(), of.elements) > INT32_MAX;
    kernel.last = last;
    kernel.mean = last && what.mean;

    const reduction_launch shape = of.shape();
    std::vector<std::uint64_t> words = {of.result_count,
                                        of.elements,
                                        word(what.reduced->elements()),
                                        shape.lanes(),
                                        shape.across ? 1U : 0U,
                                        shape.blocks(),
                                        word(out),
                                        word(of.in)};
    const auto fill_up = [&](std::size_t count, std::uint64_t value) { words.insert(words.end(), count, value); };
    const std::size_t missing = kernel.rank - of.results.size();
    fill_up(missing, 1);
    for (const dimension& one : of.results) {
        words.push_back(word(one.extent));
    }
    fill_up(2 * missing, 0);
    for (const dimension& one : of.results) {
        words.push_back(word(one.out));
        words.push_back(word(one.in));
    }
    const std::size_t reduced_missing = kernel.reduced_rank - of.reduced.size();
    fill_up(reduced_missing, 1);
    for (const dimension& one : of.reduced) {
        words.push_back(word(one.extent));
    }
    fill_up(reduced_missing, 0);
    for (const dimension& one : of.reduced) {
        words.push_back(word(one.in));
    }
    to.add(kernel, shape.blocks() * shape.parts(), words);
}

}  // namespace

completion enqueue(const on& where, const array& out, const array& x, const reduction_of& what) {
    launches made(*kernels_of(where.stream().device()));
    std::vector<runtime::access_request> accesses = {operation::writes(out), operation::reads(x)};
    std::vector<array> aside;  // kept until the operation is enqueued
    step now = first_step(what);
    while (now.parts() > 1) {
        const auto values = static_cast<std::int64_t>(now.parts() * now.result_count);
        aside.push_back(
            detail::internal(empty({values}, what.computed, where.stream(), where.site(detail::key).where)));
        accesses.push_back(operation::writes(aside.back()));
        add(made, what, now, aside.back().device_data(), false);
        now = next_step(now, aside.back());
    }
    add(made, what, now, what.results->first(0), true);
    return enqueue(where, accesses, std::move(made));
}

}  // namespace weir::array_kernels
