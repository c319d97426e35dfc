#include "dtypes.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "numpy.hpp"
#include "weir/error.hpp"

namespace weir::python {

namespace {

dtype look_up(nb::handle text) {
    const std::optional<std::string_view> said = text_in(text);
    const std::string name = said ? std::string(*said) : repr_of(text);
    for (const dtype one : all_dtypes()) {
        if (name_of(one) == name) {
            return one;
        }
    }
    // NumPy has more names, such as "f4".
    if (const nb::object module = numpy::find(); module.is_valid()) {
        const nb::object known = nb::steal(PyObject_CallOneArg(nb::object(module.attr("dtype")).ptr(), text.ptr()));
        if (known.is_valid()) {
            return numpy::from_dtype(known);
        }
        PyErr_Clear();
    }
    return dtype_from_name(name);
}

/// A name in a program is usually one string object, so its address finds the type.
dtype from_name(nb::handle text) {
    struct known_name {
        PyObject* name = nullptr;  ///< owned, so that no other name gets its address; a few for each thread, for ever
        dtype means = dtype::bool_;
    };
    thread_local std::array<known_name, 8> known;
    known_name& entry = known[reinterpret_cast<std::uintptr_t>(text.ptr()) / 16 % known.size()];
    if (entry.name != text.ptr()) {
        const dtype found = look_up(text);
        Py_INCREF(text.ptr());
        Py_XDECREF(std::exchange(entry, {text.ptr(), found}).name);  // last: it may run code that looks here
    }
    return entry.means;
}

}  // namespace

dtype dtype_from(nb::handle argument) {
    if (PyUnicode_Check(argument.ptr()) != 0) {
        return from_name(argument);
    }
    if (numpy::is_dtype(argument)) {
        return numpy::from_dtype(argument);
    }
    struct python_type {
        PyTypeObject* type;
        dtype means;
    };
    const python_type types[] = {{&PyFloat_Type, dtype::float64},
                                 {&PyLong_Type, dtype::int64},
                                 {&PyBool_Type, dtype::bool_},
                                 {&PyComplex_Type, dtype::complex128}};
    for (const python_type& one : types) {
        if (argument.ptr() == reinterpret_cast<PyObject*>(one.type)) {
            return one.means;
        }
    }
    if (const nb::object name(nb::module_::import_("weir._packages").attr("dtype_name_of")(argument));
        !name.is_none()) {
        return look_up(name);
    }
    throw argument_type_error(
        "dtype is " + repr_of(argument) +
        ": pass a name such as \"float32\", a dtype of NumPy, torch or JAX, ml_dtypes.bfloat16, or bool, int, "
        "float or complex");
}

nb::object python_dtype(dtype type) {
    try {
        if (numpy::find().is_valid()) {
            return numpy::dtype_of(type);
        }
    } catch (const missing_library&) {
        // A type of ml_dtypes, which is not installed: it has no other name.
    } catch (const argument_type_error&) {
        // A type that no package has for NumPy.
    }
    const std::string name = name_of(type);
    return nb::str(name.data(), name.size());
}

}  // namespace weir::python
