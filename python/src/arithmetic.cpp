#include "arithmetic.hpp"

#include <complex>
#include <cstdint>
#include <string>

#include "exchange.hpp"
#include "interpreter.hpp"
#include "numpy.hpp"
#include "site.hpp"
#include "weir/error.hpp"

namespace weir::python {

namespace {

scalar integer_from(nb::handle argument, bool rounds) {
    int beyond = 0;
    const long long value = PyLong_AsLongLongAndOverflow(argument.ptr(), &beyond);
    if (beyond == 0) {
        return static_cast<std::int64_t>(value);
    }
    if (beyond > 0) {
        const unsigned long long large = PyLong_AsUnsignedLongLong(argument.ptr());
        if (PyErr_Occurred() == nullptr) {
            return static_cast<std::uint64_t>(large);
        }
        PyErr_Clear();
    }
    if (!rounds) {
        throw argument_error("the number " + repr_of(argument) +
                             " is out of range for every integer type: pass a float");
    }
    const double rounded = PyLong_AsDouble(argument.ptr());
    if (PyErr_Occurred() != nullptr) {
        PyErr_Clear();
        return beyond > 0 ? HUGE_VAL : -HUGE_VAL;
    }
    return rounded;
}

std::optional<scalar> loosely_a_number(nb::handle argument, bool rounds) {
    PyObject* const object = argument.ptr();
    if (PyLong_Check(object) != 0) {
        return integer_from(argument, rounds);
    }
    if (PyFloat_Check(object) != 0) {
        return PyFloat_AS_DOUBLE(object);
    }
    if (PyComplex_Check(object) != 0) {
        return scalar(PyComplex_RealAsDouble(object), PyComplex_ImagAsDouble(object));
    }
    return std::nullopt;
}

/// A scalar of NumPy's may be a number without a type where the result is the same.
array_operand operand_of_scalar(nb::handle argument, const array& x, const stream& on, const source_location& where) {
    const dtype type = numpy::from_dtype(argument.attr("dtype"));
    weir::detail::expect_arithmetic(type, "arithmetic");
    weir::detail::expect_arithmetic(x.dtype(), "arithmetic");
    const bool keeps = kind_of(type) == kind_of(x.dtype()) && size_of(type) <= size_of(x.dtype()) &&
                       (type == x.dtype() || promote_types(type, x.dtype()) == x.dtype());
    if (keeps) {
        return array_operand(numpy::number(argument));
    }
    return array_operand(numpy::copied(argument, on, where));
}

}  // namespace

std::optional<scalar> number_from(nb::handle argument, bool rounds) {
    PyObject* const object = argument.ptr();
    if (PyFloat_CheckExact(object) != 0) {
        return PyFloat_AS_DOUBLE(object);
    }
    if (PyBool_Check(object) != 0) {
        return scalar(object == Py_True);
    }
    if (PyLong_CheckExact(object) != 0) {
        return integer_from(argument, rounds);
    }
    // Some of NumPy's scalars derive from Python's numbers.
    return numpy::is_scalar(argument) ? std::nullopt : loosely_a_number(argument, rounds);
}

nb::object python_number(const scalar& number) {
    return std::visit(
        [](const auto& value) -> nb::object {
            using kind = std::decay_t<decltype(value)>;
            if constexpr (std::is_same_v<kind, std::complex<double>>) {
                return nb::steal(PyComplex_FromDoubles(value.real(), value.imag()));
            } else {
                return nb::cast(value);
            }
        },
        number.value());
}

array_operand operand_from(nb::handle argument, const array& x, const stream& on, const source_location& where,
                           bool rounds) {
    if (const array* const own = object_of<array>(argument)) {
        return array_operand(*own);
    }
    if (const std::optional<scalar> number = number_from(argument, rounds)) {
        return array_operand(*number);
    }
    if (numpy::is_scalar(argument)) {
        return operand_of_scalar(argument, x, on, where);
    }
    if (numpy::is_array(argument)) {
        return array_operand(numpy::copied(argument, on, where));
    }
    if (const nb::object shared = readable_array(argument, where); shared.is_valid()) {
        return array_operand(array(nb::cast<const array&>(shared)));
    }
    if (PyList_Check(argument.ptr()) != 0 || PyTuple_Check(argument.ptr()) != 0) {
        throw argument_type_error("an operand is a " +
                                  std::string(PyList_Check(argument.ptr()) != 0 ? "list" : "tuple") +
                                  ": make an array of it with weir.array(...)");
    }
    return {};
}

}  // namespace weir::python
