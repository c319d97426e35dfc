// Attributes that most objects have not, looked up without the cost of an exception.
#pragma once

#include "bind.hpp"

namespace weir::python {

/// The name of an attribute: a text that is made once, and lives as long as the process. Needs the GIL.
class attribute_name {
public:
    explicit attribute_name(const char* text) : text_(PyUnicode_InternFromString(text)) {}
    [[nodiscard]] PyObject* get() const noexcept { return text_; }

private:
    PyObject* text_;
};

/// The attribute of an object; no object if it has none, or if looking for it raises. Needs the GIL.
[[nodiscard]] inline nb::object attribute_of(nb::handle object, const attribute_name& name) noexcept {
    PyObject* found = nullptr;
#if PY_VERSION_HEX >= 0x030d0000
    const int status = PyObject_GetOptionalAttr(object.ptr(), name.get(), &found);
#else
    const int status = _PyObject_LookupAttr(object.ptr(), name.get(), &found);
#endif
    if (status < 0) {
        PyErr_Clear();
    }
    return nb::steal(found);
}

/// The attribute of an object's class. The object is asked first: of most classes that costs less where there is no such attribute.
[[nodiscard]] inline nb::object attribute_of_class(nb::handle object, const attribute_name& name) noexcept {
    return attribute_of(object, name).is_valid() ? attribute_of(object.type(), name) : nb::object();
}

}  // namespace weir::python
