// Arithmetic of arrays: operators of Python.
#include <array>
#include <string>
#include <utility>

#include "arithmetic.hpp"
#include "interpreter.hpp"
#include "labels.hpp"
#include "numpy.hpp"
#include "site.hpp"
#include "weir/error.hpp"
#include "weir/linalg.hpp"

namespace weir::python {

namespace {

nb::object not_implemented() { return nb::borrow(Py_NotImplemented); }

bool is_comparison(binary_operation what) noexcept {
    return what >= binary_operation::equal && what <= binary_operation::greater_equal;
}

/// Large integers are compared by their values, and are rounded beside real numbers.
bool rounds(binary_operation what, const array& x) noexcept {
    return is_comparison(what) || kind_of(x.dtype()) >= dtype_kind::real;
}

/// The array whose device and type count: the first.
const array& leading(nb::handle a, nb::handle b) {
    const array* const first = object_of<array>(a);
    return first != nullptr ? *first : nb::cast<const array&>(b);
}

array& expect_array(nb::handle out) {
    array* const found = object_of<array>(out);
    if (found == nullptr) {
        throw argument_type_error("out is " + repr_of(out) +
                                  ": results of arrays of Weir go into one of them; for one of NumPy's compute with "
                                  "x.numpy()");
    }
    return *found;
}

template <binary_operation What>
nb::object forwards(nb::handle self, nb::handle other) {
    return computed(What, self, other);
}
template <binary_operation What>
nb::object backwards(nb::handle self, nb::handle other) {
    return computed(What, other, self);
}
template <binary_operation What>
nb::object in_place(nb::handle self, nb::handle other) {
    return computed(What, self, other, self);
}

template <binary_operation What>
void bind_comparison(nb::class_<array>& cls, const char* name) {
    const std::string signature = "def " + std::string(name) + "(self, other: Any, /) -> Array";
    cls.def(name, forwards<What>, nb::is_operator(), nb::arg("other").none(), nb::sig(signature.c_str()));
}

template <binary_operation What>
void bind_arithmetic(nb::class_<array>& cls, const std::string& name) {
    const auto add = [&](const std::string& prefix, auto function, const char* result) {
        const std::string full = "__" + prefix + name + "__";
        const std::string signature = "def " + full + "(self, other: Any, /) -> " + result;
        cls.def(full.c_str(), function, nb::is_operator(), nb::arg("other").none(), nb::sig(signature.c_str()));
    };
    add("", forwards<What>, "Array");
    add("r", backwards<What>, "Array");
    add("i", in_place<What>, "Self");
}

/// Operators that NumPy's arrays have and these do not: the error says so, and does not speak of types.
void refuse(nb::class_<array>& cls, const std::string& method, const std::string& symbol, const std::string& instead) {
    cls.def(
        method.c_str(),
        [message = "arrays of Weir have no " + symbol + ": " + instead](nb::handle /*self*/, nb::args /*unused*/) {
            throw argument_type_error(message);
        },
        nb::sig(("def " + method + "(self, *args: Any) -> NoReturn").c_str()));
}

void refuse_operators(nb::class_<array>& cls) {
    const std::string numpy = "compute with x.numpy(), or write a kernel";
    struct absent {
        const char* name;
        const char* symbol;
    };
    constexpr absent binary[] = {
        {"mod", "operator %"}, {"floordiv", "operator //"}, {"lshift", "operator <<"}, {"rshift", "operator >>"}};
    for (const absent& one : binary) {
        for (const char* const prefix : {"", "r", "i"}) {
            refuse(cls, "__" + std::string(prefix) + one.name + "__", one.symbol, numpy);
        }
    }
    constexpr absent functions[] = {{"__divmod__", "divmod"}, {"__rdivmod__", "divmod"}, {"__round__", "round"},
                                    {"__abs__", "abs"},       {"__trunc__", "trunc"},    {"__floor__", "floor"},
                                    {"__ceil__", "ceil"}};
    for (const absent& one : functions) {
        refuse(cls, one.name, one.symbol, numpy);
    }
    refuse(cls, "__pos__", "unary operator +", "x itself is the same, x.copy() a new array");
}

}  // namespace

nb::object computed(binary_operation what, nb::handle a, nb::handle b, nb::handle out) {
    const array& first = leading(a, b);
    array* const to = out.is_valid() ? &expect_array(out) : nullptr;
    const stream current = stream_of(to != nullptr ? *to : first);
    const source_location where = here();
    const array_operand left = operand_from(a, first, current, where, rounds(what, first));
    const array_operand right = operand_from(b, first, current, where, rounds(what, first));
    if (!left || !right) {
        return not_implemented();
    }
    if (to != nullptr) {
        released([&] { compute(called(what, on(current, where)), what, left.at(where), right.at(where), *to); });
        return nb::borrow(out);
    }
    return new_object<array>(
        released([&] { return compute(called(what, on(current, where)), what, left.at(where), right.at(where)); }));
}

nb::object computed(unary_operation what, nb::handle x, nb::handle out) {
    const auto& in = nb::cast<const array&>(x);
    const stream current = stream_of(in);
    const source_location where = here();
    if (out.is_valid()) {
        array& to = expect_array(out);
        released([&] { compute(called(what, on(current, where)), what, in, to); });
        return nb::borrow(out);
    }
    return new_object<array>(released([&] { return compute(called(what, on(current, where)), what, in); }));
}

nb::object multiplied(nb::handle a, nb::handle b, nb::handle out) {
    const array& first = leading(a, b);
    array* const to = out.is_valid() ? &expect_array(out) : nullptr;
    const stream current = stream_of(to != nullptr ? *to : first);
    const source_location where = here();
    const array_operand left = operand_from(a, first, current, where);
    const array_operand right = operand_from(b, first, current, where);
    if (!left || !right) {
        return not_implemented();
    }
    if (!left.is_array() || !right.is_array()) {
        throw argument_type_error("operator @ multiplies matrices, and one operand is a number: write a * x");
    }
    if (to != nullptr) {
        waiting([&] { matmul(on(current, where), left.of_array(), right.of_array(), *to); });
        return nb::borrow(out);
    }
    return new_object<array>(waiting([&] { return matmul(on(current, where), left.of_array(), right.of_array()); }));
}

void bind_operators(nb::class_<array>& cls) {
    bind_arithmetic<binary_operation::add>(cls, "add");
    bind_arithmetic<binary_operation::subtract>(cls, "sub");
    bind_arithmetic<binary_operation::multiply>(cls, "mul");
    bind_arithmetic<binary_operation::divide>(cls, "truediv");
    bind_arithmetic<binary_operation::power>(cls, "pow");
    bind_arithmetic<binary_operation::bitwise_and>(cls, "and");
    bind_arithmetic<binary_operation::bitwise_or>(cls, "or");
    bind_arithmetic<binary_operation::bitwise_xor>(cls, "xor");
    bind_comparison<binary_operation::equal>(cls, "__eq__");
    bind_comparison<binary_operation::not_equal>(cls, "__ne__");
    bind_comparison<binary_operation::less>(cls, "__lt__");
    bind_comparison<binary_operation::less_equal>(cls, "__le__");
    bind_comparison<binary_operation::greater>(cls, "__gt__");
    bind_comparison<binary_operation::greater_equal>(cls, "__ge__");
    cls.attr("__hash__") = nb::none();
    cls.def(
           "__neg__", [](nb::handle self) { return computed(unary_operation::negative, self); },
           nb::sig("def __neg__(self) -> Array"))
        .def(
            "__invert__", [](nb::handle self) { return computed(unary_operation::invert, self); },
            nb::sig("def __invert__(self) -> Array"));
    cls.def(
           "__matmul__", [](nb::handle self, nb::handle other) { return multiplied(self, other); }, nb::is_operator(),
           nb::arg("other").none(), nb::sig("def __matmul__(self, other: Any, /) -> Array"))
        .def(
            "__rmatmul__", [](nb::handle self, nb::handle other) { return multiplied(other, self); }, nb::is_operator(),
            nb::arg("other").none(), nb::sig("def __rmatmul__(self, other: Any, /) -> Array"))
        .def(
            "__imatmul__", [](nb::handle self, nb::handle other) { return multiplied(self, other, self); },
            nb::is_operator(), nb::arg("other").none(), nb::sig("def __imatmul__(self, other: Any, /) -> Self"));
    refuse_operators(cls);
}

}  // namespace weir::python
