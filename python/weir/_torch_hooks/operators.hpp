// How torch's operators come here: those that programs call most by their types, all others by a fallback that gets their operands boxed,
// which takes longer.
#pragma once

#include "hooks.h"
#include "rules.hpp"
#include "running.hpp"
#include "state.hpp"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace weir_torch {

/// What the dispatcher has still to go through.
inline c10::DispatchKeySet behind_wrapper(c10::DispatchKeySet keys) {
    return keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, wrapper);
}

/// An operator that is to be reported while it runs: its operands are added, `begin` is called, it runs, and if `has_run` says so, its
/// results are added, and `end` is called.
class reported {
public:
    reported(const rules& of, bool orders) : of_(&of), orders_(orders), one_(of) {}

    [[nodiscard]] running& operands() { return one_; }
    void begin() {
        if (orders_) {
            one_.begin();
        }
    }
    /// False: the operators that it called have reported all.
    [[nodiscard]] bool has_run() {
        calls_others_ = of_->what == rules::kind::composite && noted != noted_before_;
        first_result_ = one_.size();
        return orders_ || !calls_others_;
    }
    [[nodiscard]] running& results() { return one_; }
    void end() {
        if (orders_) {
            one_.end(first_result_);
        }
        if (!calls_others_) {
            one_.report();
        }
    }

private:
    const rules* of_;
    bool orders_;
    running one_;
    std::uint64_t noted_before_ = noted;  ///< behind what an outer operator had to report
    bool calls_others_ = false;
    std::size_t first_result_ = 0;
};

/// The fallback.
inline void run_boxed(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
    const c10::DispatchKeySet rest = behind_wrapper(keys);
    const bool orders = keeps_order.load(std::memory_order_relaxed);
    if (!orders && !watching.load(std::memory_order_relaxed)) {
        op.redispatchBoxed(rest, stack);
        return;
    }
    const rules& of = known_rules(op);
    if (of.what == rules::kind::nothing) {
        op.redispatchBoxed(rest, stack);
        return;
    }
    if (of.what == rules::kind::record_stream) {
        const at::Tensor& tensor = torch::jit::peek(*stack, 0, 2).toTensor();
        const c10::IValue& stream = torch::jit::peek(*stack, 1, 2);
        if (tensor.has_storage() && tensor.is_cuda() && stream.isStream()) {
            running::report_pending();
            calls->kept_until(reinterpret_cast<std::uint64_t>(tensor.storage().data()), stream_of(stream.toStream()));
        }
        op.redispatchBoxed(rest, stack);
        return;
    }
    if (of.what == rules::kind::collective) {
        tell_unseen("collectives of torch.distributed, which run on streams of their own");
        op.redispatchBoxed(rest, stack);
        return;
    }
    reported one(of, orders);
    const std::size_t count = of.arguments.size();
    const auto argument = [&](std::size_t i) -> const c10::IValue& { return torch::jit::peek(*stack, i, count); };
    if (of.what == rules::kind::copy) {
        one.operands().add_copied(argument(0).toTensor(), argument(1).toTensor(), argument(2).toBool());
    } else {
        for (std::size_t i = 0; i < count; ++i) {
            one.operands().add(argument(i), of.arguments[i]);
        }
    }
    one.begin();
    op.redispatchBoxed(rest, stack);
    if (one.has_run()) {
        const std::size_t made = of.results.size();
        for (std::size_t i = 0; i < made; ++i) {
            one.results().add(torch::jit::peek(*stack, i, made), of.results[i]);
        }
        one.end();
    }
}

/// Adds an operand or a result, as C++ has it. What is no tensor is left out.
template <class Operand>
void add_typed(running& to, const Operand& operand, touch what) {
    if constexpr (std::is_same_v<Operand, at::Tensor>) {
        if (what != touch::nothing) {
            to.add(operand, what);
        }
    } else if constexpr (std::is_same_v<Operand, std::optional<at::Tensor>>) {
        if (operand) {
            add_typed(to, *operand, what);
        }
    } else if constexpr (std::is_same_v<Operand, c10::List<std::optional<at::Tensor>>>) {
        for (std::size_t i = 0; i < operand.size(); ++i) {
            add_typed(to, operand.get(i), what);
        }
    } else if constexpr (std::is_same_v<Operand, at::TensorList> || std::is_same_v<Operand, std::vector<at::Tensor>> ||
                         std::is_same_v<Operand, at::ITensorListRef>) {
        for (const at::Tensor& one : operand) {
            add_typed(to, one, what);
        }
    }
}
template <class Result>
void add_results(running& to, const Result& result, const std::vector<touch>& what) {
    add_typed(to, result, what[0]);
}
template <class... Results>
void add_results(running& to, const std::tuple<Results...>& results, const std::vector<touch>& what) {
    std::apply(
        [&](const auto&... each) {
            std::size_t i = 0;
            (add_typed(to, each, what[i++]), ...);
        },
        results);
}

/// One operator by its types. `Op`: of at::_ops.
template <class Op, class Schema = typename Op::schema>
struct typed;
template <class Op, class Result, class... Arguments>
struct typed<Op, Result(Arguments...)> {
    static c10::OperatorHandle handle() {
        return c10::Dispatcher::singleton().findSchemaOrThrow(static_cast<const char*>(Op::name),
                                                              static_cast<const char*>(Op::overload_name));
    }
    static const rules& known() {
        static const auto* const one = rules_of(handle()).release();
        return *one;
    }
    static Result run(c10::DispatchKeySet keys, Arguments... arguments) {
        const c10::DispatchKeySet rest = behind_wrapper(keys);
        const bool orders = keeps_order.load(std::memory_order_relaxed);
        if (!orders && !watching.load(std::memory_order_relaxed)) {
            return Op::redispatch(rest, std::forward<Arguments>(arguments)...);
        }
        const rules& of = known();
        reported one(of, orders);
        if constexpr (std::is_same_v<Op, at::_ops::copy_>) {
            one.operands().add_copied(arguments...);
        } else {
            std::size_t i = 0;
            (add_typed(one.operands(), arguments, of.arguments[i++]), ...);
        }
        one.begin();
        if constexpr (std::is_void_v<Result>) {
            Op::redispatch(rest, std::forward<Arguments>(arguments)...);
            if (one.has_run()) {
                one.end();
            }
        } else {
            decltype(auto) result = Op::redispatch(rest, std::forward<Arguments>(arguments)...);
            if (one.has_run()) {
                add_results(one.results(), result, of.results);
                one.end();
            }
            return result;
        }
    }
};

/// Takes an operator by its types from now on, unless it does nothing to memory.
template <class Op>
void take(std::vector<c10::RegistrationHandleRAII>& kept) {
    if (typed<Op>::known().what != rules::kind::nothing) {
        kept.push_back(c10::Dispatcher::singleton().registerImpl(
            typed<Op>::handle().operator_name(), wrapper,
            c10::KernelFunction::makeFromUnboxedFunction(TORCH_FN((typed<Op>::run))), std::nullopt, nullptr, "weir"));
    }
}
template <class... Ops>
void take_all() {
    static auto* const kept = new std::vector<c10::RegistrationHandleRAII>;  // as long as the process
    (take<Ops>(*kept), ...);
}

/// Those that models and their training call most. Each has a case in test_torch_operators.py.
inline void take_the_usual_by_type() {
    namespace ops = at::_ops;
    take_all<ops::add_Tensor, ops::add__Tensor, ops::sub_Tensor, ops::mul_Tensor, ops::mul__Tensor, ops::div_Tensor,
             ops::neg, ops::exp, ops::sqrt, ops::rsqrt, ops::pow_Tensor_Scalar, ops::where_self, ops::relu, ops::relu_,
             ops::gelu, ops::silu, ops::sigmoid, ops::tanh, ops::threshold_backward, ops::gelu_backward, ops::mm,
             ops::bmm, ops::addmm, ops::_convolution, ops::convolution, ops::convolution_backward,
             ops::cudnn_convolution, ops::native_layer_norm, ops::native_layer_norm_backward, ops::cudnn_batch_norm,
             ops::cudnn_batch_norm_backward, ops::_softmax, ops::_softmax_backward_data, ops::_log_softmax,
             ops::_log_softmax_backward_data, ops::nll_loss_forward, ops::nll_loss_backward, ops::embedding, ops::copy_,
             ops::clone, ops::fill__Scalar, ops::zero_, ops::sum, ops::sum_dim_IntList, ops::mean_dim, ops::cat,
             ops::index_Tensor, ops::index_select, ops::_foreach_add__List, ops::_foreach_add__Scalar,
             ops::_foreach_mul__Scalar, ops::_foreach_lerp__Scalar, ops::_foreach_addcmul__Scalar>();
}

}  // namespace weir_torch
