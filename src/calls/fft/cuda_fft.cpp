#include "calls/fft/cuda_fft.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include "array/cuda/source.hpp"
#include "array/walk.hpp"
#include "backend/backend.hpp"
#include "runtime/devices/device_state.hpp"
#include "weir/arithmetic.hpp"
#include "weir/error.hpp"
#include "weir/fft.hpp"

namespace weir::calls {

namespace {

/// A problem that needs more executions is first packed: a copy of both sides costs about as much as a few executions.
constexpr std::int64_t most_executions = 8;

/// Alignment of cuFFT's workspace.
constexpr std::size_t workspace_alignment = 256;

bool is_taken(const fft_problem& problem) { return cufft_parts_of(problem, most_executions).has_value(); }

/// Extents and, for each operand, strides in bytes.
class places {
public:
    void add(std::int64_t n, std::int64_t first, std::int64_t second) {
        extents_.push_back(n);
        strides_[0].push_back(first);
        strides_[1].push_back(second);
    }
    /// The plan of operands that begin at `addresses`, followed by a number.
    [[nodiscard]] walk::plan plan(std::initializer_list<std::byte*> addresses, bool with_number = false) const {
        const per_dimension none = zeros();
        std::array<walk::operand, 3> operands;
        std::size_t count = 0;
        for (std::byte* const each : addresses) {
            operands[count] = {each, strides_[count]};
            ++count;
        }
        if (with_number) {
            operands[count++] = {nullptr, none};
        }
        return {extents_, std::span(operands).first(count)};
    }
    [[nodiscard]] bool is_empty() const noexcept {
        return std::find(extents_.begin(), extents_.end(), 0) != extents_.end();
    }

private:
    [[nodiscard]] per_dimension zeros() const {
        per_dimension none(extents_);
        std::fill(none.begin(), none.end(), 0);
        return none;
    }
    per_dimension extents_;
    std::array<per_dimension, 2> strides_;
};

/// A number of a real type: 0, or a factor.
class number {
public:
    number(double value, bool double_precision) : type_(double_precision ? dtype::float64 : dtype::float32) {
        const auto single = static_cast<float>(value);
        std::memcpy(bytes_.data(), double_precision ? static_cast<const void*>(&value) : &single, size_of(type_));
    }
    [[nodiscard]] dtype type() const noexcept { return type_; }
    [[nodiscard]] const std::byte* data() const noexcept { return bytes_.data(); }

private:
    dtype type_;
    alignas(16) std::array<std::byte, 16> bytes_{};
};

void add_filling(const filling& what, const std::byte* source, std::byte* target, array_kernels::launches& to) {
    places written;
    places copied;
    bool is_filled_up = false;
    for (const filled_dimension& d : what.dimensions) {
        const std::int64_t from = d.from_stride * bytes_of(what.from);
        const std::int64_t into = d.to_stride * bytes_of(what.to);
        written.add(d.to_n, into, 0);
        copied.add(std::min(d.from_n, d.to_n), into, from);
        is_filled_up = is_filled_up || d.from_n < d.to_n;
    }
    if (is_filled_up) {
        const std::array<std::byte, 16> zero{};
        to.add_fill(written.plan({target}), what.to, zero.data());
    }
    if (!copied.is_empty()) {
        to.add_copy(copied.plan({target, const_cast<std::byte*>(source)}), what.to, what.from);
    }
}

void add_scaling(const scaling& what, std::byte* numbers, array_kernels::launches& to) {
    if (what.factor == 1.0) {
        return;
    }
    const number factor(what.factor, what.double_precision);
    places all;
    for (const number_dimension& d : what.dimensions) {
        all.add(d.n, d.stride * bytes_of(factor.type()), d.stride * bytes_of(factor.type()));
    }
    const array_kernels::argument inputs[] = {{factor.type(), factor.type(), nullptr},
                                              {factor.type(), factor.type(), factor.data()}};
    to.add(array_kernels::of(binary_operation::multiply), {factor.type(), factor.type(), nullptr}, inputs,
           all.plan({numbers, numbers}, true));
}

/// Adds launches that set the imaginary parts to 0.
void add_zeroing(const real_elements& what, bool double_precision, std::byte* elements, array_kernels::launches& to) {
    const number zero(0, double_precision);
    const std::int64_t real = bytes_of(zero.type());
    places all;
    for (const fft_dimension& d : what.where) {
        all.add(d.n, 2 * real * d.in_stride, 0);
    }
    to.add_fill(all.plan({elements + real}), zero.type(), zero.data());
}

/// The addresses of the executions of one part.
std::vector<cufft_plan::execution> executions_of(const cufft_part& part, const fft_steps& steps) {
    const std::int64_t real = steps.problem.double_precision ? sizeof(double) : sizeof(float);
    const std::int64_t in = steps.problem.kind == fft_kind::real_to_complex ? real : 2 * real;
    const std::int64_t out = steps.problem.kind == fft_kind::complex_to_real ? real : 2 * real;
    std::byte* const source = const_cast<std::byte*>(steps.in);
    cufft_plan::execution first{source, steps.out};
    std::int64_t from = in;
    std::int64_t into = out;
    if (part.from_to == cufft_part::way::in_to_in) {
        first.out = source;
        into = in;
    } else if (part.from_to == cufft_part::way::out_to_out) {
        first.in = steps.out;
        from = out;
    }
    std::vector<cufft_plan::execution> all{first};
    for (const fft_dimension& d : part.executions) {
        const std::size_t known = all.size();
        for (std::int64_t i = 1; i < d.n; ++i) {
            for (std::size_t k = 0; k < known; ++k) {
                all.push_back({all[k].in + i * d.in_stride * from, all[k].out + i * d.out_stride * into});
            }
        }
    }
    return all;
}

}  // namespace

bool cuda_fft_provider::serves(const device& on) const noexcept {
    return on.state(detail::key).driver().can().libraries != nullptr;
}

std::unique_ptr<const call_plan> cuda_fft_provider::plan(const fft_call& call, const call_layout& layout) const {
    return std::make_unique<const cuda_fft>(layout.on, fft_route(call.what(), call.direction(), layout, {is_taken}));
}

void cuda_fft_work::run(const std::vector<transform>& all, const call_shift& by) const {
    for (const transform& each : all) {
        const std::ptrdiff_t in = each.from_to == cufft_part::way::out_to_out ? by.result : by.inputs[0];
        const std::ptrdiff_t out = each.from_to == cufft_part::way::in_to_in ? by.inputs[0] : by.result;
        each.plan->execute(each.executions, {in, out}, each.direction, workspace_ + by.workspace);
    }
}

void cuda_fft_work::operator()(const call_shift& by) const {
    const detail::queue_handle into{detail::native_queue_handle()};
    if (can_move()) {  // no kernels: nearly all transforms
        run(before_, by);
        run(after_, by);
        return;
    }
    filling_(into);
    run(before_, by);
    zeroing_(into);
    run(after_, by);
    finishing_(into);
}

cuda_fft::cuda_fft(const device& where, fft_route route) : where_(where), route_(std::move(route)) {
    fft_problem problem = route_.problem();
    problem.aligned = true;
    std::optional<cufft_parts> parts = cufft_parts_of(problem, std::numeric_limits<std::int64_t>::max());
    if (!parts) {
        throw device_error("cuFFT has no plan for this layout: this is an error of Weir's, please report it");
    }
    parts_ = *std::move(parts);
    before_ = prepare(parts_.before);
    after_ = prepare(parts_.after);
    own_bytes_ = route_.workspace_bytes();
    if (library_bytes_ > 0) {
        own_bytes_ = (own_bytes_ + workspace_alignment - 1) / workspace_alignment * workspace_alignment;
    }
}

cuda_fft::plans cuda_fft::prepare(const std::vector<cufft_part>& parts) {
    plans made;
    for (const cufft_part& each : parts) {
        made.push_back(cufft_provider::of(where_).prepare(each.layout));
        library_bytes_ = std::max(library_bytes_, made.back()->workspace_bytes());
    }
    return made;
}

call_work cuda_fft::work(std::byte* workspace) const {
    const fft_steps steps = route_.steps(workspace);
    cuda_fft_work made(*where_.state(detail::key).driver().can().kernels);
    made.workspace_ = workspace + own_bytes_;
    if (steps.is_filled) {
        add_filling(steps.fill, steps.operand, steps.filled, made.filling_);
    }
    const auto transforms = [&](const std::vector<cufft_part>& parts, const plans& by) {
        std::vector<cuda_fft_work::transform> all;
        for (std::size_t i = 0; i < parts.size(); ++i) {
            all.push_back({by[i], executions_of(parts[i], steps), parts[i].direction, parts[i].from_to});
        }
        return all;
    };
    made.before_ = transforms(parts_.before, before_);
    if (parts_.zeroed) {
        add_zeroing(*parts_.zeroed, steps.problem.double_precision, const_cast<std::byte*>(steps.in), made.zeroing_);
    }
    made.after_ = transforms(parts_.after, after_);
    add_scaling(steps.scale, steps.target, made.finishing_);
    if (steps.scatter) {
        add_filling(*steps.scatter, steps.target, steps.result, made.finishing_);
    }
    return call_work::native_task(std::move(made));
}

}  // namespace weir::calls
