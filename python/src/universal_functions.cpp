// Functions of other packages on arrays of ours: NumPy's of single elements, which give arrays of ours (`numpy_array + x`); torch's and
// JAX's, which compute themselves.
#include <optional>
#include <string>
#include <variant>

#include "arithmetic.hpp"
#include "module_function.hpp"
#include "weir/error.hpp"

namespace weir::python {

namespace {

using operation_of = std::variant<std::monostate, binary_operation, unary_operation>;

operation_of find(const std::string& name) {
    struct entry {
        const char* name;
        operation_of what;
    };
    static const entry all[] = {{"add", binary_operation::add},
                                {"subtract", binary_operation::subtract},
                                {"multiply", binary_operation::multiply},
                                {"divide", binary_operation::divide},
                                {"true_divide", binary_operation::divide},
                                {"power", binary_operation::power},
                                {"equal", binary_operation::equal},
                                {"not_equal", binary_operation::not_equal},
                                {"less", binary_operation::less},
                                {"less_equal", binary_operation::less_equal},
                                {"greater", binary_operation::greater},
                                {"greater_equal", binary_operation::greater_equal},
                                {"bitwise_and", binary_operation::bitwise_and},
                                {"bitwise_or", binary_operation::bitwise_or},
                                {"bitwise_xor", binary_operation::bitwise_xor},
                                {"negative", unary_operation::negative},
                                {"invert", unary_operation::invert}};
    for (const entry& one : all) {
        if (name == one.name) {
            return one.what;
        }
    }
    return {};
}

/// `out=` as a universal function has it: a tuple of one. Throws argument_type_error for any other keyword.
nb::object taken_out(const std::string& name, const nb::kwargs& keywords) {
    nb::object out;
    for (const auto& [key, value] : keywords) {
        const auto which = nb::cast<std::string>(key);
        if (which != "out") {
            throw argument_type_error("numpy." + name + " of arrays of Weir takes no " + which +
                                      "=: compute with x.numpy()");
        }
        const nb::object given = PyTuple_Check(value.ptr()) != 0 ? nb::object(value[0]) : nb::borrow(value);
        if (!given.is_none()) {
            out = given;
        }
    }
    return out;
}

nb::object call(nb::handle function, const std::string& method, nb::args inputs, const nb::kwargs& keywords) {
    const auto name = nb::cast<std::string>(function.attr("__name__"));
    if (method == "__call__" && name == "matmul" &&
        (nb::isinstance<array>(inputs[0]) || nb::isinstance<array>(inputs[1]))) {
        return multiplied(inputs[0], inputs[1], taken_out(name, keywords));
    }
    const operation_of what = find(name);
    if (method != "__call__" || std::holds_alternative<std::monostate>(what)) {
        const std::string full = "numpy." + name + (method == "__call__" ? "" : "." + method);
        throw argument_type_error(full + " is not for arrays of Weir: call it with x.numpy(), or write a kernel");
    }
    const nb::object out = taken_out(name, keywords);
    if (const auto* const one = std::get_if<unary_operation>(&what)) {
        if (!nb::isinstance<array>(inputs[0])) {
            throw argument_type_error("numpy." + name +
                                      " of an array of NumPy's, into one of Weir's: compute it in NumPy and assign "
                                      "the result with x[...] = ...");
        }
        return computed(*one, inputs[0], out);
    }
    if (!nb::isinstance<array>(inputs[0]) && !nb::isinstance<array>(inputs[1])) {
        throw argument_type_error("numpy." + name +
                                  " of arrays of NumPy's, into one of Weir's: compute it in NumPy and assign the "
                                  "result with x[...] = ...");
    }
    return computed(*std::get_if<binary_operation>(&what), inputs[0], inputs[1], out);
}

}  // namespace

void bind_universal_functions(nb::class_<array>& cls) {
    cls.def(
           "__array_ufunc__",
           [](nb::handle /*self*/, nb::handle function, const std::string& method, nb::args inputs,
              const nb::kwargs& keywords) { return call(function, method, std::move(inputs), keywords); },
           nb::sig("def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any"),
           "NumPy's functions that arrays of Weir have as operators give arrays of Weir; any other is an "
           "ArgumentTypeError.")
        .def(
            "__array_function__",
            [](nb::handle /*self*/, nb::handle function, nb::args /*unused*/, const nb::kwargs& /*unused*/) {
                const auto name = nb::cast<std::string>(nb::getattr(function, "__name__", nb::str("function")));
                throw argument_type_error("numpy." + name +
                                          " is not for arrays of Weir: call it with x.numpy(), or see what methods "
                                          "weir.Array has");
            },
            nb::sig("def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any"),
            "An ArgumentTypeError, so that NumPy copies nothing unasked.")
        .def_static(
            "__torch_function__",
            [](nb::handle function, nb::handle /*types*/, nb::handle arguments, nb::handle keywords) {
                static constinit module_function call_torch("weir._operands", "torch_function");
                return call_torch.get()(function, arguments, keywords);
            },
            nb::arg("func"), nb::arg("types"), nb::arg("args") = nb::tuple(), nb::arg("kwargs").none() = nb::none(),
            nb::sig("def __torch_function__(func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: "
                    "dict[str, Any] | None = None) -> Any"),
            "Functions and operators of torch take the memory of an array of Weir as a tensor, and give what torch "
            "gives. So `tensor + x` is a tensor, and `tensor += x` and `tensor[:] = x` write to the tensor.")
        .def(
            "__jax_array__",
            [](nb::handle self) {
                static constinit module_function make("weir._operands", "jax_array");
                return make.get()(self);
            },
            nb::sig("def __jax_array__(self) -> Any"),
            "A copy as an array of JAX's, for its operators and `jnp.asarray(x)`. `jnp.from_dlpack(x)` shares the "
            "memory "
            "instead.");
}

}  // namespace weir::python
