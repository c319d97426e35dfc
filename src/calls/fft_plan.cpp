#include <string>
#include <utility>

#include "calls/execution.hpp"
#include "calls/fft_call.hpp"
#include "calls/ready_fft.hpp"
#include "weir/buffer.hpp"
#include "weir/device.hpp"
#include "weir/dtype.hpp"
#include "weir/error.hpp"
#include "weir/fft.hpp"
#include "weir/shape.hpp"

namespace weir {

namespace {

fft_kind kind_for(dtype type) noexcept {
    return is_complex(type) ? fft_kind::complex_to_complex : fft_kind::real_to_complex;
}

/// The one direction of the kinds that have only one.
fft_direction main_direction(fft_kind kind) noexcept {
    return kind == fft_kind::complex_to_real ? fft_direction::inverse : fft_direction::forward;
}

}  // namespace

/// What a plan holds until it is freed.
struct fft_plan::state {
    calls::fft_geometry what;
    execution_target execution;
    call_blocking blocking;
    weir::memory_limit limit;
    std::optional<device> home;  ///< where operands lie; none if they have no elements
    std::optional<array> operand;
    /// Tracked like any memory, so that executions on several streams do not share it unordered (P3).
    buffer workspace;
    bool planned = false;
    calls::kept_fft forward;  ///< the last executions, ready for the next
    calls::kept_fft inverse;

    state(const array& first, const fft::options& how, fft_kind kind)
        : what("fft_plan", kind, first.shape(), first.dtype(), how, true),
          execution(how.execution),
          blocking(how.blocking),
          limit(how.memory_limit),
          operand(first) {
        if (first.size() > 0) {
            home = first.device();
        }
        if (kind == fft_kind::complex_to_complex && !is_complex(first.dtype())) {
            throw argument_type_error("fft_plan: a complex_to_complex plan takes a complex operand, not " +
                                      std::string(name_of(first.dtype())) +
                                      "; call fft::fft, or make a real_to_complex plan");
        }
    }

    [[nodiscard]] calls::fft_call call(fft_direction direction) {
        return {what, direction, execution, blocking, limit, direction == fft_direction::forward ? &forward : &inverse};
    }

    [[nodiscard]] calls::fft_call expect_direction(fft_direction direction) {
        if (what.kind() != fft_kind::complex_to_complex && direction != main_direction(what.kind())) {
            throw argument_error(what.kind() == fft_kind::complex_to_real
                                     ? "fft_plan: a complex_to_real plan executes fft_direction::inverse only; make a "
                                       "real_to_complex plan for the other way"
                                     : "fft_plan: a real_to_complex plan executes fft_direction::forward only; make a "
                                       "complex_to_real plan for the other way");
        }
        return call(direction);
    }

    void expect_planned() const {
        if (!planned) {
            throw state_error("fft_plan: call plan before execute");
        }
    }
};

fft_plan::fft_plan(const array& operand, const fft::options& how, std::optional<fft_kind> kind)
    : state_(std::make_unique<state>(operand, how, kind.value_or(kind_for(operand.dtype())))) {}

fft_plan::fft_plan(fft_plan&& other) noexcept = default;
fft_plan& fft_plan::operator=(fft_plan&& other) noexcept = default;
fft_plan::~fft_plan() = default;

fft_plan::state& fft_plan::expect_alive() const {
    if (!state_) {
        throw state_error("fft_plan: it was freed; make a new one");
    }
    return *state_;
}

fft_plan::state& fft_plan::expect_operand(const char* before) const {
    state& s = expect_alive();
    if (!s.operand) {
        throw state_error(std::string("fft_plan: the operand was released; call reset_operand before ") + before);
    }
    return s;
}

void fft_plan::plan(const on& where) {
    state& s = expect_operand("plan");
    s.call(main_direction(s.what.kind())).prepare(where, *s.operand, s.workspace);
    if (s.what.kind() == fft_kind::complex_to_complex) {
        try {
            s.call(fft_direction::inverse).prepare(where, *s.operand, s.workspace);
        } catch (const missing_library&) {
            // Its factor needs a kernel. A program that executes it is told so.
        }
    }
    s.planned = true;
}

void fft_plan::plan(source_location where) {
    const state& s = expect_operand("plan");
    const stream current = current_stream(calls::computing_device(s.execution, *s.operand));
    plan(on(current, where));
}

array fft_plan::execute(fft_direction direction, const on& where, const fft_execution& how) {
    state& s = expect_operand("execute");
    s.expect_planned();
    array out = s.expect_direction(direction).make_result(where, *s.operand);
    execute(direction, where, out, how);
    return out;
}

array fft_plan::execute(fft_direction direction, const fft_execution& how, source_location where) {
    const state& s = expect_operand("execute");
    const stream current = current_stream(calls::computing_device(s.execution, *s.operand));
    return execute(direction, on(current, where), how);
}

completion fft_plan::execute_into(fft_direction direction, const on& where, const array& out,
                                  const fft_execution& how) {
    state& s = expect_operand("execute");
    s.expect_planned();
    completion end = s.expect_direction(direction).run(where, *s.operand, out, s.workspace);
    if (how.release_workspace) {
        s.workspace = {};
    }
    return end;
}

void fft_plan::reset_operand(const array& operand) {
    state& s = expect_alive();
    const auto text = [](const auto& shape, dtype type) {
        return std::string(name_of(type)) + " " + shape.to_string();
    };
    if (!(operand.shape() == s.what.operand_shape()) || operand.dtype() != s.what.operand_type()) {
        throw argument_error("fft_plan: the plan is for " + text(s.what.operand_shape(), s.what.operand_type()) +
                             ", the new operand is " + text(operand.shape(), operand.dtype()) +
                             "; make a new plan for it");
    }
    if (s.home && !(operand.device() == *s.home)) {
        throw argument_error("fft_plan: the plan is for operands on " + s.home->name() + ", the new one lies on " +
                             operand.device().name() + "; copy it there, or make a new plan for it");
    }
    s.operand = operand;
}

void fft_plan::release_operand() { expect_alive().operand.reset(); }

void fft_plan::free() noexcept { state_.reset(); }

std::size_t fft_plan::workspace_bytes() const noexcept { return state_ ? state_->workspace.bytes() : 0; }

}  // namespace weir
