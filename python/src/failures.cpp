#include "failures.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

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

/// Takes the local variables out of the frames that an exception, and those it came from, went through: they refer to the operands of the
/// task, whose failed results keep the exception. Their lines stay.
void forget_locals(nb::handle raised) {
    std::vector<nb::object> all{nb::borrow(raised)};
    for (std::size_t i = 0; i < all.size(); ++i) {
        const nb::object at = nb::getattr(all[i], "__traceback__", nb::none());
        for (nb::object each = at; !each.is_none(); each = nb::getattr(each, "tb_next", nb::none())) {
            const nb::object frame = nb::getattr(each, "tb_frame", nb::none());
            if (!nb::steal(PyObject_CallMethod(frame.ptr(), "clear", nullptr)).is_valid()) {
                PyErr_Clear();  // it runs
            }
        }
        for (const char* const name : {"__cause__", "__context__"}) {
            nb::object from = nb::getattr(all[i], name, nb::none());
            const auto is_it = [&from](const nb::object& one) { return one.is(from); };
            if (!from.is_none() && std::none_of(all.begin(), all.end(), is_it)) {
                all.push_back(std::move(from));
            }
        }
    }
}

}  // namespace

python_failure::python_failure(std::string text, nb::object raised)
    : text_(std::make_shared<const std::string>(std::move(text))),
      raised_(std::make_shared<const reference>(std::move(raised))) {}

python_failure python_failure::caught() {
    nb::object raised = take_raised();
    std::string text = text_of(raised);
    forget_locals(raised);
    return {std::move(text), std::move(raised)};
}

}  // namespace weir::python
