#include "failures.hpp"

#include <utility>

namespace weir::python {

namespace {

nb::object take_raised() {
#if PY_VERSION_HEX >= 0x030C0000
    return nb::steal(PyErr_GetRaisedException());
#else
    PyObject* type = nullptr;
    PyObject* value = nullptr;
    PyObject* traceback = nullptr;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback != nullptr) {
        PyException_SetTraceback(value, traceback);
    }
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return nb::steal(value);
#endif
}

std::string text_of(nb::handle raised) {
    std::string text = nb::type_name(raised.type()).c_str();
    const nb::object message = nb::steal(PyObject_Str(raised.ptr()));
    const char* const its = message.is_valid() ? PyUnicode_AsUTF8(message.ptr()) : nullptr;
    if (its == nullptr) {
        PyErr_Clear();
    } else if (*its != '\0') {
        text = text + ": " + its;
    }
    return text;
}

}  // namespace

python_failure::python_failure(std::string text, nb::object raised)
    : text_(std::make_shared<const std::string>(std::move(text))),
      raised_(std::make_shared<const reference>(std::move(raised))) {}

python_failure python_failure::caught() {
    nb::object raised = take_raised();
    std::string text = text_of(raised);
    return {std::move(text), std::move(raised)};
}

}  // namespace weir::python
