#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "calls/call.hpp"
#include "calls/execution.hpp"
#include "calls/matmul/cuda_matmul.hpp"
#include "calls/matmul/geometry.hpp"
#include "calls/matmul/matmul_call.hpp"
#include "weir/error.hpp"
#include "weir/linalg.hpp"
#include "weir/on.hpp"
#include "weir/stream.hpp"

namespace weir {

namespace {

constexpr const char* matmul_class = "matmul_plan";

}  // namespace

/// What a plan holds until it is freed.
struct matmul_plan::state {
    matmul_options how;  ///< without c and bias, which are among the operands
    bool has_c;
    bool has_bias;
    calls::matmul_geometry what;
    calls::stateful_call held;
    bool is_released = false;
    calls::prepared_calls prepared;  ///< the last executions, prepared for the next

    state(std::span<const array> operands, const matmul_options& options)
        : how(options),
          has_c(options.c.has_value()),
          has_bias(options.bias.has_value()),
          what(matmul_class, operands, options),
          held(matmul_class, operands, calls::terms_of(options)) {
        drop_operands();
    }
    void drop_operands() noexcept {
        how.c.reset();
        how.bias.reset();
    }

    [[nodiscard]] calls::matmul_call call() const { return {what, held.terms().limit}; }
    [[nodiscard]] stream current(const char* phase) const {
        return current_stream(
            calls::computing_device(held.terms().execution, calls::leading_input(held.operands(phase))));
    }
};

matmul_plan::matmul_plan(const array& a, const array& b, const matmul_options& how)
    : state_(std::make_unique<state>(calls::matmul_inputs(a, b, how), how)) {}

matmul_plan::matmul_plan(matmul_plan&& other) noexcept = default;
matmul_plan& matmul_plan::operator=(matmul_plan&& other) noexcept = default;
matmul_plan::~matmul_plan() = default;

matmul_plan::state& matmul_plan::expect_alive() const { return calls::expect_alive(matmul_class, state_); }

void matmul_plan::plan(const on& where) {
    state& s = expect_alive();
    s.held.prepare(s.call(), where);
    s.held.set_planned();
}

void matmul_plan::plan(source_location where) {
    const stream current = expect_alive().current("plan");
    plan(on(current, where));
}

array matmul_plan::execute(const on& where, const matmul_execution& how) {
    state& s = expect_alive();
    array out = calls::make_result(s.call(), where, s.held.expect_planned());
    execute(where, out, how);
    return out;
}

array matmul_plan::execute(const matmul_execution& how, source_location where) {
    const stream current = expect_alive().current("execute");
    return execute(on(current, where), how);
}

completion matmul_plan::execute_into(const on& where, const array& out, const matmul_execution& how) {
    state& s = expect_alive();
    completion end = s.held.execute(s.call(), where, out, s.prepared);
    if (how.release_workspace) {
        s.held.release_workspace();
    }
    return end;
}

int matmul_plan::autotune(const on& where, const matmul_tuning& how) {
    state& s = expect_alive();
    if (how.candidates < 1 || how.repetitions < 1) {
        throw argument_error(std::string(matmul_class) + ": autotune with " + std::to_string(how.candidates) +
                             " candidates and " + std::to_string(how.repetitions) +
                             " repetitions; both must be 1 or more");
    }
    const int tried = calls::tune_cuda_matmul(s.call(), s.held.terms(), where, s.held.expect_planned(), how);
    if (tried > 0) {
        s.prepared.clear();  // they have the algorithm from before
        plan(where);
    }
    return tried;
}

int matmul_plan::autotune(const matmul_tuning& how, source_location where) {
    const stream current = expect_alive().current("autotune");
    return autotune(on(current, where), how);
}

void matmul_plan::reset_operands(const matmul_operands& operands) {
    state& s = expect_alive();
    const std::string name(matmul_class);
    if ((operands.c && !s.has_c) || (operands.bias && !s.has_bias)) {
        throw argument_error(name + ": the plan is for a product without " + (operands.c && !s.has_c ? "c" : "a bias") +
                             "; make a new plan for one with it");
    }
    if (s.is_released && (!operands.a || !operands.b || (s.has_c && !operands.c) || (s.has_bias && !operands.bias))) {
        throw state_error(name +
                          ": the operands were released, and only some are given; give reset_operands all of them");
    }
    std::vector<array> before;
    if (!s.is_released) {
        const std::span<const array> all = s.held.operands("this one");
        before.assign(all.begin(), all.end());
    }
    std::vector<array> held;
    const auto take = [&](const std::optional<array>& given) { held.push_back(given ? *given : before[held.size()]); };
    matmul_options how = s.how;
    take(operands.a);
    take(operands.b);
    if (s.has_c) {
        take(operands.c);
        how.c = held.back();
    }
    if (s.has_bias) {
        take(operands.bias);
        how.bias = held.back();
    }
    how.alpha = operands.alpha.value_or(how.alpha);
    how.beta = operands.beta ? operands.beta : how.beta;
    s.held.reset_operands(held);
    try {
        s.what = calls::matmul_geometry(matmul_class, held, how);  // throws for a factor that elements cannot be
    } catch (...) {
        s.is_released ? s.held.release_operands() : s.held.reset_operands(before);
        throw;
    }
    if (operands.alpha || operands.beta) {
        s.prepared.clear();  // they have the other factors
    }
    s.how = std::move(how);
    s.drop_operands();
    s.is_released = false;
}

void matmul_plan::release_operands() {
    state& s = expect_alive();
    s.held.release_operands();
    s.is_released = true;
}

explanation explain(const matmul_plan& what) { return what.expect_alive().held.explain(calls::matmul_library_on); }

void matmul_plan::free() noexcept { state_.reset(); }

std::size_t matmul_plan::workspace_bytes() const noexcept { return state_ ? state_->held.workspace_bytes() : 0; }

}  // namespace weir
