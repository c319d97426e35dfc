#include "task_views.hpp"

#include <bit>
#include <cstdint>
#include <string>

#include "numpy.hpp"
#include "weir/array.hpp"
#include "weir/device.hpp"
#include "weir/dtype.hpp"
#include "weir/error.hpp"

namespace weir::python {

namespace {

/// An object that NumPy makes an array from without copying, and keeps as its base.
struct task_memory {
    nb::object of;
    bool writable;
};

/// As NumPy's array interface names it. Of a type of ml_dtypes, which the interface cannot name: integers of its size.
std::string type_text(dtype type) {
    if (type == dtype::bool_) {
        return "|b1";
    }
    const char* letter = "c";
    switch (kind_of(type)) {
        case dtype_kind::boolean:
        case dtype_kind::unsigned_integer:
            letter = "u";
            break;
        case dtype_kind::signed_integer:
            letter = "i";
            break;
        case dtype_kind::real:
            letter = numpy::is_of_ml_dtypes(type) ? "u" : "f";
            break;
        case dtype_kind::complex:
            break;
        case dtype_kind::opaque:
            letter = "V";
            break;
    }
    const std::size_t bytes = size_of(type);
    const char* const order = bytes == 1 ? "|" : std::endian::native == std::endian::little ? "<" : ">";
    return order + std::string(letter) + std::to_string(bytes);
}

nb::dict array_interface(const task_memory& self) {
    const array& x = nb::cast<const array&>(self.of);
    nb::list extents;
    nb::list strides;
    for (std::size_t axis = 0; axis < x.dimensions(); ++axis) {
        extents.append(x.shape()[axis]);
        strides.append(x.strides()[axis]);
    }
    nb::dict described;
    described["version"] = 3;
    described["shape"] = nb::tuple(extents);
    described["typestr"] = type_text(x.dtype());
    described["strides"] = nb::tuple(strides);
    described["data"] = nb::make_tuple(reinterpret_cast<std::uintptr_t>(x.data()), !self.writable);
    return described;
}

}  // namespace

bool is_the_hosts(const array& x) {
    return x.device().kind() == device_kind::cpu || x.device().kind() == device_kind::cpu_inline;
}

void bind_task_views(nb::module_& m) {
    nb::class_<task_memory>(m, "_TaskMemory").def_prop_ro("__array_interface__", array_interface);
}

void expect_task_view(nb::handle of) {
    if (!is_the_hosts(nb::cast<const array&>(of))) {
        return;
    }
    try {
        static_cast<void>(nb::module_::import_("numpy"));
    } catch (const nb::python_error&) {
        throw missing_library(
            "host_task() passes arrays of the CPU as NumPy arrays, and NumPy is not there: pip install numpy, or list "
            "the array in reads= or writes= and pass its data in another way");
    }
}

nb::object task_view(nb::handle of, bool writable) {
    const array& x = nb::cast<const array&>(of);
    if (!is_the_hosts(x)) {
        return nb::borrow(of);
    }
    const nb::module_ numpy = nb::module_::import_("numpy");
    nb::object view;
    if (x.size() == 0) {
        nb::list extents;
        for (std::size_t axis = 0; axis < x.dimensions(); ++axis) {
            extents.append(x.shape()[axis]);
        }
        view = numpy.attr("empty")(nb::tuple(extents), type_text(x.dtype()));
    } else {
        view = numpy.attr("asarray")(nb::cast(task_memory{nb::borrow(of), writable}));
    }
    if (numpy::is_of_ml_dtypes(x.dtype())) {
        const nb::object known = nb::module_::import_("sys").attr("modules").attr("get")("ml_dtypes");
        if (!known.is_none()) {
            view = view.attr("view")(known.attr(name_of(x.dtype()).c_str()));
        }
    }
    return view;
}

}  // namespace weir::python
