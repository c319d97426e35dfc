// Products of matrices.
#include "weir/linalg.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "arguments.hpp"
#include "arithmetic.hpp"
#include "arrays.hpp"
#include "call_log.hpp"
#include "calls.hpp"
#include "devices.hpp"
#include "labelling.hpp"
#include "weir/array.hpp"
#include "weir/error.hpp"
#include "weir/launch.hpp"
#include "work.hpp"

namespace weir::python {

namespace {

constexpr const char* epilogs_wanted = "\"bias\", \"relu\", \"gelu\", \"relu_bias\" or \"gelu_bias\"";

matmul_epilog epilog_from(nb::handle argument) {
    if (argument.is_none()) {
        return matmul_epilog::none;
    }
    const std::string_view name = text_from(argument, "epilog", epilogs_wanted);
    struct entry {
        std::string_view name;
        matmul_epilog what;
    };
    constexpr entry all[] = {{"bias", matmul_epilog::bias},
                             {"relu", matmul_epilog::relu},
                             {"gelu", matmul_epilog::gelu},
                             {"relu_bias", matmul_epilog::relu_bias},
                             {"gelu_bias", matmul_epilog::gelu_bias}};
    for (const entry& each : all) {
        if (each.name == name) {
            return each.what;
        }
    }
    throw argument_error("epilog is " + repr_of(argument) + ": pass " + epilogs_wanted + ", or None");
}

bool is_infinite(const scalar& number) noexcept {
    const double* const real = std::get_if<double>(&number.value());
    return real != nullptr && std::isinf(*real);
}

/// A factor: a number of Python's or NumPy's.
scalar factor_from(nb::handle argument, const char* name) {
    if (const std::optional<scalar> number = number_from(argument, true)) {
        if (PyLong_Check(argument.ptr()) != 0 && is_infinite(*number)) {
            throw argument_error(std::string(name) +
                                 " is an integer beyond all numbers of float64: pass a smaller one");
        }
        return *number;
    }
    // The scalars of NumPy. An array of Weir would have to be waited for.
    if (!nb::isinstance<array>(argument) && nb::hasattr(argument, "item") && nb::hasattr(argument, "shape") &&
        nb::len(nb::object(argument.attr("shape"))) == 0) {
        const nb::object item = argument.attr("item")();
        if (const std::optional<scalar> number = number_from(item, true)) {
            return *number;
        }
    }
    refuse_type(argument, name, "a number");
}

/// What all calls take, as Python gives it.
struct matmul_arguments {
    nb::handle c;
    nb::handle alpha;
    nb::handle beta;
    nb::handle epilog;
    nb::handle bias;
    nb::handle execution;
    nb::handle blocking;
    nb::handle memory_limit;
};

/// The arrays of a product, as Python gives them: None where there is none.
struct given_operands {
    nb::handle a;
    nb::handle b;
    nb::handle c;
    nb::handle bias;
};

/// The arrays of a product.
class product_operands {
public:
    product_operands() = default;
    product_operands(const given_operands& given, const char* function, const source_location& where) {
        take(a, given.a, function, where);
        take(b, given.b, function, where);
        take(c, given.c, function, where);
        take(bias, given.bias, function, where);
    }

    /// Whether calls with them block (rule P2).
    [[nodiscard]] bool block() const noexcept {
        const auto each = all();
        return std::any_of(each.begin(), each.end(), [](const auto* one) { return *one && (*one)->blocks(); });
    }
    /// Takes the elements of NumPy's arrays as they are now, not as they were when they were given.
    void copy_again(const source_location& where) {
        for (std::optional<call_operand>* const one : {&a, &b, &c, &bias}) {
            if (*one && (*one)->is_numpy()) {
                (*one)->copy_again(where);
            }
        }
    }
    /// Whether `out` has bytes in common with one of them that does not know it (call_operand::overlaps).
    [[nodiscard]] bool overlap(const array& out) const noexcept {
        const auto each = all();
        return std::any_of(each.begin(), each.end(), [&](const auto* one) { return *one && (*one)->overlaps(out); });
    }
    [[nodiscard]] static std::optional<array> array_of(const std::optional<call_operand>& one) {
        return one ? std::optional(one->get()) : std::nullopt;
    }

    std::optional<call_operand> a;
    std::optional<call_operand> b;
    std::optional<call_operand> c;
    std::optional<call_operand> bias;

private:
    [[nodiscard]] std::array<const std::optional<call_operand>*, 4> all() const noexcept { return {&a, &b, &c, &bias}; }
    static void take(std::optional<call_operand>& into, nb::handle x, const char* function,
                     const source_location& where) {
        if (!x.is_none()) {
            into.emplace(x, function, where);
        }
    }
};

matmul_options matmul_options_from(const matmul_arguments& given, const product_operands& operands) {
    matmul_options how;
    how.alpha = factor_from(given.alpha, "alpha");
    if (!given.beta.is_none()) {
        how.beta = factor_from(given.beta, "beta");
    }
    how.epilog = epilog_from(given.epilog);
    how.execution = execution_from(given.execution);
    how.blocking = blocking_from(given.blocking);
    if (operands.block()) {
        how.blocking = call_blocking::always;
    }
    how.memory_limit = memory_limit_from(given.memory_limit);
    how.c = product_operands::array_of(operands.c);
    how.bias = product_operands::array_of(operands.bias);
    return how;
}

nb::object call_matmul(nb::handle a, nb::handle b, const matmul_arguments& given, nb::handle out, nb::handle on_) {
    const source_location where = here();
    const product_operands operands({a, b, given.c, given.bias}, "matmul", where);
    const matmul_options how = matmul_options_from(given, operands);
    const call_operand& left = *operands.a;
    const array& right = operands.b->get();
    const stream to = left.stream_for(how.execution, on_);
    const auto product = [&] { return matmul(on(to, where), left.get(), right, how); };
    if (out.is_none() || left.is_numpy()) {
        if (!out.is_none()) {
            left.expect_target(out);
        }
        array result = waiting(product);
        return left.result(std::move(result), out, where);
    }
    array target = left.target(out, where);
    if (!operands.overlap(target)) {
        waiting([&] { matmul(on(to, where), left.get(), right, target, how); });
        return nb::borrow(out);
    }
    const stream copies = to.device() == target.device() ? to : current_in_context(target.device());
    waiting([&] {
        const array made = product();
        if (made.shape() != target.shape() || made.dtype() != target.dtype()) {
            throw argument_error("out= is " + target.to_string() + ", and the result is " + made.to_string());
        }
        copy(on(copies, where), target, made);
    });
    return nb::borrow(out);
}

/// A plan, with its operands as Python has them.
class py_matmul {
public:
    py_matmul(nb::handle a, nb::handle b, const matmul_arguments& given, nb::handle on_) : stream_(nb::borrow(on_)) {
        const source_location where = here();
        operands_ = product_operands({a, b, given.c, given.bias}, "Matmul", where);
        const matmul_options how = matmul_options_from(given, operands_);
        execution_ = how.execution;
        blocks_ = how.blocking == call_blocking::always;
        plan_.emplace(operands_.a->get(), operands_.b->get(), how);
        home_ = operands_.a->get().device();
        described_ = elements_in_words(operands_.a->get()) + " and " + elements_in_words(operands_.b->get()) + " on " +
                     home_.name();
        if (!on_.is_none()) {
            static_cast<void>(chosen(on_));  // refuses at once what is no stream
        }
    }

    void plan(nb::handle on_, nb::handle label) {
        const logged_call logged("weir.linalg", "Matmul.plan");
        const labelled named(label);
        const one_at_a_time alone(mutex_);
        const source_location where = here();
        const stream to = chosen(on_);
        waiting([&] { alive().plan(on(to, where)); });
    }
    int autotune(nb::handle candidates, nb::handle repetitions, nb::handle on_, nb::handle label) {
        const logged_call logged("weir.linalg", "Matmul.autotune");
        const labelled named(label);
        const one_at_a_time alone(mutex_);
        const source_location where = here();
        const matmul_tuning how{int_from(candidates, "candidates"), int_from(repetitions, "repetitions")};
        const stream to = chosen(on_);
        operands_.copy_again(where);
        return waiting([&] { return alive().autotune(on(to, where), how); });
    }
    nb::object execute(nb::handle on_, nb::handle release_workspace, nb::handle label) {
        const logged_call logged("weir.linalg", "Matmul.execute");
        const labelled named(label);
        const matmul_execution how{flag_from(release_workspace, "release_workspace")};
        const one_at_a_time alone(mutex_);
        const source_location where = here();
        const stream to = chosen(on_);
        operands_.copy_again(where);
        array result = waiting([&] { return alive().execute(on(to, where), how); });
        return operands_.a->result(std::move(result), nb::none(), where);
    }
    void reset_operands(const given_operands& others, nb::handle alpha, nb::handle beta, nb::handle on_) {
        const one_at_a_time alone(mutex_);
        const source_location where = here();
        static_cast<void>(alive());
        if (!on_.is_none()) {
            static_cast<void>(stream_from(on_));  // the elements are read by execute() alone, on its stream
        }
        product_operands by(others, "reset_operands", where);
        if (by.block() && !blocks_) {
            throw argument_type_error(
                "reset_operands() got arrays of NumPy or of another package on the CPU, whose calls block, and the "
                "plan is "
                "for others: make another Matmul, or pass weir.array(x)");
        }
        matmul_operands all{product_operands::array_of(by.a), product_operands::array_of(by.b),
                            product_operands::array_of(by.c), product_operands::array_of(by.bias)};
        if (!alpha.is_none()) {
            all.alpha = factor_from(alpha, "alpha");
        }
        if (!beta.is_none()) {
            all.beta = factor_from(beta, "beta");
        }
        released([&] { plan_->reset_operands(all); });
        const auto replace = [](std::optional<call_operand>& one, std::optional<call_operand>& other) {
            if (other) {
                one = std::move(other);
            }
        };
        replace(operands_.a, by.a);
        replace(operands_.b, by.b);
        replace(operands_.c, by.c);
        replace(operands_.bias, by.bias);
        if (all.a) {
            home_ = all.a->device();
        }
    }
    void release_operands() {
        const one_at_a_time alone(mutex_);
        released([&] { alive().release_operands(); });
        operands_ = {};
    }
    void free() noexcept {
        const one_at_a_time alone(mutex_);
        operands_ = {};
        const nb::gil_scoped_release no_gil;
        plan_.reset();
    }
    [[nodiscard]] std::size_t workspace_bytes() const noexcept {
        const one_at_a_time alone(mutex_);
        return plan_ ? plan_->workspace_bytes() : 0;
    }

    [[nodiscard]] std::string to_string() const {
        const one_at_a_time alone(mutex_);
        if (!plan_) {
            return "<weir.linalg.Matmul freed>";
        }
        return "<weir.linalg.Matmul of " + described_ + (operands_.a ? ">" : ", released>");
    }

    [[nodiscard]] explanation explained() {
        const one_at_a_time alone(mutex_);
        const matmul_plan& of = alive();
        return released([&] { return explain(of); });
    }

private:
    [[nodiscard]] matmul_plan& alive() {
        if (!plan_) {
            throw state_error("the Matmul is freed: make another one");
        }
        return *plan_;
    }
    /// The stream that the call names, else the one that the plan was made with, else the current one.
    [[nodiscard]] stream chosen(nb::handle on_) {
        static_cast<void>(alive());
        const nb::handle named = on_.is_none() ? nb::handle(stream_) : on_;
        return operands_.a ? operands_.a->stream_for(execution_, named) : computing_stream(execution_, home_, named);
    }

    nb::object stream_;
    execution_target execution_;
    bool blocks_ = false;
    std::optional<matmul_plan> plan_;
    product_operands operands_;  ///< none once they are released
    device home_ = cpu();        ///< where operands lie, or lay
    std::string described_;      ///< the operands, for repr()
    mutable nb::ft_mutex mutex_;
};

constexpr const char* matmul_doc =
    "The product epilog(alpha a @ b + beta c), with the shapes of numpy.matmul: the axes before the last two are "
    "broadcast.\n\n"
    ">>> a, b = weir.ones((2, 3)), weir.ones((3, 4))\n>>> weir.linalg.matmul(a, b, alpha=2).tolist()[0]\n"
    "[6.0, 6.0, 6.0, 6.0]\n\n"
    "Elements: float16, bfloat16, float32, float64, complex64, complex128; operands of different types are promoted as "
    "NumPy does.\n`c` needs `beta`, and is broadcast to the shape of the result. `epilog`: \"relu\" or \"gelu\" (with "
    "tanh), "
    "or \"bias\",\n\"relu_bias\" or \"gelu_bias\" with bias=x; a bias of shape (n,) has an "
    "element for "
    "each column of the\nresult, one of shape (m, 1) for each row. `out`: an array for the result, which may be "
    "`c`.\n\n"
    "Returns the result in the package of `a`: once it is enqueued for arrays of Weir and GPU arrays, once it is "
    "computed if an\n"
    "operand is of NumPy, with blocking=True, and with execution on a device that cannot reach the operands.";

void bind_plan_of_matmul(nb::module_& m) {
    nb::class_<py_matmul>(
        m, "Matmul", nb::is_weak_referenceable(),
        "A product that is prepared once and executed often; the arguments are those of matmul.\n\n"
        ">>> with weir.linalg.Matmul(a, b) as p:\n...     p.plan()\n...     x = p.execute()\n"
        "...     p.reset_operands(b=c)\n...     y = p.execute(stream=s)\n\n"
        "Streams may change from call to call without a word, and the operands may be dropped at once.")
        .def(
            "__init__",
            [](py_matmul* self, nb::handle a, nb::handle b, nb::handle c, nb::handle alpha, nb::handle beta,
               nb::handle epilog, nb::handle bias, nb::handle execution, nb::handle blocking, nb::handle memory_limit,
               nb::handle stream) {
                new (self) py_matmul(a, b, {c, alpha, beta, epilog, bias, execution, blocking, memory_limit}, stream);
            },
            nb::arg("a").none(), nb::arg("b").none(), nb::arg("c").none() = nb::none(), nb::kw_only(),
            nb::arg("alpha").none() = 1, nb::arg("beta").none() = nb::none(), nb::arg("epilog").none() = nb::none(),
            nb::arg("bias").none() = nb::none(), nb::arg("execution").none() = nb::none(),
            nb::arg("blocking").none() = "auto", nb::arg("memory_limit").none() = "80%",
            nb::arg("stream").none() = nb::none(),
            nb::sig(
                "def __init__(self, a: Any, b: Any, /, c: Any = None, *, alpha: complex = 1, beta: complex | None = "
                "None, epilog: str | None = None, bias: Any = None, execution: Device | str "
                "| None = None, blocking: bool | str = \"auto\", memory_limit: int | float | str = \"80%\", stream: "
                "Any = None) -> None"),
            "Describes the product and keeps its operands. `stream`: for the calls that are given none. Enqueues "
            "nothing.")
        .def("plan", &py_matmul::plan, nb::kw_only(), nb::arg("stream").none() = nb::none(),
             nb::arg("label").none() = nb::none(),
             nb::sig("def plan(self, *, stream: Any = None, label: str | None = None) -> None"),
             "Chooses how to compute, and takes the workspace. To be called before execute(); again is harmless.")
        .def(
            "autotune", &py_matmul::autotune, nb::kw_only(), nb::arg("candidates").none() = 8,
            nb::arg("repetitions").none() = 5, nb::arg("stream").none() = nb::none(),
            nb::arg("label").none() = nb::none(),
            nb::sig("def autotune(self, *, candidates: int = 8, repetitions: int = 5, stream: Any = None, label: str | "
                    "None = None) -> int"),
            "Tries the algorithms that the library suggests, into memory of its own, and keeps the fastest, for later "
            "products of the same kind as well. Blocks. Returns how many were tried: 0 on the CPU, where there is "
            "nothing "
            "to choose from. To be called after plan().")
        .def("execute", &py_matmul::execute, nb::kw_only(), nb::arg("stream").none() = nb::none(),
             nb::arg("release_workspace").none() = false, nb::arg("label").none() = nb::none(),
             nb::sig("def execute(self, *, stream: Any = None, release_workspace: bool = False, label: str | None = "
                     "None) -> Any"),
             "Enqueues the product of the operands as they are at this point of the stream, and returns the result in "
             "the "
             "package of `a`. `release_workspace`: give the workspace back to the pool then. Raises StateError if it "
             "is not planned, released or freed.")
        .def(
            "reset_operands",
            [](py_matmul& self, nb::handle a, nb::handle b, nb::handle c, nb::handle alpha, nb::handle beta,
               nb::handle bias, nb::handle stream) {
                self.reset_operands({nb::borrow(a), nb::borrow(b), nb::borrow(c), nb::borrow(bias)}, alpha, beta,
                                    stream);
            },
            nb::arg("a").none() = nb::none(), nb::arg("b").none() = nb::none(), nb::arg("c").none() = nb::none(),
            nb::kw_only(), nb::arg("alpha").none() = nb::none(), nb::arg("beta").none() = nb::none(),
            nb::arg("bias").none() = nb::none(), nb::arg("stream").none() = nb::none(),
            nb::sig("def reset_operands(self, a: Any = None, b: Any = None, c: Any = None, *, alpha: complex | None = "
                    "None, "
                    "beta: complex | None = None, bias: Any = None, stream: Any = None) -> "
                    "None"),
            "Holds other operands and factors from now on, those that are given; shapes, element types and device are "
            "those "
            "of the first ones.")
        .def("release_operands", &py_matmul::release_operands,
             "Drops the operands and keeps the plan; pending products are not disturbed. May be called twice.")
        .def("__repr__", &py_matmul::to_string)
        .def("_explain", &py_matmul::explained, "For weir.explain.")
        .def("free", &py_matmul::free,
             "Drops operands, plan and workspace; pending products are not disturbed. May be called twice.")
        .def_prop_ro("workspace_bytes", &py_matmul::workspace_bytes, "Bytes of the workspace that the plan keeps.")
        .def(
            "__enter__", [](nb::handle self) { return nb::borrow(self); }, nb::sig("def __enter__(self) -> Self"))
        .def(
            "__exit__", [](py_matmul& self, nb::args /*unused*/) { self.free(); },
            nb::sig("def __exit__(self, *exception: object) -> None"));
}

}  // namespace

void bind_linalg(nb::module_& parent) {
    nb::module_ m = parent.def_submodule("linalg");
    m.def(
        "matmul",
        [](nb::handle a, nb::handle b, nb::handle c, nb::handle alpha, nb::handle beta, nb::handle epilog,
           nb::handle bias, nb::handle out, nb::handle execution, nb::handle blocking, nb::handle stream,
           nb::handle memory_limit, nb::handle label) {
            const logged_call logged("weir.linalg", "matmul");
            const labelled named(label);
            return call_matmul(a, b, {c, alpha, beta, epilog, bias, execution, blocking, memory_limit}, out, stream);
        },
        nb::arg("a").none(), nb::arg("b").none(), nb::arg("c").none() = nb::none(), nb::kw_only(),
        nb::arg("alpha").none() = 1, nb::arg("beta").none() = nb::none(), nb::arg("epilog").none() = nb::none(),
        nb::arg("bias").none() = nb::none(), nb::arg("out").none() = nb::none(),
        nb::arg("execution").none() = nb::none(), nb::arg("blocking").none() = "auto",
        nb::arg("stream").none() = nb::none(), nb::arg("memory_limit").none() = "80%",
        nb::arg("label").none() = nb::none(),
        nb::sig(
            "def matmul(a: Any, b: Any, /, c: Any = None, *, alpha: complex = 1, beta: complex | None = None, epilog: "
            "str | None = None, bias: Any = None, out: Any = None, execution: Device | str "
            "| "
            "None = None, blocking: bool | str = \"auto\", stream: Any = None, memory_limit: int | float | str = "
            "\"80%\", label: str | None = None) -> Any"),
        matmul_doc);
    bind_plan_of_matmul(m);
}

}  // namespace weir::python
