// Attributes that most objects have not, looked up without the cost of an exception.
#pragma once

#include "bind.hpp"

#include <utility>

namespace weir::python {

/// The name of an attribute: a text that is made once, and lives as long as the process. Needs the GIL.
class attribute_name {
public:
    explicit attribute_name(const char* text) : text_(PyUnicode_InternFromString(text)) {}
    [[nodiscard]] PyObject* get() const noexcept { return text_; }

private:
    PyObject* text_;
};

/// Clears what foreign code has raised, if anything, where it means no more than "no". What ends a program, as Ctrl-C does, and a lack of
/// memory are thrown instead. Needs the GIL.
inline void forget_raised() {
    if (PyErr_Occurred() == nullptr) {
        return;
    }
    if (PyErr_ExceptionMatches(PyExc_Exception) == 0 || PyErr_ExceptionMatches(PyExc_MemoryError) != 0) {
        nb::raise_python_error();
    }
    PyErr_Clear();
}

/// Whether an object has an attribute, and the attribute. One whose lookup raises counts as there, and is no object: who asks for it again
/// gets the exception.
struct looked_up {
    bool is_there;
    nb::object value;
};
[[nodiscard]] inline looked_up look_up_attribute(nb::handle object, const attribute_name& name) {
    PyObject* found = nullptr;
#if PY_VERSION_HEX >= 0x030d0000
    const int status = PyObject_GetOptionalAttr(object.ptr(), name.get(), &found);
#else
    const int status = _PyObject_LookupAttr(object.ptr(), name.get(), &found);
#endif
    nb::object value = nb::steal(found);
    if (status < 0) {
        forget_raised();
    }
    return {status != 0, std::move(value)};
}

/// The attribute of an object; no object if it has none, or if looking for it raises (but see forget_raised). Needs the GIL.
[[nodiscard]] inline nb::object attribute_of(nb::handle object, const attribute_name& name) {
    return look_up_attribute(object, name).value;
}

/// The attribute of an object's class. The object is asked first: of most classes that costs less where there is no such attribute.
[[nodiscard]] inline nb::object attribute_of_class(nb::handle object, const attribute_name& name) {
    return attribute_of(object, name).is_valid() ? attribute_of(object.type(), name) : nb::object();
}

}  // namespace weir::python
