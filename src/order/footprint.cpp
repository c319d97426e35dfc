#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "order/box.hpp"

namespace weir::order {

namespace {

using bytes = std::uint64_t;

/// If there are more runs than this, they are not compared one by one.
constexpr std::uint64_t most_runs = 4096;

/// Where an index range lies in one dimension of a parent layout.
struct interval {
    bytes first = 0;
    bytes count = 0;
};

/// The place of a footprint in a parent layout with the strides of `like`: an interval for each stride and one for the bytes within
/// the last. Nothing if the footprint is not a box of that layout.
using place = std::array<interval, box::most_levels + 1>;

std::optional<place> place_in(const footprint& f, const box& like) noexcept {
    const std::span<const dimension> wanted = like.dimensions();
    const std::span<const dimension> mine = f.shape ? f.shape->dimensions() : std::span<const dimension>();
    const bytes run = f.shape ? f.shape->run() : f.end - f.begin;
    place found{};
    bytes offset = f.begin;
    bytes room = std::numeric_limits<bytes>::max();  // bytes before the next index of the next outer dimension
    std::size_t next = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        const bytes stride = wanted[i].stride;
        bytes count = 1;
        if (next < mine.size() && mine[next].stride == stride) {
            count = mine[next].count;
            ++next;
        }
        found[i] = {offset / stride, count};
        offset %= stride;
        if (found[i].count > room / stride || found[i].first > room / stride - found[i].count) {
            return std::nullopt;  // goes beyond the end of a row of the parent
        }
        room = stride;
    }
    if (next != mine.size() || run > room || offset > room - run) {
        return std::nullopt;
    }
    found[wanted.size()] = {offset, run};
    return found;
}

bool meet(const interval& a, const interval& b) noexcept {
    return std::max(a.first, b.first) < std::min(a.first + a.count, b.first + b.count);
}

bool within(const interval& outer, const interval& inner) noexcept {
    return outer.first <= inner.first && inner.first + inner.count <= outer.first + outer.count;
}

/// Whether the range [first, first + count) shares a byte with a footprint. Exact; takes one step for each dimension.
bool hits(const footprint& f, bytes first, bytes count) noexcept {
    bytes base = f.begin;
    bytes span = f.end - f.begin;  // from the first byte to the last, at the present dimension
    const bytes end = first + count;
    for (const dimension& d : f.shape->dimensions()) {
        span -= (d.count - 1) * d.stride;
        // The indices whose part [base + index * stride, + span) meets the range.
        const bytes low = first >= base + span ? (first - base - span) / d.stride + 1 : 0;
        if (end <= base || low >= d.count) {
            return false;
        }
        const bytes high = std::min(d.count - 1, (end - 1 - base) / d.stride);
        if (high < low) {
            return false;
        }
        if (high > low) {
            return true;  // the part of `high` begins within the range, and each part begins with a byte of it
        }
        base += low * d.stride;
    }
    return std::max(first, base) < std::min(end, base + span);
}

/// Whether [first, first + count) lies within one run of a footprint.
bool in_one_run(const footprint& f, bytes first, bytes count) noexcept {
    bytes base = f.begin;
    for (const dimension& d : f.shape->dimensions()) {
        if (first < base) {
            return false;
        }
        base += std::min(d.count - 1, (first - base) / d.stride) * d.stride;
    }
    return base <= first && first + count <= base + f.shape->run();
}

bytes runs_of(const footprint& f) noexcept { return f.shape ? f.shape->runs() : 1; }

bool exact(const footprint& f) noexcept { return !f.shape || f.shape->exact(); }

/// The one of two shapes with more dimensions: of two boxes of one parent it has all the strides of the other.
const box& finer(const footprint& a, const footprint& b) noexcept {
    if (!a.shape || !b.shape) {
        return a.shape ? *a.shape : *b.shape;
    }
    return a.shape->dimensions().size() >= b.shape->dimensions().size() ? *a.shape : *b.shape;
}

}  // namespace

overlap_kind compare_shapes(const footprint& a, const footprint& b) noexcept {
    if (!exact(a) || !exact(b)) {
        return overlap_kind::unknown;
    }
    const box& like = finer(a, b);
    const std::optional<place> in_a = place_in(a, like);
    const std::optional<place> in_b = place_in(b, like);
    if (in_a && in_b) {
        for (std::size_t i = 0; i <= like.dimensions().size(); ++i) {
            if (!meet((*in_a)[i], (*in_b)[i])) {
                return overlap_kind::none;
            }
        }
        return overlap_kind::certain;
    }
    const bool a_is_small = runs_of(a) <= runs_of(b);
    const footprint& few = a_is_small ? a : b;
    const footprint& many = a_is_small ? b : a;
    if (runs_of(few) > most_runs) {
        return overlap_kind::unknown;
    }
    const bool apart = for_each_run(few, [&](bytes first, bytes count) {
        return many.shape ? !hits(many, first, count)
                          : !(std::max(first, many.begin) < std::min(first + count, many.end));
    });
    return apart ? overlap_kind::none : overlap_kind::certain;
}

bool covers_with_shape(const footprint& outer, const footprint& inner) noexcept {
    if (outer.shape == inner.shape) {
        return true;
    }
    if (!exact(outer)) {
        return false;
    }
    // An inexact inner footprint is replaced by its whole range, which contains it.
    const footprint whole{inner.begin, inner.end};
    const footprint& part = exact(inner) ? inner : whole;
    const std::optional<place> in_outer = place_in(outer, *outer.shape);
    const std::optional<place> in_inner = place_in(part, *outer.shape);
    if (in_outer && in_inner) {
        for (std::size_t i = 0; i <= outer.shape->dimensions().size(); ++i) {
            if (!within((*in_outer)[i], (*in_inner)[i])) {
                return false;
            }
        }
        return true;
    }
    return runs_of(part) <= most_runs &&
           for_each_run(part, [&](bytes first, bytes count) { return in_one_run(outer, first, count); });
}

footprint strided(std::uint64_t offset, std::span<const level> levels, std::uint64_t run) {
    std::vector<dimension> dimensions;
    dimensions.reserve(levels.size());
    bytes begin = offset;
    bytes end = offset + run;
    for (const level& one : levels) {
        if (one.count == 0 || run == 0) {
            return {offset, offset};
        }
        if (one.count == 1 || one.stride == 0) {
            continue;
        }
        const bytes stride =
            one.stride < 0 ? bytes{0} - static_cast<bytes>(one.stride) : static_cast<bytes>(one.stride);
        const bytes reach = stride * (static_cast<bytes>(one.count) - 1);
        if (one.stride < 0) {
            begin -= reach;  // the same bytes, counted from the other end
        } else {
            end += reach;
        }
        dimensions.push_back({stride, static_cast<bytes>(one.count)});
    }
    std::sort(dimensions.begin(), dimensions.end(),
              [](const dimension& a, const dimension& b) { return a.stride > b.stride; });
    // From the innermost dimension outwards: dimensions without gaps become one run.
    while (!dimensions.empty() && dimensions.back().stride == run) {
        run *= dimensions.back().count;
        dimensions.pop_back();
    }
    if (dimensions.empty()) {
        return {begin, end};
    }
    return {begin, end, detail::shared_owner<box>(std::make_unique<box>(std::move(dimensions), run))};
}

}  // namespace weir::order
