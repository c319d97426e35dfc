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

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace weir::python {

namespace nb = nanobind;

/// Where the interpreter has a GIL, the GIL keeps other threads out, and this costs nothing. A free-threaded interpreter has no GIL.
using one_at_a_time = nb::ft_lock_guard;

/// What repr() says of an object, for messages; of one whose repr() raises, what its type is.
[[nodiscard]] std::string repr_of(nb::handle of);

/// The characters of a text of Python's, which live as long as it; nothing for other objects, and for texts that no encoding has.
[[nodiscard]] std::optional<std::string_view> text_in(nb::handle of) noexcept;

/// Whether the object's class is the one of T itself.
template <class T>
[[nodiscard]] bool is_exactly(nb::handle of) {
    static const PyObject* const type = nb::type<T>().ptr();
    return reinterpret_cast<const PyObject*>(Py_TYPE(of.ptr())) == type;
}

/// The object that `of` is, or null if it is none of this type. Most objects are of exactly this type, so the first comparison usually
/// answers without a search through the known types.
template <class T>
[[nodiscard]] T* object_of(nb::handle of) {
    if (is_exactly<T>(of) && nb::inst_ready(of)) {
        return nb::inst_ptr<T>(of);
    }
    return nb::isinstance<T>(of) ? &nb::cast<T&>(of) : nullptr;
}

/// A new object of exactly this type: the result of nb::cast for a new value, without a search through the known types and objects.
template <class T, class... Arguments>
[[nodiscard]] nb::object new_object(Arguments&&... arguments) {
    static const nb::handle type = nb::type<T>();
    nb::object made = nb::inst_alloc(type);
    new (nb::inst_ptr<T>(made)) T(std::forward<Arguments>(arguments)...);
    nb::inst_mark_ready(made);
    return made;
}

}  // namespace weir::python
