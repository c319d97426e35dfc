#include "kernel_arguments.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "accesses.hpp"
#include "exchange.hpp"
#include "numpy.hpp"
#include "site.hpp"
#include "weir/detail/launch_arguments.hpp"
#include "weir/error.hpp"
#include "weir/scalar.hpp"
#include "weir/token.hpp"

namespace weir::python {

namespace {

struct place {
    const kernel& of;
    std::size_t position;
};

[[noreturn]] void refuse(nb::handle given, const place& at) {
    PyErr_Clear();
    weir::detail::refuse_argument(at.of, at.position, repr_of(given));
}

scalar integer_number(nb::handle given, const place& at) {
    int beyond = 0;
    const long long value = PyLong_AsLongLongAndOverflow(given.ptr(), &beyond);
    if (beyond == 0) {
        return static_cast<std::int64_t>(value);
    }
    const unsigned long long large = beyond > 0 ? PyLong_AsUnsignedLongLong(given.ptr()) : 0;
    if (beyond > 0 && PyErr_Occurred() == nullptr) {
        return static_cast<std::uint64_t>(large);
    }
    PyErr_Clear();
    // A real parameter takes whole numbers beyond all integer types, and an integer one refuses the real number.
    const double rounded = PyLong_AsDouble(given.ptr());
    if (PyErr_Occurred() != nullptr) {
        PyErr_Clear();
        weir::detail::refuse_argument_range(at.of, at.position, "a whole number beyond all types");
    }
    return rounded;
}

/// Numbers that are neither a bool nor exactly an int or a float.
scalar other_number(nb::handle given, const place& at) {
    PyObject* const object = given.ptr();
    if (PyFloat_Check(object) != 0) {
        return PyFloat_AS_DOUBLE(object);
    }
    if (PyComplex_Check(object) != 0) {
        return {PyComplex_RealAsDouble(object), PyComplex_ImagAsDouble(object)};
    }
    if (PyIndex_Check(object) != 0) {
        if (const nb::object index = nb::steal(PyNumber_Index(object)); index.is_valid()) {
            return integer_number(index, at);
        }
        PyErr_Clear();  // NumPy's bool has an __index__ that fails
    }
    if (numpy::is_scalar(given)) {
        return numpy::number(given);
    }
    const double value = PyFloat_AsDouble(object);
    if (value == -1.0 && PyErr_Occurred() != nullptr) {
        refuse(given, at);
    }
    return value;
}

[[noreturn]] void refuse_token(nb::handle given, const place& at) {
    throw argument_type_error("argument " + std::to_string(at.position + 1) + " of the kernel " + at.of.name() +
                              " got " + nb::repr(given).c_str() +
                              ", which a kernel gets nothing for: pass the array or number of the signature there, and "
                              "the token as reads= or writes= of launch(grid, block, ...)");
}

kernel_argument array_used_as(array& x, operand_use use) {
    switch (use) {
        case operand_use::in:
            return kernel_argument::in(x);
        case operand_use::out:
            return kernel_argument::out(x);
        case operand_use::inout:
            break;
    }
    return kernel_argument::inout(x);
}

}  // namespace

kernel_argument structure_from(nb::handle given, const kernel& of, std::size_t position,
                               std::vector<nb::object>& kept) {
    // An array of Weir has a buffer, too, which would wait for it.
    const bool is_record = PyObject_CheckBuffer(given.ptr()) != 0 && object_of<array>(given) == nullptr;
    nb::object bytes = is_record ? nb::steal(PyBytes_FromObject(given.ptr())) : nb::object();
    if (!bytes.is_valid()) {
        refuse(given, {of, position});
    }
    kept.push_back(std::move(bytes));
    PyObject* const copy = kept.back().ptr();
    return kernel_argument::bytes(
        std::as_bytes(std::span(PyBytes_AS_STRING(copy), static_cast<std::size_t>(PyBytes_GET_SIZE(copy)))));
}

kernel_argument argument_from(nb::handle given, const kernel& of, std::size_t position,
                              std::vector<nb::object>& imported) {
    const place at{of, position};
    PyObject* const object = given.ptr();
    if (PyFloat_CheckExact(object) != 0) {
        return scalar(PyFloat_AS_DOUBLE(object));
    }
    if (PyBool_Check(object) != 0) {
        return scalar(object == Py_True);
    }
    if (PyLong_CheckExact(object) != 0) {
        return integer_number(given, at);
    }
    if (array* const x = object_of<array>(given)) {
        return kernel_argument::as_declared(*x);
    }
    if (given.is_none()) {
        return nullptr;
    }
    if (const declared_use* const wrapped = object_of<declared_use>(given)) {
        if (nb::isinstance<token>(wrapped->of)) {
            refuse_token(given, at);
        }
        return array_used_as(*object_of<array>(wrapped->of), wrapped->use);
    }
    if (nb::isinstance<token>(given)) {
        refuse_token(given, at);
    }
    if (!numpy::is_scalar(given)) {
        if (nb::object shared = shared_array(given, here(), false); shared.is_valid()) {
            imported.push_back(std::move(shared));
            return kernel_argument::as_declared(*object_of<array>(imported.back()));
        }
    }
    return other_number(given, at);
}

}  // namespace weir::python
