#include "calls/fft_call.hpp"

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "calls/cuda_fft.hpp"
#include "calls/execution.hpp"
#include "calls/fft_route.hpp"
#include "calls/ready_fft.hpp"
#include "runtime/device_state.hpp"
#include "weir/detail/footprint.hpp"
#include "weir/detail/internal_memory.hpp"
#include "weir/detail/site.hpp"
#include "weir/detail/task.hpp"
#include "weir/device.hpp"
#include "weir/error.hpp"

namespace weir::calls {

namespace {

/// What the operation is called where the program gives it no label.
const char* label_of(const fft_call& call) noexcept {
    const bool forward = call.direction == fft_direction::forward;
    switch (call.what.kind()) {
        case fft_kind::complex_to_complex:
            return forward ? "fft" : "ifft";
        case fft_kind::real_to_complex:
            return "rfft";
        case fft_kind::complex_to_real:
            return "irfft";
    }
    return "fft";
}

/// Throws out_of_memory if a call would take more than it may.
void expect_within(const fft_call& call, device on, std::size_t bytes) {
    if (bytes == 0) {
        return;
    }
    const std::size_t limit = call.limit.bytes(on);
    if (bytes > limit) {
        throw out_of_memory(std::string(call.what.call()) + " needs " + std::to_string(bytes) + " bytes on " +
                            on.name() + " besides operand and result; its memory limit is " + std::to_string(limit) +
                            " bytes: give it a higher memory_limit, or transform less at once");
    }
}

/// Makes `workspace` one of `bytes` bytes at least, on the device of `where`.
void provide(buffer& workspace, std::size_t bytes, const on& where) {
    if (bytes > 0 && (workspace.bytes() < bytes || !share_memory(workspace.device(), where.stream().device()))) {
        workspace = detail::internal(buffer(bytes, where.stream(), where.site().where));
    }
}

void expect_result(const fft_geometry& what, const array& a, const array& out) {
    const std::string call = what.call();
    if (out.dtype() != what.result_type()) {
        throw argument_type_error(call + ": the result's elements are " + std::string(name_of(what.result_type())) +
                                  ", those of the array for it " + std::string(name_of(out.dtype())));
    }
    if (!(out.shape() == what.result_shape())) {
        throw argument_error(call + ": the result has shape " + what.result_shape().to_string() +
                             ", the array for it " + out.shape().to_string());
    }
    if (!out.has_own_elements()) {
        throw argument_error(call + ": elements of the array for the result, " + out.to_string() +
                             ", stand for many; give one whose elements have memory of their own");
    }
    if (a.size() > 0 && out.size() > 0 && !share_memory(a.device(), out.device())) {
        throw argument_error(call + ": the operand lies on " + a.device().name() + ", the array for the result on " +
                             out.device().name() + "; give one on " + a.device().name());
    }
}

bool shares_memory(const array& a, const array& out) noexcept {
    return a.buffer().resource() != nullptr && a.buffer().resource() == out.buffer().resource() &&
           order::overlap(a.footprint(), out.footprint());
}

/// Whether a copy of the operand can become the result.
bool can_be_over_its_copy(const fft_geometry& what) noexcept {
    return what.kind() == fft_kind::complex_to_complex && !what.has_to_be_filled() &&
           what.result_shape() == what.operand_shape();
}

/// The bytes of a copy of the operand and of one of the result.
std::size_t bytes_of_copies(const fft_geometry& what) noexcept {
    const auto bytes = [](const weir::shape& extents, dtype type) {
        return static_cast<std::size_t>(extents.elements()) * size_of(type);
    };
    return bytes(what.operand_shape(), what.operand_type()) +
           (can_be_over_its_copy(what) ? 0 : bytes(what.result_shape(), what.result_type()));
}

/// A route on a device, by the library that the device has.
class transformation {
public:
    transformation(const fft_call& call, device where, fft_place operand, fft_place result, bool over)
        : cuda_(fft_context_of(where)),
          route_(call.what, call.direction, std::move(operand), std::move(result), over,
                 cuda_ != nullptr ? cufft_demands() : fft_demands()) {
        if (cuda_ != nullptr) {
            native_.emplace(*cuda_, route_);
        }
    }

    [[nodiscard]] std::size_t workspace_bytes() const noexcept {
        return native_ ? native_->workspace_bytes() : route_.workspace_bytes();
    }
    /// Makes what is left to make, for a workspace of that size.
    [[nodiscard]] ready_fft ready(fft_places where, std::byte* workspace) const {
        where.workspace = workspace;
        ready_fft made{std::move(where), workspace_bytes(), route_.in_place(), nullptr, nullptr};
        if (native_) {
            made.native = std::make_shared<const cuda_fft_work>(native_->work(route_, workspace));
        } else {
            made.host = std::make_shared<const fft_work>(route_.prepare(workspace));
        }
        return made;
    }

private:
    const backend::cuda::context* cuda_;  ///< null where the host computes
    fft_route route_;
    std::optional<cuda_fft> native_;
};

/// The operation itself.
completion enqueue(const fft_call& call, const ready_fft& what, const on& where, const array& a, const array& out,
                   const buffer& workspace) {
    using order::access_mode;
    std::array<runtime::access_request, 3> accesses;
    std::size_t count = 0;
    accesses[count++] = {out.buffer().resource(), out.footprint(), access_mode::write, !what.in_place};
    if (!(what.in_place && a.footprint() == out.footprint())) {
        accesses[count++] = {a.buffer().resource(), a.footprint(),
                             what.in_place ? access_mode::write : access_mode::read, false};
    }
    if (what.workspace_bytes > 0) {
        accesses[count++] = {workspace.resource(), {0, what.workspace_bytes}, access_mode::write, true};
    }
    runtime::site from = where.site();
    if (from.label == nullptr) {
        from.label = label_of(call);
    }
    const auto submit = [&](detail::task_ref task) {
        return runtime::submit(where.stream().state(), {std::span(accesses).first(count), where.dependencies(), task,
                                                        from, runtime::work_kind::device});
    };
    if (what.native) {
        return detail::with_task(detail::native_task{[work = what.native] { (*work)(); }}, submit);
    }
    return detail::with_task([work = what.host] { (*work)(); }, submit);
}

/// The transform on the device of `where`, which reaches both arrays.
completion run_here(const fft_call& call, const on& where, const array& a, const array& out, buffer& workspace) {
    const device here = where.stream().device();
    fft_places places{here, fft_place::of(a), fft_place::of(out), shares_memory(a, out), workspace.device_data()};
    if (call.kept != nullptr && call.kept->has_value() && (*call.kept)->where == places) {
        here.state().expect_usable();
        return enqueue(call, **call.kept, where, a, out, workspace);
    }
    const transformation what(call, here, places.operand, places.result, places.over);
    expect_within(call, here, what.workspace_bytes());
    provide(workspace, what.workspace_bytes(), where);
    ready_fft ready = what.ready(std::move(places), workspace.device_data());
    completion end = enqueue(call, ready, where, a, out, workspace);
    if (call.kept != nullptr) {
        *call.kept = std::move(ready);
    }
    return end;
}

/// Copies of operand and result on a device that does not reach them.
struct fft_copies {
    array a;
    array out;

    fft_copies(const fft_geometry& what, const on& where, const array& operand, const array& result)
        : a(empty_like(operand, where)), out(can_be_over_its_copy(what) ? a : empty_like(result, where)) {}

private:
    static array empty_like(const array& x, const on& where) {
        return detail::internal(empty(x.shape(), x.dtype(), where.stream(), where.site().where));
    }
};

/// The transform on the device of `where`, which does not reach the arrays: there and back. Blocks.
completion run_there(const fft_call& call, const on& where, const array& a, const array& out, buffer& workspace) {
    const std::size_t bytes = bytes_of_copies(call.what);
    expect_within(call, where.stream().device(), bytes);
    const fft_copies copies(call.what, where, a, out);
    const device there = where.stream().device();
    const transformation what(call, there, fft_place::of(copies.a), fft_place::of(copies.out),
                              shares_memory(copies.a, copies.out));
    expect_within(call, there, bytes + what.workspace_bytes());
    provide(workspace, what.workspace_bytes(), where);

    // What is left enqueues. Where an operand or a result on a CUDA device is not packed, that takes memory for packed elements.
    const ready_fft ready =
        what.ready({there, fft_place::of(copies.a), fft_place::of(copies.out)}, workspace.device_data());
    on first = where;
    if (first.site().label == nullptr) {
        first.label("copy of the operand");
    }
    copy(first, copies.a, a);
    on then(where.stream(), where.site().where);
    enqueue(call, ready, then, copies.a, copies.out, workspace);
    completion end = copy(then.label("copy of the result"), out, copies.out);
    end.synchronize(where.site().where);
    return end;
}

}  // namespace

array fft_call::make_result(const on& where, const array& a) const {
    const device home = device_of(a, where.stream().device());
    if (home == where.stream().device()) {
        return empty(what.result_shape(), what.result_type(), where.stream(), where.site().where);
    }
    return empty(what.result_shape(), what.result_type(), current_stream(home), where.site().where);
}

void fft_call::prepare(const on& where, const array& a, buffer& workspace) const {
    const device here = computing_device(what.call(), execution, a, where.stream());
    if (what.result_shape().elements() == 0) {
        return;
    }
    const bool reaches = share_memory(here, device_of(a, here));
    const bool over = !reaches && can_be_over_its_copy(what);
    const transformation prepared(
        *this, here, reaches ? fft_place::of(a) : fft_place::packed(what.operand_shape(), what.operand_type()),
        fft_place::packed(what.result_shape(), what.result_type()), over);
    expect_within(*this, here, prepared.workspace_bytes() + (reaches ? 0 : bytes_of_copies(what)));
    provide(workspace, prepared.workspace_bytes(), where);
    static_cast<void>(prepared.ready({here, {}, {}}, workspace.device_data()));
}

completion fft_call::run(const on& where, const array& a, const array& out, buffer& workspace) const {
    const device here = computing_device(what.call(), execution, a, where.stream());
    expect_result(what, a, out);
    if (what.result_shape().elements() == 0) {
        return {};
    }
    if (!share_memory(here, device_of(a, here))) {
        return run_there(*this, where, a, out, workspace);
    }
    completion end = run_here(*this, where, a, out, workspace);
    if (blocking == call_blocking::always) {
        end.synchronize(where.site().where);
    }
    return end;
}

}  // namespace weir::calls
