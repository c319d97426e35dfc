#include "arguments.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/error.hpp"

namespace weir::python {

namespace {

std::string given(nb::handle argument, const char* name) { return std::string(name) + " is " + repr_of(argument); }

}  // namespace

std::string repr_of(nb::handle of) {
    const nb::object said = nb::steal(PyObject_Repr(of.ptr()));
    if (said.is_valid()) {
        if (const std::optional<std::string_view> text = text_in(said)) {
            return std::string(*text);
        }
    }
    PyErr_Clear();
    return std::string("an object of type ") + Py_TYPE(of.ptr())->tp_name;
}

std::optional<std::string_view> text_in(nb::handle of) noexcept {
    Py_ssize_t length = 0;
    const char* const text = PyUnicode_Check(of.ptr()) != 0 ? PyUnicode_AsUTF8AndSize(of.ptr(), &length) : nullptr;
    if (text == nullptr) {
        PyErr_Clear();
        return std::nullopt;
    }
    return std::string_view(text, static_cast<std::size_t>(length));
}

void refuse_type(nb::handle argument, const char* name, const std::string& wanted) {
    throw argument_type_error(given(argument, name) + ": pass " + wanted);
}

std::string_view text_from(nb::handle argument, const char* name, const char* wanted) {
    const std::optional<std::string_view> text = text_in(argument);
    if (!text) {
        refuse_type(argument, name, wanted);
    }
    return *text;
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
        const std::optional<std::string_view> text = text_in(one);
        if (!text) {
            refuse_type(argument, name, wanted);
        }
        all.emplace_back(*text);
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

bool flag_from_other(nb::handle argument, const char* name, const char* wanted) {
    const std::string_view type = Py_TYPE(argument.ptr())->tp_name;
    if (type != "numpy.bool" && type != "numpy.bool_") {
        refuse_type(argument, name, wanted);
    }
    return PyObject_IsTrue(argument.ptr()) > 0;
}

}  // namespace weir::python
