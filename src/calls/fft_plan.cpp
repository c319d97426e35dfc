#include <string>
#include <utility>

#include "calls/fft_call.hpp"
#include "weir/error.hpp"
#include "weir/fft.hpp"

namespace weir {

/// What a plan holds until it is freed.
struct fft_plan::state {
    weir::shape shape;
    weir::dtype type;
    fft::options how;
    fft_kind kind;
    std::optional<array> operand;
    buffer
        workspace;  ///< tracked like any memory, so that executions on several streams do not share it unordered (P3)
    bool planned = false;

    [[nodiscard]] calls::fft_call call(fft_direction direction) const { return {{kind, direction, how}, shape, type}; }

    /// The one direction of the kinds that have only one.
    [[nodiscard]] fft_direction main_direction() const noexcept {
        return kind == fft_kind::complex_to_real ? fft_direction::inverse : fft_direction::forward;
    }

    [[nodiscard]] calls::fft_call expect_direction(fft_direction direction) const {
        if (kind != fft_kind::complex_to_complex && direction != main_direction()) {
            throw argument_error(kind == fft_kind::complex_to_real
                                     ? "fft_plan: a complex_to_real plan executes fft_direction::inverse only; make a "
                                       "real_to_complex plan for the other way"
                                     : "fft_plan: a real_to_complex plan executes fft_direction::forward only; make a "
                                       "complex_to_real plan for the other way");
        }
        return call(direction);
    }
};

fft_plan::fft_plan(const array& operand, const fft::options& how, std::optional<fft_kind> kind)
    : state_(std::make_unique<state>()) {
    state_->shape = operand.shape();
    state_->type = operand.dtype();
    state_->how = how;
    state_->kind =
        kind.value_or(is_complex(operand.dtype()) ? fft_kind::complex_to_complex : fft_kind::real_to_complex);
    if (state_->kind == fft_kind::complex_to_complex && !is_complex(state_->type)) {
        throw argument_type_error("fft_plan: a complex_to_complex plan takes a complex operand, not " +
                                  std::string(name_of(state_->type)) +
                                  "; call fft::fft, or make a real_to_complex plan");
    }
    static_cast<void>(state_->call(state_->main_direction()));  // throws what is wrong with the operand
    state_->operand = operand;
}

fft_plan::fft_plan(fft_plan&& other) noexcept = default;
fft_plan& fft_plan::operator=(fft_plan&& other) noexcept = default;
fft_plan::~fft_plan() = default;

fft_plan::state& fft_plan::expect_alive() const {
    if (!state_) {
        throw state_error("fft_plan: it was freed; make a new one");
    }
    return *state_;
}

fft_plan::state& fft_plan::expect_ready() const {
    state& s = expect_alive();
    if (!s.planned) {
        throw state_error("fft_plan: call plan before execute");
    }
    if (!s.operand) {
        throw state_error("fft_plan: the operand was released; call reset_operand before execute");
    }
    return s;
}

void fft_plan::plan(const on& where) {
    state& s = expect_alive();
    const calls::fft_call call = s.call(s.main_direction());
    call.prepare();
    if (s.kind == fft_kind::complex_to_complex) {
        s.call(fft_direction::inverse).prepare();
    }
    if (s.workspace.bytes() < call.workspace_bytes()) {
        s.workspace = buffer(call.workspace_bytes(), where.stream(), where.site().where);
    }
    s.planned = true;
}

void fft_plan::plan(source_location where) { plan(on(current_stream(), where)); }

array fft_plan::execute(fft_direction direction, const on& where) {
    state& s = expect_ready();
    const calls::fft_call call = s.expect_direction(direction);
    array out = empty(call.result_shape(), call.result_type(), where.stream(), where.site().where);
    execute(direction, where, out);
    return out;
}

array fft_plan::execute(fft_direction direction, source_location where) {
    const stream current = current_stream();
    return execute(direction, on(current, where));
}

completion fft_plan::execute(fft_direction direction, const on& where, const array& out) {
    state& s = expect_ready();
    const calls::fft_call call = s.expect_direction(direction);
    call.expect_operands(*s.operand, out, where.stream().device());
    return call.enqueue(where, *s.operand, out, s.workspace);
}

void fft_plan::reset_operand(const array& operand) {
    state& s = expect_alive();
    if (!(operand.shape() == s.shape) || operand.dtype() != s.type) {
        throw argument_error("fft_plan: the plan is for " + std::string(name_of(s.type)) + " " + s.shape.to_string() +
                             ", the new operand is " + std::string(name_of(operand.dtype())) + " " +
                             operand.shape().to_string() + "; make a new plan for it");
    }
    s.operand = operand;
}

void fft_plan::release_operand() { expect_alive().operand.reset(); }

void fft_plan::free() noexcept { state_.reset(); }

std::size_t fft_plan::workspace_bytes() const noexcept { return state_ ? state_->workspace.bytes() : 0; }

}  // namespace weir
