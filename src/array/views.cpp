// Views: arrays that refer to the same memory with another layout.
#include <algorithm>
#include <span>
#include <string>
#include <variant>

#include "array/layout.hpp"
#include "frontier/small_vector.hpp"
#include "weir/array.hpp"
#include "weir/error.hpp"

namespace weir {

namespace {

template <class... F>
struct overloaded : F... {
    using F::operator()...;
};
template <class... F>
overloaded(F...) -> overloaded<F...>;

/// The part of an extent that a slice selects.
struct selection {
    std::int64_t start = 0;
    std::int64_t count = 0;
};

selection select(const slice& part, std::int64_t extent) {
    if (part.step == 0) {
        throw argument_error("a slice with the step 0: take a step that is not 0");
    }
    const bool forwards = part.step > 0;
    // The limits to which bounds are clamped. Backwards, "before the first" is -1.
    const std::int64_t least = forwards ? 0 : -1;
    const std::int64_t most = forwards ? extent : extent - 1;
    const auto bound = [&](const std::optional<std::int64_t>& given, std::int64_t otherwise) {
        return given ? std::clamp(*given < 0 ? *given + extent : *given, least, most) : otherwise;
    };
    const std::int64_t start = bound(part.start, forwards ? 0 : extent - 1);
    const std::int64_t stop = bound(part.stop, forwards ? extent : -1);
    if (forwards ? start >= stop : start <= stop) {
        return {0, 0};
    }
    const auto length = static_cast<std::uint64_t>(forwards ? stop - start : start - stop);
    const std::uint64_t step =
        forwards ? static_cast<std::uint64_t>(part.step) : std::uint64_t{0} - static_cast<std::uint64_t>(part.step);
    return {start, static_cast<std::int64_t>((length - 1) / step + 1)};
}

/// A layout while it is built, dimension by dimension.
struct growing {
    detail::small_vector<std::int64_t, 4> extents;
    detail::small_vector<std::int64_t, 4> strides;

    void add(std::int64_t extent, std::int64_t stride) {
        if (extents.size() == shape::most) {
            throw argument_error("an index that gives more than " + std::to_string(shape::most) + " dimensions");
        }
        extents.push_back(extent);
        strides.push_back(stride);
    }
    [[nodiscard]] weir::shape shape() const { return weir::shape(std::span(extents)); }
};

}  // namespace

array array::at(std::span<const index_term> index) const {
    const auto holds = [](auto like) {
        return [](const index_term& one) { return std::holds_alternative<decltype(like)>(one.term()); };
    };
    const auto ellipses = std::count_if(index.begin(), index.end(), holds(ellipsis_t()));
    const auto others = std::count_if(index.begin(), index.end(), holds(new_axis_t()));
    const auto named = static_cast<std::size_t>(static_cast<std::ptrdiff_t>(index.size()) - ellipses - others);
    if (named > dimensions()) {
        throw argument_error("an index of " + std::to_string(named) + " parts for an array of the shape " +
                             shape_.to_string() + ": it has " + std::to_string(dimensions()) + " dimensions");
    }
    if (ellipses > 1) {
        throw argument_error("an index with more than one ellipsis: take one, and name the other dimensions");
    }
    growing to;
    std::int64_t moved = 0;
    std::size_t axis = 0;
    const auto keep = [&](std::size_t axes) {
        for (; axes > 0; --axes, ++axis) {
            to.add(shape_[axis], strides()[axis]);
        }
    };
    for (const index_term& one : index) {
        std::visit(overloaded{[&](std::int64_t at) {
                                  const std::int64_t extent = shape_[axis];
                                  if (at < -extent || at >= extent) {
                                      throw argument_error("index " + std::to_string(at) + " of dimension " +
                                                           std::to_string(axis) + " of an array of the shape " +
                                                           shape_.to_string() + ": out of range");
                                  }
                                  moved += (at < 0 ? at + extent : at) * strides()[axis++];
                              },
                              [&](const weir::slice& part) {
                                  const selection chosen = select(part, shape_[axis]);
                                  const std::int64_t stride = strides()[axis++];
                                  moved += chosen.start * stride;
                                  // The step of a slice with fewer than two elements does not matter,
                                  // and may be too large for the multiplication.
                                  to.add(chosen.count, chosen.count > 1 ? stride * part.step : stride);
                              },
                              [&](new_axis_t) { to.add(1, static_cast<std::int64_t>(layout::stride_item(dtype_))); },
                              [&](ellipsis_t) { keep(dimensions() - named); }},
                   one.term());
    }
    keep(dimensions() - axis);
    return with_layout(to.shape(), std::span(to.strides), moved);
}

array array::transpose(std::span<const std::int64_t> axes) const {
    if (axes.size() != dimensions()) {
        throw argument_error("transpose of an array of the shape " + shape_.to_string() + " with " +
                             std::to_string(axes.size()) + " axes: name each of its axes once");
    }
    growing to;
    std::uint64_t seen = 0;
    for (const std::int64_t one : axes) {
        const std::size_t axis = layout::axis_of(one, shape_);
        if ((seen >> axis & 1U) != 0) {
            throw argument_error("transpose with axis " + std::to_string(one) +
                                 " named twice: name each axis of the shape " + shape_.to_string() + " once");
        }
        seen |= std::uint64_t{1} << axis;
        to.add(shape_[axis], strides()[axis]);
    }
    return with_layout(to.shape(), std::span(to.strides), 0);
}

array array::t() const {
    growing to;
    for (std::size_t axis = dimensions(); axis-- > 0;) {
        to.add(shape_[axis], strides()[axis]);
    }
    return with_layout(to.shape(), std::span(to.strides), 0);
}

namespace {

/// Computes strides for the extents `to` of elements that are in C order under `from`; false if there are none. Dimensions of
/// both are taken in groups with the same number of elements; within a group the old dimensions must form one progression.
bool restride(const array& from, std::span<const std::int64_t> to, layout::axes& strides) {
    const std::span<const std::int64_t> old = from.shape().extents();
    std::size_t next_old = 0;
    std::size_t next_new = 0;
    while (next_old < old.size() || next_new < to.size()) {
        std::int64_t old_elements = 1;
        std::int64_t new_elements = 1;
        std::int64_t stride = 0;  // of the last old dimension in the group that has more than one index
        std::size_t new_end = next_new;
        do {
            if (next_old < old.size() && old_elements <= new_elements) {
                if (old[next_old] != 1) {
                    const std::int64_t inner = from.strides()[next_old];
                    if (old_elements != 1 && stride != inner * old[next_old]) {
                        return false;
                    }
                    stride = inner;
                    old_elements *= old[next_old];
                }
                ++next_old;
            } else {
                new_elements *= to[new_end++];
            }
        } while (old_elements != new_elements);
        std::int64_t product = stride;
        for (std::size_t axis = new_end; axis-- > next_new;) {
            strides[axis] = product;
            product *= to[axis];
        }
        next_new = new_end;
    }
    return true;
}

}  // namespace

std::optional<array> array::try_reshape(const weir::shape& to) const {
    if (to.elements() != size()) {
        throw argument_error("an array of the shape " + shape_.to_string() + " has " + std::to_string(size()) +
                             " elements and cannot become " + to.to_string() + ", which has " +
                             std::to_string(to.elements()));
    }
    layout::axes strides = layout::packed_strides(to.extents(), layout::stride_item(dtype_));
    if (!contiguous_ && !restride(*this, to.extents(), strides)) {
        return std::nullopt;
    }
    return with_layout(to, strides.first(to.dimensions()), 0);
}

array array::reshape(const weir::shape& to) const {
    if (std::optional<array> same = try_reshape(to)) {
        return *std::move(same);
    }
    throw argument_error(to_string() + " cannot become " + to.to_string() +
                         " without a copy, since its elements do not lie in C order: reshape(on, x, shape) copies");
}

shape array::completed(std::span<const std::int64_t> extents) const {
    const auto left_out = std::count(extents.begin(), extents.end(), -1);
    if (left_out == 0 || extents.size() > weir::shape::most) {
        return weir::shape(extents);
    }
    layout::axes full;
    std::replace_copy(extents.begin(), extents.end(), &full[0], std::int64_t{-1}, std::int64_t{1});
    const std::int64_t known = weir::shape(full.first(extents.size())).elements();
    if (left_out > 1 || known == 0 || size() % known != 0) {
        throw argument_error("an array of the shape " + shape_.to_string() + " has " + std::to_string(size()) +
                             " elements: what stands for one extent -1 cannot be found; name all extents");
    }
    full[static_cast<std::size_t>(std::find(extents.begin(), extents.end(), -1) - extents.begin())] = size() / known;
    return weir::shape(full.first(extents.size()));
}

array array::broadcast_to(const weir::shape& to) const {
    if (to == shape_) {
        return *this;
    }
    const auto impossible = [&] {
        return argument_error("an array of the shape " + shape_.to_string() + " cannot be broadcast to " +
                              to.to_string() + ": counted from the last dimension, its extents must be those or 1");
    };
    if (to.dimensions() < dimensions()) {
        throw impossible();
    }
    const std::size_t ahead = to.dimensions() - dimensions();
    layout::axes strides;
    for (std::size_t axis = 0; axis < dimensions(); ++axis) {
        const bool same = shape_[axis] == to[ahead + axis];
        if (!same && shape_[axis] != 1) {
            throw impossible();
        }
        strides[ahead + axis] = same ? this->strides()[axis] : 0;
    }
    return with_layout(to, strides.first(to.dimensions()), 0);
}

}  // namespace weir
