// Nanobind with the conversions that the bindings use: one header, so that every file converts alike.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

namespace weir::python {

namespace nb = nanobind;

/// The object that `of` is, or null if it is none of this type. Most are of exactly this type, and are known by it without a
/// look at what types there are.
template <class T>
[[nodiscard]] T* object_of(nb::handle of) {
    static const PyObject* const type = nb::type<T>().ptr();
    if (reinterpret_cast<const PyObject*>(Py_TYPE(of.ptr())) == type && nb::inst_ready(of)) {
        return nb::inst_ptr<T>(of);
    }
    return nb::isinstance<T>(of) ? &nb::cast<T&>(of) : nullptr;
}

}  // namespace weir::python
