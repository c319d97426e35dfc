// The stateless calls: each names what it asks for; calls/call.cpp does it.
#include "weir/linalg.hpp"

#include <cstdint>
#include <memory>
#include <span>

#include "calls/execution.hpp"
#include "calls/kept_calls.hpp"
#include "calls/matmul/geometry.hpp"
#include "calls/matmul/matmul_call.hpp"
#include "weir/buffer.hpp"
#include "weir/on.hpp"

namespace weir {

namespace {

/// What products of arrays like these need again.
std::shared_ptr<calls::kept_matmul> kept_product(std::span<const array> inputs, const matmul_options& how) {
    calls::call_key words;
    for (const array& each : inputs) {
        words.add(each);
    }
    words.add(how.alpha);
    words.add(how.beta.value_or(scalar(false)));
    words.add(static_cast<std::uint64_t>(how.epilog));
    words.add(std::uint64_t{how.c.has_value()} << 2U | std::uint64_t{how.beta.has_value()} << 1U |
              std::uint64_t{how.bias.has_value()});
    return calls::kept_matmuls().get(
        words, [&] { return std::make_shared<calls::kept_matmul>(calls::matmul_geometry("matmul", inputs, how)); });
}

}  // namespace

array matmul(const on& where, const array& a, const array& b, const matmul_options& how) {
    const calls::matmul_arrays inputs = calls::matmul_inputs(a, b, how);
    const std::shared_ptr<calls::kept_matmul> known = kept_product(inputs, how);
    return calls::execute(calls::matmul_call(known->what, how.memory_limit), calls::terms_of(how), where, inputs,
                          &known->prepared);
}

array matmul(const array& a, const array& b, const matmul_options& how, source_location where) {
    const calls::matmul_arrays inputs = calls::matmul_inputs(a, b, how);
    const stream current = current_stream(calls::computing_device(how.execution, calls::leading_input(inputs)));
    return matmul(on(current, where), a, b, how);
}

completion detail::matmul_into(const on& where, const array& a, const array& b, const array& out,
                               const matmul_options& how) {
    const calls::matmul_arrays inputs = calls::matmul_inputs(a, b, how);
    const std::shared_ptr<calls::kept_matmul> known = kept_product(inputs, how);
    buffer workspace;
    return calls::execute(calls::matmul_call(known->what, how.memory_limit), calls::terms_of(how), where, inputs, out,
                          workspace, &known->prepared);
}

}  // namespace weir
