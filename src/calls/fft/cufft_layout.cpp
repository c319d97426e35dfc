#include "calls/fft/cufft_layout.hpp"

#include <algorithm>
#include <cstdlib>
#include <tuple>
#include <utility>

namespace weir::calls {

namespace {

cufft_type type_of(fft_kind kind, bool double_precision) noexcept {
    switch (kind) {
        case fft_kind::real_to_complex:
            return double_precision ? cufft_type::d2z : cufft_type::r2c;
        case fft_kind::complex_to_real:
            return double_precision ? cufft_type::z2d : cufft_type::c2r;
        case fft_kind::complex_to_complex:
            break;
    }
    return double_precision ? cufft_type::z2z : cufft_type::c2c;
}

/// Number of elements along the halved axis of a side.
std::int64_t half(std::int64_t n) noexcept { return n / 2 + 1; }

bool lies_in_memory(const fft_dimension& d) noexcept { return d.in_stride > 0 && d.out_stride > 0; }

/// Merges dimensions that form one progression on both sides.
void join(fft_dimensions& all) {
    std::sort(all.begin(), all.end(), [](const fft_dimension& a, const fft_dimension& b) {
        return std::abs(a.in_stride) > std::abs(b.in_stride);
    });
    fft_dimensions joined;
    for (const fft_dimension& d : all) {
        if (d.n == 1) {
            continue;
        }
        if (!joined.empty()) {
            fft_dimension& outer = joined[joined.size() - 1];
            if (outer.in_stride == d.n * d.in_stride && outer.out_stride == d.n * d.out_stride) {
                outer = {outer.n * d.n, d.in_stride, d.out_stride};
                continue;
            }
        }
        joined.push_back(d);
    }
    all = std::move(joined);
}

/// Describes the layout of one side. `axes` are outermost first. False if strides do not nest.
bool nest(const fft_dimensions& axes, std::int64_t fft_dimension::*stride, std::int64_t last_extent, cufft_side& side) {
    side.stride = axes[axes.size() - 1].*stride;
    for (std::size_t i = axes.size() - 1; i > 0; --i) {
        const std::int64_t outer = axes[i - 1].*stride;
        const std::int64_t inner = axes[i].*stride;
        const std::int64_t extent = i + 1 == axes.size() ? last_extent : axes[i].n;
        if (outer % inner != 0 || outer / inner < extent) {
            return false;
        }
        side.embed[i] = outer / inner;
    }
    side.embed[0] = axes.size() == 1 ? last_extent : axes[0].n;
    return true;
}

/// Divides a problem into parts.
class divider {
public:
    explicit divider(const fft_problem& of) : problem_(&of) {}

    /// One part for these axes, with all of `batch`. None if cuFFT cannot express it.
    [[nodiscard]] std::optional<cufft_part> part(fft_kind kind, const fft_dimensions& axes, fft_dimensions batch,
                                                 cufft_part::way from_to) const {
        cufft_part made;
        cufft_layout& layout = made.layout;
        made.from_to = from_to;
        made.direction = problem_->direction == fft_direction::forward ? cufft_forward : cufft_inverse;
        layout.type = type_of(kind, problem_->double_precision);
        layout.rank = static_cast<int>(axes.size());
        for (std::size_t i = 0; i < axes.size(); ++i) {
            layout.n[i] = axes[i].n;
            if (!lies_in_memory(axes[i])) {
                return std::nullopt;
            }
        }
        const std::int64_t last = axes[axes.size() - 1].n;
        if (!nest(axes, &fft_dimension::in_stride, kind == fft_kind::complex_to_real ? half(last) : last, layout.in) ||
            !nest(axes, &fft_dimension::out_stride, kind == fft_kind::real_to_complex ? half(last) : last,
                  layout.out)) {
            return std::nullopt;
        }
        join(batch);
        // Real elements of an execution must begin at an address that suits a complex one; this is not required within a plan's batch.
        const auto is_odd = [&](const fft_dimension& d) {
            return (kind == fft_kind::real_to_complex && d.in_stride % 2 != 0) ||
                   (kind == fft_kind::complex_to_real && d.out_stride % 2 != 0);
        };
        const auto merit = [&](const fft_dimension& d) { return std::tuple(lies_in_memory(d), is_odd(d), d.n); };
        const auto* const best =
            std::max_element(batch.begin(), batch.end(),
                             [&](const fft_dimension& a, const fft_dimension& b) { return merit(a) < merit(b); });
        for (const fft_dimension& d : batch) {
            if (&d == best && lies_in_memory(d)) {
                layout.batch = d.n;
                layout.in.distance = d.in_stride;
                layout.out.distance = d.out_stride;
                continue;
            }
            if (is_odd(d)) {
                return std::nullopt;
            }
            made.executions.push_back(d);
        }
        return made;
    }

    /// Parts for complex transforms along `axes`: the first uses `first`, all others use `then`. `others` are all other
    /// dimensions. False if cuFFT cannot express one of them.
    [[nodiscard]] bool complex(fft_dimensions axes, const fft_dimensions& others, cufft_part::way first,
                               cufft_part::way then, std::vector<cufft_part>& to) const {
        std::sort(axes.begin(), axes.end(),
                  [](const fft_dimension& a, const fft_dimension& b) { return a.out_stride > b.out_stride; });
        cufft_part::way from_to = first;
        for (std::size_t end = axes.size(); end > 0;) {
            // As many of the innermost axes at once as a plan can have.
            std::size_t count = std::min<std::size_t>(3, end);
            std::optional<cufft_part> made;
            for (; count > 0 && !made; --count) {
                fft_dimensions chosen;
                fft_dimensions batch;
                for (std::size_t i = 0; i < axes.size(); ++i) {
                    (i + count >= end && i < end ? chosen : batch).push_back(on(from_to, axes[i]));
                }
                for (const fft_dimension& d : others) {
                    batch.push_back(on(from_to, d));
                }
                made = part(fft_kind::complex_to_complex, chosen, std::move(batch), from_to);
            }
            if (!made) {
                return false;
            }
            end -= static_cast<std::size_t>(made->layout.rank);
            to.push_back(*std::move(made));
            from_to = then;
        }
        return true;
    }

private:
    /// The dimension as seen by a part that stays on one side.
    static fft_dimension on(cufft_part::way from_to, const fft_dimension& d) noexcept {
        switch (from_to) {
            case cufft_part::way::in_to_in:
                return {d.n, d.in_stride, d.in_stride};
            case cufft_part::way::out_to_out:
                return {d.n, d.out_stride, d.out_stride};
            case cufft_part::way::in_to_out:
                break;
        }
        return d;
    }

    const fft_problem* problem_;
};

/// The axes except those of length 1, along which a transform changes nothing; the last axis of a real transform is always kept.
fft_dimensions axes_of(const fft_problem& problem) {
    const bool halves = problem.kind != fft_kind::complex_to_complex;
    fft_dimensions axes;
    for (std::size_t i = 0; i < problem.transform.size(); ++i) {
        const fft_dimension& d = problem.transform[i];
        if (halves && i + 1 == problem.transform.size()) {
            axes.push_back(d.n == 1 ? fft_dimension{1, 1, 1} : d);
        } else if (d.n > 1) {
            axes.push_back(d);
        }
    }
    if (axes.empty()) {
        axes.push_back({1, 1, 1});
    }
    return axes;
}

bool divide_real_forward(const fft_problem& problem, cufft_parts& parts) {
    const divider by(problem);
    const fft_dimensions axes = axes_of(problem);
    fft_dimensions outer(axes);
    outer.erase(outer.begin() + outer.size() - 1, outer.end());
    std::sort(outer.begin(), outer.end(),
              [](const fft_dimension& a, const fft_dimension& b) { return a.out_stride > b.out_stride; });
    // The last axis with up to two others first, then the rest in place.
    for (std::size_t count = std::min<std::size_t>(2, outer.size());; --count) {
        fft_dimensions chosen;
        fft_dimensions rest;
        fft_dimensions batch = problem.batch;
        for (std::size_t i = 0; i < outer.size(); ++i) {
            const bool later = i < outer.size() - count;
            (later ? rest : chosen).push_back(outer[i]);
            if (later) {
                batch.push_back(outer[i]);
            }
        }
        chosen.push_back(axes[axes.size() - 1]);
        if (auto first = by.part(fft_kind::real_to_complex, chosen, batch, cufft_part::way::in_to_out)) {
            parts.after.push_back(*std::move(first));
            fft_dimensions others = problem.batch;
            others.append(chosen.begin(), chosen.end());
            others[others.size() - 1].n = half(axes[axes.size() - 1].n);
            constexpr auto in_place = cufft_part::way::out_to_out;
            return by.complex(rest, others, in_place, in_place, parts.after);
        }
        if (count == 0) {
            return false;
        }
    }
}

bool divide_real_inverse(const fft_problem& problem, cufft_parts& parts) {
    const divider by(problem);
    const fft_dimensions axes = axes_of(problem);
    const fft_dimension& last = axes[axes.size() - 1];
    fft_dimensions outer(axes);
    outer.erase(outer.begin() + outer.size() - 1, outer.end());

    fft_dimensions others = problem.batch;
    others.push_back({half(last.n), last.in_stride, last.in_stride});
    constexpr auto in_place = cufft_part::way::in_to_in;
    if (!by.complex(outer, others, in_place, in_place, parts.before)) {
        return false;
    }
    fft_dimensions batch = problem.batch;
    batch.append(outer.begin(), outer.end());
    real_elements ends{batch};
    if (last.n % 2 == 0) {
        ends.where.push_back({2, last.n / 2 * last.in_stride, 0});
    }
    parts.zeroed = std::move(ends);
    fft_dimensions one;
    one.push_back(last);
    auto made = by.part(fft_kind::complex_to_real, one, batch, cufft_part::way::in_to_out);
    if (!made) {
        return false;
    }
    parts.after.push_back(*std::move(made));
    return true;
}

std::int64_t executions_of(const std::vector<cufft_part>& all) noexcept {
    std::int64_t sum = 0;
    for (const cufft_part& each : all) {
        std::int64_t product = 1;
        for (const fft_dimension& d : each.executions) {
            product *= d.n;
        }
        sum += product;
    }
    return sum;
}

}  // namespace

std::int64_t cufft_parts::executions() const noexcept { return executions_of(before) + executions_of(after); }

std::optional<cufft_parts> cufft_parts_of(const fft_problem& problem, std::int64_t most) {
    if (!problem.aligned) {
        return std::nullopt;
    }
    cufft_parts parts;
    bool done = false;
    switch (problem.kind) {
        case fft_kind::complex_to_complex:
            done = divider(problem).complex(axes_of(problem), problem.batch, cufft_part::way::in_to_out,
                                            cufft_part::way::out_to_out, parts.after);
            break;
        case fft_kind::real_to_complex:
            done = divide_real_forward(problem, parts);
            break;
        case fft_kind::complex_to_real:
            done = (problem.in_place || !problem.preserves_input) && divide_real_inverse(problem, parts);
            break;
    }
    if (!done || parts.executions() > most) {
        return std::nullopt;
    }
    return parts;
}

}  // namespace weir::calls
