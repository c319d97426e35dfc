#include "calls/fft_call.hpp"

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "calls/fft_rows.hpp"
#include "weir/error.hpp"

namespace weir::calls {

namespace {

/// The transform's longest length: the factor 1/n and products of n with element sizes stay exact.
constexpr std::int64_t longest = std::int64_t{1} << 48;

dtype complex_of(dtype type) noexcept {
    return type == dtype::float32 || type == dtype::complex64 ? dtype::complex64 : dtype::complex128;
}

dtype real_of(dtype type) noexcept { return complex_of(type) == dtype::complex64 ? dtype::float32 : dtype::float64; }

const char* name_of_call(const fft_request& request) noexcept {
    switch (request.kind) {
        case fft_kind::complex_to_complex:
            return request.direction == fft_direction::forward ? "fft" : "ifft";
        case fft_kind::real_to_complex:
            return "rfft";
        case fft_kind::complex_to_real:
            return "irfft";
    }
    return "fft";
}

std::int64_t elements_before_last(const weir::shape& of) {
    std::int64_t product = 1;
    for (const std::int64_t extent : of.extents().first(of.dimensions() - 1)) {
        product *= extent;
    }
    return product;
}

weir::shape with_last(const weir::shape& of, std::int64_t last) {
    std::vector<std::int64_t> extents(of.extents().begin(), of.extents().end());
    extents.back() = last;
    return weir::shape(std::span<const std::int64_t>(extents));
}

bool is_aligned(const std::byte* memory) noexcept {
    return reinterpret_cast<std::uintptr_t>(memory) % fft_alignment == 0;
}

}  // namespace

fft_call::fft_call(const fft_request& request, const weir::shape& operand, dtype type)
    : request_(request), operand_shape_(operand), operand_type_(type) {
    const std::string call = name_of_call(request);
    if (operand.dimensions() == 0) {
        throw argument_error(call + ": the operand has no axis to transform; give it one with reshape({1})");
    }
    if (request.kind == fft_kind::real_to_complex && is_complex(type)) {
        throw argument_type_error(call + " takes real elements, these are " + std::string(name_of(type)) +
                                  "; call fft for complex ones");
    }
    if (request.kind == fft_kind::complex_to_real && !is_complex(type)) {
        throw argument_type_error(call + " takes complex elements, these are " + std::string(name_of(type)) +
                                  "; call ifft for real ones");
    }

    batch_ = elements_before_last(operand);
    in_length_ = operand[operand.dimensions() - 1];
    n_ = request.how.n.value_or(request.kind == fft_kind::complex_to_real ? 2 * (in_length_ - 1) : in_length_);
    if (n_ < 1 || n_ > longest) {
        throw argument_error(call + ": the length n of the transform is " + std::to_string(n_) +
                             " for an operand of shape " + operand.to_string() +
                             "; it must be between 1 and 2**48, and can be given as .n");
    }
    const std::int64_t half = n_ / 2 + 1;
    row_length_ = request.kind == fft_kind::complex_to_real ? half : n_;
    out_length_ = request.kind == fft_kind::real_to_complex ? half : n_;
    result_type_ = request.kind == fft_kind::complex_to_real ? real_of(type) : complex_of(type);
    result_shape_ = with_last(operand, out_length_);

    const bool other_type = request.kind == fft_kind::complex_to_complex && !is_complex(type);
    if (other_type || in_length_ < row_length_) {
        path_ = request.kind == fft_kind::complex_to_real ? path::by_workspace : path::by_result;
    }
}

std::size_t fft_call::workspace_bytes() const noexcept {
    return path_ == path::by_workspace
               ? static_cast<std::size_t>(batch_ * row_length_) * size_of(complex_of(operand_type_))
               : 0;
}

fft_problem fft_call::problem(bool in_place, bool aligned) const noexcept {
    fft_problem p;
    p.kind = request_.kind;
    p.direction = request_.direction;
    p.double_precision = complex_of(operand_type_) == dtype::complex128;
    p.in_place = in_place || path_ == path::by_result;
    p.aligned = aligned;
    p.n = n_;
    p.batch = batch_;
    p.out_distance = out_length_;
    p.in_distance = in_length_;
    if (path_ == path::by_workspace) {
        p.in_distance = row_length_;
    } else if (path_ == path::by_result) {
        // A complex row of the result has room for two reals an element.
        p.in_distance = request_.kind == fft_kind::real_to_complex ? 2 * out_length_ : out_length_;
    }
    return p;
}

double fft_call::factor() const noexcept {
    const bool forward = request_.direction == fft_direction::forward;
    const auto n = static_cast<double>(n_);
    switch (request_.how.norm) {
        case fft_norm::backward:
            return forward ? 1.0 : 1.0 / n;
        case fft_norm::ortho:
            return 1.0 / std::sqrt(n);
        case fft_norm::forward:
            return forward ? 1.0 / n : 1.0;
    }
    return 1.0;
}

bool fft_call::same_memory(const array& a, const array& out) const noexcept {
    return a.buffer().resource() == out.buffer().resource() && order::overlap(a.footprint(), out.footprint());
}

void fft_call::prepare() const {
    if (batch_ > 0) {
        static_cast<void>(cpu_fft_provider().prepare(problem(false, true)));
    }
}

void fft_call::expect_operands(const array& a, const array& out, device on) const {
    const std::string call = name_of_call(request_);
    if (out.dtype() != result_type_) {
        throw argument_type_error(call + ": the result's elements are " + std::string(name_of(result_type_)) +
                                  ", those of the array for it " + std::string(name_of(out.dtype())));
    }
    if (!(out.shape() == result_shape_)) {
        throw argument_error(call + ": the result has shape " + result_shape_.to_string() + ", the array for it " +
                             out.shape().to_string());
    }
    if (batch_ == 0 || a.size() == 0) {
        return;
    }
    if (!(a.device() == on) || !(out.device() == on)) {
        throw argument_error(call + ": the stream is one of " + on.name() + ", but the operand lies on " +
                             a.device().name() + " and the result on " + out.device().name() +
                             "; give a stream of their device");
    }
    const bool in_place =
        path_ == path::direct && request_.kind == fft_kind::complex_to_complex && a.footprint() == out.footprint();
    if (same_memory(a, out) && !in_place) {
        throw argument_error(call +
                             ": operand and result share memory; give them memory of their own, or, for fft and ifft "
                             "without a change of length, the same array");
    }
}

completion fft_call::enqueue(const on& where, const array& a, const array& out, const buffer& workspace) const {
    if (batch_ == 0) {
        return {};
    }
    std::byte* const result = out.data();
    const bool empty = in_length_ == 0;  // nothing but zeros to fill up with, and no memory to read
    const std::byte* const operand = empty ? nullptr : a.data();
    const bool in_place = !empty && same_memory(a, out);

    rows copied;
    const std::byte* source = operand;
    std::byte* copy = nullptr;
    if (path_ != path::direct) {
        copy = path_ == path::by_workspace ? workspace.data() : result;
        source = copy;
        copied = {operand_type_, request_.kind == fft_kind::real_to_complex ? operand_type_ : complex_of(operand_type_),
                  batch_,        in_length_,
                  row_length_,   problem(false, true).in_distance};
    }
    auto work = [transform = cpu_fft_provider().prepare(problem(in_place, is_aligned(source) && is_aligned(result))),
                 operand, copy, source, result, copied, factor = factor(), type = real_of(result_type_),
                 reals = batch_ * out_length_ * (is_complex(result_type_) ? 2 : 1)] {
        if (copy != nullptr) {
            copied.fill(operand, copy);
        }
        transform->execute(source, result);
        scale(type, result, reals, factor);
    };

    std::array<runtime::access_request, 3> accesses;
    std::size_t count = 0;
    accesses[count++] = {out.buffer().resource(), out.footprint(), order::access_mode::write};
    if (!empty && !in_place) {
        accesses[count++] = {a.buffer().resource(), a.footprint(), order::access_mode::read};
    }
    if (path_ == path::by_workspace) {
        accesses[count++] = {workspace.resource(), {0, workspace_bytes()}, order::access_mode::write};
    }
    runtime::site from = where.site();
    if (from.label == nullptr) {
        from.label = name_of_call(request_);
    }
    return detail::with_task(std::move(work), [&](detail::task_ref task) {
        return runtime::submit(where.stream().state(), {std::span(accesses).first(count), where.dependencies(), task,
                                                        from, runtime::work_kind::device});
    });
}

array transform(const on& where, const array& a, const fft_request& request) {
    const fft_call call(request, a.shape(), a.dtype());
    array out = empty(call.result_shape(), call.result_type(), where.stream(), where.site().where);
    call.expect_operands(a, out, where.stream().device());
    call.enqueue(where, a, out, buffer(call.workspace_bytes(), where.stream(), where.site().where));
    return out;
}

completion transform(const on& where, const array& a, const array& out, const fft_request& request) {
    const fft_call call(request, a.shape(), a.dtype());
    call.expect_operands(a, out, where.stream().device());
    return call.enqueue(where, a, out, buffer(call.workspace_bytes(), where.stream(), where.site().where));
}

}  // namespace weir::calls
