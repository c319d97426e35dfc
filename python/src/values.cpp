// Elements of arrays as objects of Python: the calls that wait for them.
#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "arithmetic.hpp"
#include "arrays.hpp"
#include "devices.hpp"
#include "dtypes.hpp"
#include "interpreter.hpp"
#include "numpy.hpp"
#include "site.hpp"
#include "weir/detail/host_copy.hpp"
#include "weir/error.hpp"
#include "weir/launch.hpp"

namespace weir::python {

namespace {

constexpr std::size_t largest_element = 16;

scalar only_element(const array& self, const char* what) {
    if (self.size() != 1) {
        throw argument_error(std::string(what) + " of an array of the shape " + self.shape().to_string() +
                             ": it must have one element; x.tolist() gives all");
    }
    weir::detail::expect_arithmetic(self.dtype(), what);
    std::array<std::byte, largest_element> bytes{};
    waiting([&, where = here()] { detail::copy_to_host(self, bytes.data(), where); });
    return scalar::load(self.dtype(), bytes.data());
}

void expect_real(const array& self, const char* what) {
    if (is_complex(self.dtype())) {
        throw argument_type_error(std::string(what) + " of an array of complex numbers: take complex(x)");
    }
}

nb::object index_of(const array& self) {
    // As a type error it lets Python try otherwise, such as by the buffer protocol.
    if (!is_integer(self.dtype()) || self.size() != 1) {
        throw argument_type_error("an array of " + std::string(name_of(self.dtype())) + " with the shape " +
                                  self.shape().to_string() +
                                  " is no integer: it must have one element, of an integer type; int(x) converts");
    }
    return python_number(only_element(self, "the integer"));
}

bool truth_of(const array& self) {
    if (self.size() != 1) {
        throw argument_error("the truth of an array of the shape " + self.shape().to_string() +
                             " is not defined: it must have one element; compare with ==, <, ... and reduce with "
                             "x.min() (all) or x.max() (any)");
    }
    return std::visit([](const auto& value) { return value != std::decay_t<decltype(value)>{}; },
                      only_element(self, "bool()").value());
}

std::vector<std::byte> all_bytes(const array& self) {
    std::vector<std::byte> bytes(self.nbytes());
    waiting([&, where = here()] { detail::copy_to_host(self, bytes.data(), where); });
    return bytes;
}

nb::object nested(const array& self, const std::byte*& next, std::size_t axis) {
    if (axis == self.dimensions()) {
        const scalar element = scalar::load(self.dtype(), next);
        next += size_of(self.dtype());
        return python_number(element);
    }
    nb::list made;
    for (std::int64_t i = 0; i < self.shape()[axis]; ++i) {
        made.append(nested(self, next, axis + 1));
    }
    return made;
}

nb::object to_list(const array& self) {
    weir::detail::expect_arithmetic(self.dtype(), "tolist()");
    const std::vector<std::byte> bytes = all_bytes(self);
    const std::byte* next = bytes.data();
    return nested(self, next, 0);
}

nb::object pickled(nb::handle self) {
    const auto& x = nb::cast<const array&>(self);
    const std::vector<std::byte> bytes = all_bytes(x);
    return nb::make_tuple(nb::module_::import_("weir._pickling").attr("array_from_bytes"),
                          nb::make_tuple(nb::bytes(bytes.data(), bytes.size()), std::string(name_of(x.dtype())),
                                         self.attr("shape"), x.device().name()));
}

array unpickled(const nb::bytes& elements, std::string_view type, nb::handle extents, nb::handle on_device) {
    const dtype element = dtype_from_name(type);
    const shape wanted = shape_from(extents);
    const device where_to = device_from(on_device);
    return released([&, where = here()] {
        const stream current = current_stream(where_to);
        array made = empty(wanted, element, current, where);
        copy_from_host(on(current, where), made,
                       {reinterpret_cast<const std::byte*>(elements.c_str()), elements.size()});
        return made;
    });
}

}  // namespace

void bind_values(nb::module_& m, nb::class_<array>& cls) {
    cls.def(
           "item", [](const array& self) { return python_number(only_element(self, "item()")); },
           nb::sig("def item(self) -> bool | int | float | complex"),
           "The only element, as a number of Python. Waits for what is to write it; Ctrl-C ends the wait.")
        .def("tolist", to_list, nb::sig("def tolist(self) -> Any"),
             "All elements as nested lists of numbers of Python. Waits for what is to write them.")
        .def(
            "__float__",
            [](const array& self) {
                expect_real(self, "float()");
                return nb::steal(PyNumber_Float(python_number(only_element(self, "float()")).ptr()));
            },
            nb::sig("def __float__(self) -> float"))
        .def(
            "__int__",
            [](const array& self) {
                expect_real(self, "int()");
                nb::object number = nb::steal(PyNumber_Long(python_number(only_element(self, "int()")).ptr()));
                if (!number.is_valid()) {  // an infinity, a NaN
                    nb::raise_python_error();
                }
                return number;
            },
            nb::sig("def __int__(self) -> int"))
        .def(
            "__complex__",
            [](const array& self) {
                const nb::object number = python_number(only_element(self, "complex()"));
                const nb::handle type(reinterpret_cast<PyObject*>(&PyComplex_Type));
                return type(number);
            },
            nb::sig("def __complex__(self) -> complex"))
        .def("__bool__", truth_of)
        .def(
            "__bytes__",
            [](const array& self) {
                const std::vector<std::byte> bytes = all_bytes(self);
                return nb::bytes(bytes.data(), bytes.size());
            },
            "The bytes of all elements, in C order. Waits for what is to write them.")
        .def("__index__", index_of, nb::sig("def __index__(self) -> int"))
        .def("__reduce__", pickled, nb::sig("def __reduce__(self) -> Any"),
             "Pickled by value, which waits for what is to write the elements; the copy is on a device of that name.");
    m.def("_array_from_bytes", unpickled);
}

}  // namespace weir::python
