#include "arguments.hpp"

#include "weir/error.hpp"

namespace weir::python {

namespace {

std::string given(nb::handle argument, const char* name) {
    return std::string(name) + " is " + nb::repr(argument).c_str();
}

}  // namespace

void refuse_type(nb::handle argument, const char* name, const std::string& wanted) {
    throw argument_type_error(given(argument, name) + ": pass " + wanted);
}

std::string_view text_from(nb::handle argument, const char* name, const char* wanted) {
    if (PyUnicode_Check(argument.ptr()) == 0) {
        refuse_type(argument, name, wanted);
    }
    return nb::cast<std::string_view>(argument);
}

std::vector<std::string> texts_from(nb::handle argument, const char* name, const char* wanted) {
    std::vector<std::string> all;
    const bool is_one = PyUnicode_Check(argument.ptr()) != 0 || PyBytes_Check(argument.ptr()) != 0;
    const nb::object items = is_one ? nb::object() : nb::steal(PySequence_Fast(argument.ptr(), ""));
    if (!items.is_valid()) {
        PyErr_Clear();
        refuse_type(argument, name, wanted);
    }
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.ptr()); ++i) {
        const nb::handle one = PySequence_Fast_GET_ITEM(items.ptr(), i);
        if (PyUnicode_Check(one.ptr()) == 0) {
            refuse_type(argument, name, wanted);
        }
        all.push_back(nb::cast<std::string>(one));
    }
    return all;
}

std::int64_t integer_from(nb::handle argument, const char* name, std::int64_t least, std::int64_t most) {
    const nb::object index = nb::steal(PyNumber_Index(argument.ptr()));
    if (!index.is_valid()) {
        PyErr_Clear();
        refuse_type(argument, name, "an integer");
    }
    const long long value = PyLong_AsLongLong(index.ptr());
    const bool is_beyond = PyErr_Occurred() != nullptr;
    PyErr_Clear();
    if (!is_beyond && value >= least && value <= most) {
        return value;
    }
    constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
    throw argument_error(
        given(argument, name) + ", which is out of range" +
        (least == lowest ? "" : ": pass an integer from " + std::to_string(least) + " to " + std::to_string(most)));
}

std::uint64_t unsigned_from(nb::handle argument, const char* name, const char* wanted) {
    const nb::object index = nb::steal(PyNumber_Index(argument.ptr()));
    if (!index.is_valid()) {
        PyErr_Clear();
        refuse_type(argument, name, wanted);
    }
    const unsigned long long value = PyLong_AsUnsignedLongLong(index.ptr());
    if (PyErr_Occurred() != nullptr) {
        PyErr_Clear();
        throw argument_error(given(argument, name) + ": pass " + wanted + " from 0 to 2**64 - 1");
    }
    return value;
}

double number_from(nb::handle argument, const char* name) {
    const double value = PyFloat_AsDouble(argument.ptr());
    if (PyErr_Occurred() != nullptr) {
        PyErr_Clear();
        refuse_type(argument, name, "a number");
    }
    return value;
}

bool flag_from_other(nb::handle argument, const char* name) {
    const std::string_view type = Py_TYPE(argument.ptr())->tp_name;
    if (type != "numpy.bool" && type != "numpy.bool_") {
        refuse_type(argument, name, "True or False");
    }
    return PyObject_IsTrue(argument.ptr()) > 0;
}

}  // namespace weir::python
