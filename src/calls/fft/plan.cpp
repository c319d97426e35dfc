#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "calls/call.hpp"
#include "calls/execution.hpp"
#include "calls/fft/fft_call.hpp"
#include "calls/fft/geometry.hpp"
#include "weir/dtype.hpp"
#include "weir/error.hpp"
#include "weir/fft.hpp"
#include "weir/on.hpp"

namespace weir {

namespace {

constexpr const char* class_name = "fft_plan";

fft_kind kind_for(dtype type) noexcept {
    return is_complex(type) ? fft_kind::complex_to_complex : fft_kind::real_to_complex;
}

/// The direction of the kinds that have only one.
fft_direction main_direction(fft_kind kind) noexcept {
    return kind == fft_kind::complex_to_real ? fft_direction::inverse : fft_direction::forward;
}

}  // namespace

/// What a plan holds until it is freed.
struct fft_plan::state {
    calls::fft_geometry what;
    calls::stateful_call held;
    calls::prepared_calls forward;  ///< the last executions, prepared for reuse
    calls::prepared_calls inverse;

    state(const array& operand, const fft::options& how, fft_kind kind)
        : what(class_name, kind, operand.shape(), operand.dtype(), how, true),
          held(class_name, {&operand, 1}, calls::terms_of(how)) {
        if (kind == fft_kind::complex_to_complex && !is_complex(operand.dtype())) {
            throw argument_type_error("fft_plan: a complex_to_complex plan takes a complex operand, not " +
                                      std::string(name_of(operand.dtype())) +
                                      "; call fft::fft, or make a real_to_complex plan");
        }
    }

    /// Throws state_error unless the plan can be executed; argument_error for a direction that the kind does not have.
    [[nodiscard]] calls::fft_call expect_call(fft_direction direction) const {
        static_cast<void>(held.expect_planned());
        if (what.kind() != fft_kind::complex_to_complex && direction != main_direction(what.kind())) {
            throw argument_error(what.kind() == fft_kind::complex_to_real
                                     ? "fft_plan: a complex_to_real plan executes fft_direction::inverse only; make a "
                                       "real_to_complex plan for the other way"
                                     : "fft_plan: a real_to_complex plan executes fft_direction::forward only; make a "
                                       "complex_to_real plan for the other way");
        }
        return {what, direction};
    }

    /// The current stream of the device that computes.
    [[nodiscard]] stream current(const char* phase) const {
        return current_stream(calls::computing_device(held.terms().execution, held.operands(phase).front()));
    }
};

fft_plan::fft_plan(const array& operand, const fft::options& how, std::optional<fft_kind> kind)
    : state_(std::make_unique<state>(operand, how, kind.value_or(kind_for(operand.dtype())))) {}

fft_plan::fft_plan(fft_plan&& other) noexcept = default;
fft_plan& fft_plan::operator=(fft_plan&& other) noexcept = default;
fft_plan::~fft_plan() = default;

fft_plan::state& fft_plan::expect_alive() const { return calls::expect_alive(class_name, state_); }

void fft_plan::plan(const on& where) {
    state& s = expect_alive();
    s.held.prepare(calls::fft_call(s.what, main_direction(s.what.kind())), where);
    if (s.what.kind() == fft_kind::complex_to_complex) {
        try {
            s.held.prepare(calls::fft_call(s.what, fft_direction::inverse), where);
        } catch (const missing_library&) {
            // Scaling the result needs a kernel. A program that executes the inverse gets the error then.
        }
    }
    s.held.set_planned();
}

void fft_plan::plan(source_location where) {
    const stream current = expect_alive().current("plan");
    plan(on(current, where));
}

array fft_plan::execute(const on& where, fft_direction direction, const fft_execution& how) {
    state& s = expect_alive();
    array out = calls::make_result(s.expect_call(direction), where, s.held.expect_planned());
    execute(where, direction, out, how);
    return out;
}

array fft_plan::execute(fft_direction direction, const fft_execution& how, source_location where) {
    const stream current = expect_alive().current("execute");
    return execute(on(current, where), direction, how);
}

completion fft_plan::execute_into(const on& where, fft_direction direction, const array& out,
                                  const fft_execution& how) {
    state& s = expect_alive();
    completion end = s.held.execute(s.expect_call(direction), where, out,
                                    direction == fft_direction::forward ? s.forward : s.inverse);
    if (how.release_workspace) {
        s.held.release_workspace();
    }
    return end;
}

void fft_plan::reset_operand(const array& operand) { expect_alive().held.reset_operands({&operand, 1}); }

void fft_plan::release_operand() { expect_alive().held.release_operands(); }

explanation explain(const fft_plan& what) { return what.expect_alive().held.explain(calls::fft_library_on); }

void fft_plan::free() noexcept { state_.reset(); }

std::size_t fft_plan::workspace_bytes() const noexcept { return state_ ? state_->held.workspace_bytes() : 0; }

}  // namespace weir
