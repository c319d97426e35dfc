#include "calls/fft/route.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include "weir/error.hpp"

namespace weir::calls {

namespace {

/// Sorts dimensions so that the one with the largest stride is outermost.
template <class Dimensions, class Stride>
void sort_by_stride(Dimensions& all, Stride&& stride_of) {
    std::sort(all.begin(), all.end(),
              [&](const auto& a, const auto& b) { return std::abs(stride_of(a)) > std::abs(stride_of(b)); });
}

/// Merges neighbours that form one progression: `joined(outer, inner)` returns whether they do, and then makes `outer` cover both.
template <class Dimensions, class Join>
void join_neighbours(Dimensions& all, Join&& joined) {
    std::size_t kept = 0;
    for (std::size_t i = 1; i < all.size(); ++i) {
        if (!joined(all[kept], all[i])) {
            all[++kept] = all[i];
        }
    }
    if (!all.empty()) {
        all.erase(all.begin() + kept + 1, all.end());
    }
}

per_dimension extents_of(const weir::shape& all) {
    per_dimension extents;
    extents.append(all.extents().data(), all.extents().data() + all.extents().size());
    return extents;
}

std::size_t last_axis_of(const fft_geometry& what) noexcept {
    return static_cast<std::size_t>(what.axes()[what.axes().size() - 1]);
}

}  // namespace

fft_route::fft_route(const fft_geometry& what, fft_direction direction, const call_layout& layout,
                     const fft_demands& library)
    : what_(what),
      library_(library),
      direction_(direction),
      operand_(layout.inputs[0].where),
      result_(layout.result),
      over_(layout.inputs[0].overlaps_result),
      scattered_(false),
      target_(result_),
      path_(path::direct) {
    set_scattered(runs_backwards());
    path_ = choose();
    suit_library();
}

void fft_route::set_scattered(bool scattered) {
    scattered_ = scattered;
    target_ = scattered ? placement{packed(extents_of(what_.result_shape()), what_.result_type()), nullptr} : result_;
}

bool fft_route::is_taken() const { return library_.takes == nullptr || library_.takes(pose().problem); }

/// Chooses the first route that the library accepts, fewest copies first. The last one has both sides packed.
void fft_route::suit_library() {
    if (is_taken()) {
        return;
    }
    const path first = path_;
    const bool fills = what_.has_to_be_filled();
    for (const bool scatters : {scattered_, true}) {
        // The operand must not be overwritten before it is read, nor be changed in place of a copy of it.
        if (!scatters && over_) {
            continue;
        }
        set_scattered(scatters);
        for (const path next : {path::direct, path::by_result, path::by_workspace}) {
            path_ = next;
            const bool fits = (next != path::direct || !fills) && (next != path::by_result || has_room());
            if (fits && (scatters || next != first) && is_taken()) {
                return;
            }
        }
    }
    path_ = path::by_workspace;
}

/// The strides of elements that are packed for the library: transformed axes innermost, in their order, if the library has demands.
per_dimension fft_route::packed(const per_dimension& extents, dtype type) const {
    per_dimension order;
    for (std::size_t axis = 0; axis < extents.size(); ++axis) {
        if (library_.takes == nullptr || !is_transformed(axis)) {
            order.push_back(static_cast<std::int64_t>(axis));
        }
    }
    if (library_.takes != nullptr) {
        order.append(what_.axes().begin(), what_.axes().end());
    }
    per_dimension strides(extents);
    std::int64_t stride = bytes_of(type);
    for (std::size_t i = order.size(); i > 0; --i) {
        const auto axis = static_cast<std::size_t>(order[i - 1]);
        strides[axis] = stride;
        stride *= std::max<std::int64_t>(extents[axis], 1);
    }
    return strides;
}

bool fft_route::is_aligned(const std::byte* memory) const noexcept {
    return reinterpret_cast<std::uintptr_t>(memory) % library_.alignment(what_.double_precision()) == 0;
}

bool fft_route::is_transformed(std::size_t axis) const noexcept {
    const auto known = static_cast<std::int64_t>(axis);
    return std::find(what_.axes().begin(), what_.axes().end(), known) != what_.axes().end();
}

bool fft_route::runs_backwards() const noexcept {
    for (std::size_t axis = 0; axis < result_.strides.size(); ++axis) {
        if (result_.strides[axis] < 0 && what_.result_shape()[axis] > 1 && is_transformed(axis)) {
            return true;
        }
    }
    return false;
}

fft_route::path fft_route::choose() const {
    if (over_ && !fits_in_place()) {
        throw argument_error(std::string(what_.call()) +
                             ": operand and result share memory; give them memory of their own, or let the result lie "
                             "exactly over an operand whose length does not change");
    }
    if (over_ && !scattered_) {
        return path::in_place;
    }
    if (what_.kind() == fft_kind::complex_to_real) {
        // Libraries preserve the operand of a complex-to-real transform only along one axis.
        return what_.has_to_be_filled() || what_.axes().size() > 1 ? path::by_workspace : path::direct;
    }
    if (!what_.has_to_be_filled()) {
        return path::direct;
    }
    return has_room() ? path::by_result : path::by_workspace;
}

/// Whether the input of the transform fits into the result.
bool fft_route::has_room() const noexcept {
    switch (what_.kind()) {
        case fft_kind::complex_to_complex:
            return true;
        case fft_kind::real_to_complex:
            // A row has room for two real numbers for each element, if its elements lie one after the other.
            return target_.strides[last_axis_of(what_)] == bytes_of(what_.result_type());
        case fft_kind::complex_to_real:
            break;
    }
    return false;
}

bool fft_route::fits_in_place() const noexcept {
    if (what_.has_to_be_filled() || operand_.first != result_.first) {
        return false;
    }
    const std::size_t last = last_axis_of(what_);
    for (std::size_t axis = 0; axis < operand_.strides.size(); ++axis) {
        const std::int64_t from = operand_.strides[axis];
        const std::int64_t to = result_.strides[axis];
        if (what_.operand_shape()[axis] != what_.source_extents()[axis]) {
            return false;  // cut: elements that are left out would be overwritten
        }
        if (what_.kind() != fft_kind::complex_to_complex && axis == last) {
            if (from != bytes_of(what_.operand_type()) || to != bytes_of(what_.result_type())) {
                return false;
            }
        } else if (what_.source_extents()[axis] > 1 && from != to) {
            return false;
        }
    }
    return true;
}

std::size_t fft_route::source_bytes() const noexcept {
    if (path_ != path::by_workspace) {
        return 0;
    }
    std::size_t elements = 1;
    for (const std::int64_t extent : what_.source_extents()) {
        elements *= static_cast<std::size_t>(extent);
    }
    const std::size_t bytes = elements * size_of(what_.source_type());
    return scattered_ ? (bytes + fft_alignment - 1) / fft_alignment * fft_alignment : bytes;
}

std::size_t fft_route::workspace_bytes() const noexcept {
    const auto elements = static_cast<std::size_t>(what_.result_shape().elements());
    return source_bytes() + (scattered_ ? elements * size_of(what_.result_type()) : 0);
}

per_dimension fft_route::source_strides() const {
    switch (path_) {
        case path::direct:
        case path::in_place:
            return operand_.strides;
        case path::by_workspace:
            return packed(what_.source_extents(), what_.source_type());
        case path::by_result:
            break;
    }
    per_dimension strides = target_.strides;
    if (what_.kind() == fft_kind::real_to_complex) {
        strides[last_axis_of(what_)] = bytes_of(what_.source_type());
    }
    return strides;
}

fft_route::posed_problem fft_route::pose() const {
    const std::int64_t in = bytes_of(what_.source_type());
    const std::int64_t out = bytes_of(what_.result_type());
    const per_dimension source = source_strides();

    posed_problem posed;
    fft_problem& p = posed.problem;
    p.kind = what_.kind();
    p.direction = direction_;
    p.double_precision = what_.double_precision();
    p.in_place = path_ == path::in_place || path_ == path::by_result;
    p.preserves_input = path_ != path::by_workspace;
    for (std::size_t i = 0; i < what_.axes().size(); ++i) {
        const auto axis = static_cast<std::size_t>(what_.axes()[i]);
        p.transform.push_back({what_.lengths()[i], source[axis] / in, std::abs(target_.strides[axis] / out)});
    }
    for (std::size_t axis = 0; axis < source.size(); ++axis) {
        const std::int64_t n = what_.source_extents()[axis];
        if (is_transformed(axis) || n == 1) {
            continue;
        }
        // A batch may as well be visited from its other end, so that results run forwards.
        const bool backwards = target_.strides[axis] < 0;
        const std::int64_t sign = backwards ? -1 : 1;
        posed.in_offset += backwards ? (n - 1) * source[axis] : 0;
        posed.out_offset += backwards ? (n - 1) * target_.strides[axis] : 0;
        p.batch.push_back({n, sign * source[axis] / in, sign * target_.strides[axis] / out});
    }
    // Pool memory, which is not allocated yet, is sufficiently aligned.
    const std::byte* const from = path_ == path::by_workspace ? nullptr
                                  : path_ == path::by_result  ? target_.first
                                                              : operand_.first;
    p.aligned = (from == nullptr || is_aligned(from + posed.in_offset)) &&
                (target_.first == nullptr || is_aligned(target_.first + posed.out_offset));
    sort_by_stride(p.batch, [](const fft_dimension& d) { return d.in_stride; });
    join_neighbours(p.batch, [](fft_dimension& outer, const fft_dimension& inner) {
        if (outer.in_stride != inner.n * inner.in_stride || outer.out_stride != inner.n * inner.out_stride) {
            return false;
        }
        outer = {outer.n * inner.n, inner.in_stride, inner.out_stride};
        return true;
    });
    return posed;
}

filling fft_route::fill() const {
    filling f{what_.operand_type(), what_.source_type(), {}};
    const per_dimension target = source_strides();
    const bool is_empty = what_.operand_shape().elements() == 0;  // and perhaps without an address
    for (std::size_t axis = 0; axis < target.size(); ++axis) {
        f.dimensions.push_back({is_empty ? 0 : what_.operand_shape()[axis], what_.source_extents()[axis],
                                operand_.strides[axis] / bytes_of(f.from), target[axis] / bytes_of(f.to)});
    }
    sort_by_stride(f.dimensions, [](const filled_dimension& d) { return d.to_stride; });
    return f;
}

filling fft_route::scatter() const {
    filling f{what_.result_type(), what_.result_type(), {}};
    const std::int64_t element = bytes_of(what_.result_type());
    for (std::size_t axis = 0; axis < result_.strides.size(); ++axis) {
        const std::int64_t n = what_.result_shape()[axis];
        f.dimensions.push_back({n, n, target_.strides[axis] / element, result_.strides[axis] / element});
    }
    sort_by_stride(f.dimensions, [](const filled_dimension& d) { return d.to_stride; });
    return f;
}

scaling fft_route::scale() const {
    scaling s{what_.double_precision(), what_.factor(direction_), {}};
    if (s.factor == 1) {
        return s;
    }
    const std::int64_t real = bytes_of(what_.real_type());
    for (std::size_t axis = 0; axis < target_.strides.size(); ++axis) {
        if (what_.result_shape()[axis] != 1) {
            s.dimensions.push_back({what_.result_shape()[axis], target_.strides[axis] / real});
        }
    }
    if (is_complex(what_.result_type())) {
        s.dimensions.push_back({2, 1});
    } else if (s.dimensions.empty()) {
        s.dimensions.push_back({1, 1});
    }
    sort_by_stride(s.dimensions, [](const number_dimension& d) { return d.stride; });
    join_neighbours(s.dimensions, [](number_dimension& outer, const number_dimension& inner) {
        if (outer.stride != inner.n * inner.stride) {
            return false;
        }
        outer = {outer.n * inner.n, inner.stride};
        return true;
    });
    return s;
}

fft_steps fft_route::steps(std::byte* workspace) const {
    fft_steps s;
    s.operand = operand_.first;
    s.result = result_.first;
    s.target = result_.first;
    if (scattered_) {
        s.target = workspace + source_bytes();
        s.scatter = std::make_unique<const filling>(scatter());
    }
    if (path_ == path::by_result || path_ == path::by_workspace) {
        s.filled = path_ == path::by_result ? s.target : workspace;
        s.fill = fill();
        s.is_filled = true;
    }
    s.scale = scale();
    posed_problem posed = pose();
    s.in = (s.is_filled ? s.filled : s.operand) + posed.in_offset;
    s.out = s.target + posed.out_offset;
    posed.problem.aligned = is_aligned(s.in) && is_aligned(s.out);
    s.problem = std::move(posed.problem);
    return s;
}

}  // namespace weir::calls
