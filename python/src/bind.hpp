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

#include <utility>

namespace weir::python {

namespace nb = nanobind;

/// Where the interpreter has a GIL it keeps other threads out, and this costs nothing. A free-threaded one does not.
using one_at_a_time = nb::ft_lock_guard;

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

/// A new object of exactly this type: what nb::cast gives for something new, without a look at what types there are and
/// which objects.
template <class T, class... Arguments>
[[nodiscard]] nb::object new_object(Arguments&&... arguments) {
    static const nb::handle type = nb::type<T>();
    nb::object made = nb::inst_alloc(type);
    new (nb::inst_ptr<T>(made)) T(std::forward<Arguments>(arguments)...);
    nb::inst_mark_ready(made);
    return made;
}

}  // namespace weir::python
