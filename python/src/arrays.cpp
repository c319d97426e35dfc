#include "arrays.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "arithmetic.hpp"
#include "devices.hpp"
#include "dtypes.hpp"
#include "interpreter.hpp"
#include "site.hpp"
#include "weir/error.hpp"
#include "weir/launch.hpp"
#include "wording.hpp"
#include "wrong_calls.hpp"

namespace weir::python {

namespace {

nb::object tuple_of(std::span<const std::int64_t> numbers) {
    nb::object made = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(numbers.size())));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        PyTuple_SET_ITEM(made.ptr(), static_cast<Py_ssize_t>(i), PyLong_FromLongLong(numbers[i]));
    }
    return made;
}

std::string repr(const array& self) { return in_words_of_python(self.to_string()); }

/// Every device that reaches the memory, its own first.
nb::object devices_of(const array& self) {
    return nb::tuple(nb::cast(released([&] { return self.devices(); })));
}

array copied(const array& self) {
    const stream current = stream_of(self);
    return released([&, where = here()] { return copy(on(current, where), self); });
}

array reshaped(const array& self, nb::args extents) {
    const bool is_one_argument = extents.size() == 1;
    const std::vector<std::int64_t> given =
        integers_from(is_one_argument ? nb::object(extents[0]) : nb::object(extents), "shape");
    const shape wanted = self.completed(given);
    const stream current = stream_of(self);
    return released([&, where = here()] { return reshape(on(current, where), self, wanted); });
}

nb::object moved(nb::handle self, nb::handle target) {
    const auto& x = nb::cast<const array&>(self);
    if (target.is_none()) {
        throw argument_type_error("to() got None: pass a weir.Device or a name such as \"cpu\" or \"cuda:0\"");
    }
    const device wanted = device_from(target);
    if (wanted == x.device()) {
        return nb::borrow(self);
    }
    const stream used = stream_between(wanted, x.device());
    return nb::cast(released([&, where = here()] { return to(on(used, where), x, wanted); }));
}

}  // namespace

std::vector<std::int64_t> integers_from(nb::handle argument, const char* what) {
    const auto add = [&](std::vector<std::int64_t>& to, nb::handle one) {
        // An element of an array of Weir's would have to be waited for.
        const bool is_one =
            PyIndex_Check(one.ptr()) != 0 && PyBool_Check(one.ptr()) == 0 && !nb::isinstance<array>(one);
        const nb::object number = is_one ? nb::steal(PyNumber_Index(one.ptr())) : nb::object();
        if (!number.is_valid()) {
            PyErr_Clear();
            throw argument_type_error(std::string(what) + " is " + repr_of(argument) +
                                      ": pass an integer or a tuple of integers");
        }
        to.push_back(PyLong_AsLongLong(number.ptr()));
        if (PyErr_Occurred() != nullptr) {
            PyErr_Clear();
            throw argument_error(std::string(what) + " is " + repr_of(argument) + ": integers must fit into 64 bits");
        }
    };
    std::vector<std::int64_t> found;
    if (PyTuple_Check(argument.ptr()) != 0 || PyList_Check(argument.ptr()) != 0) {
        for (const nb::handle one : argument) {
            add(found, one);
        }
    } else {
        add(found, argument);
    }
    return found;
}

shape shape_from(nb::handle argument) {
    constexpr Py_ssize_t few = 8;  // as most shapes have at most; these are read quickly
    if (PyLong_CheckExact(argument.ptr()) != 0) {
        int beyond = 0;
        const long long extent = PyLong_AsLongLongAndOverflow(argument.ptr(), &beyond);
        if (beyond == 0) {
            return {extent};
        }
    }
    if (PyTuple_CheckExact(argument.ptr()) != 0 && PyTuple_GET_SIZE(argument.ptr()) <= few) {
        std::array<std::int64_t, few> extents;
        const Py_ssize_t count = PyTuple_GET_SIZE(argument.ptr());
        Py_ssize_t i = 0;
        for (int beyond = 0; i < count && PyLong_CheckExact(PyTuple_GET_ITEM(argument.ptr(), i)) != 0; ++i) {
            extents[static_cast<std::size_t>(i)] =
                PyLong_AsLongLongAndOverflow(PyTuple_GET_ITEM(argument.ptr(), i), &beyond);
            if (beyond != 0) {
                break;
            }
        }
        if (i == count) {
            return shape(std::span(extents).first(static_cast<std::size_t>(count)));
        }
    }
    return shape(integers_from(argument, "shape"));
}

void bind_arrays(nb::module_& m) {
    nb::class_<array> cls(
        m, "Array", nb::is_weak_referenceable(), nb::type_slots(buffer_slots()),
        "An n-dimensional array on one device, which knows its pending accesses: operations on any streams are ordered "
        "as they need to be.\n\n"
        "Made by weir.empty, zeros, ones, full, arange, random.random, where, array. Views are the same memory. "
        "Arithmetic is enqueued on the current stream of the array's device and does not block; it follows NumPy 2, "
        "also "
        "in its types. What has to show elements waits for exactly what is to write them.\n\n"
        ">>> x = weir.arange(4)\n>>> (2 * x + 1).tolist()\n[1, 3, 5, 7]\n");
    refuse_making(cls,
                  "weir.Array makes no arrays: call weir.empty, zeros, ones, full, arange, or array(x) for a copy of x")
        .def_prop_ro(
            "shape", [](const array& self) { return tuple_of(self.shape().extents()); },
            nb::sig("def shape(self) -> tuple[int, ...]"), "The extents, outermost first.")
        .def_prop_ro(
            "strides", [](const array& self) { return tuple_of(self.strides()); },
            nb::sig("def strides(self) -> tuple[int, ...]"), "Bytes from one index to the next, for each dimension.")
        .def_prop_ro(
            "dtype", [](const array& self) { return python_dtype(self.dtype()); }, nb::sig("def dtype(self) -> Any"),
            "The element type: a numpy.dtype, of ml_dtypes for bfloat16, float8_e4m3fn and others that NumPy has not; "
            "its "
            "name where no package has it.")
        .def_prop_ro("device", &array::device, "The device whose memory holds the elements.")
        .def_prop_ro("devices", devices_of, nb::sig("def devices(self) -> tuple[Device, ...]"),
                     "All devices that reach the memory, its own first: more than one for pinned and managed memory. "
                     "weir.asarray(x, device=...) is a view for each of them, as is __dlpack__(dl_device=...).")
        .def_prop_ro("nbytes", &array::nbytes, "Bytes of all elements.")
        .def_prop_ro(
            "itemsize", [](const array& self) { return size_of(self.dtype()); },
            "Bytes of one element. ArgumentTypeError if an element is not whole bytes, such as int4.")
        .def_prop_ro("size", &array::size, "The number of elements.")
        .def_prop_ro("ndim", &array::dimensions, "The number of dimensions.")
        .def_prop_ro(
            "ready", [](const array& self) { return released([&] { return self.ready(); }); },
            "Whether nothing pending conflicts with reading it now. Never blocks.")
        .def_prop_ro("T", &array::t, "All dimensions in reverse: the same memory.")
        .def("copy", copied, nb::sig("def copy(self) -> Array"), "A new array in C order. Enqueued; does not block.")
        .def("__copy__", copied, nb::sig("def __copy__(self) -> Array"))
        .def(
            "__deepcopy__", [](const array& self, nb::handle /*memo*/) { return copied(self); }, nb::arg("memo").none(),
            nb::sig("def __deepcopy__(self, memo: Any) -> Array"))
        .def(
            "astype",
            [](const array& self, nb::handle type) {
                const dtype wanted = dtype_from(type);
                const stream current = stream_of(self);
                return released([&, where = here()] { return astype(on(current, where), self, wanted); });
            },
            nb::arg("dtype").none(), nb::sig("def astype(self, dtype: Any) -> Array"),
            "A new array with elements of that type, as NumPy's astype makes it: integers wrap, fractions and "
            "imaginary "
            "parts go. Enqueued; does not block.")
        .def("reshape", reshaped, nb::sig("def reshape(self, *shape: int | tuple[int, ...]) -> Array"),
             "The elements in C order under another shape, one extent of which may be -1: a view where strides can say "
             "it, else a copy.")
        .def("to", moved, nb::arg("device").none(), nb::sig("def to(self, device: Device | str) -> Array"),
             "The array on that device: itself if it is there, else a new one. Enqueued on the current stream of the "
             "device that is not the CPU; does not block.")
        .def("__repr__", repr);
    bind_indexing(cls);
    bind_operators(cls);
    bind_universal_functions(cls);
    bind_reductions(cls);
    bind_host_access(cls);
    bind_exporting(cls);
    bind_arrow(cls);
    bind_exchange_table(cls);
    bind_foreign_use(m, cls);
    bind_values(m, cls);
}

}  // namespace weir::python
