// Views of arrays, by indices as NumPy has them; assignment to views.
#include <algorithm>
#include <string>
#include <vector>

#include "arithmetic.hpp"
#include "arrays.hpp"
#include "errors.hpp"
#include "interpreter.hpp"
#include "numpy.hpp"
#include "site.hpp"
#include "weir/error.hpp"

namespace weir::python {

namespace {

[[noreturn]] void refuse(nb::handle part) {
    throw argument_type_error("an index is " + repr_of(part) +
                              ": arrays of Weir take integers, slices, None and ...; to choose elements by a mask use "
                              "weir.where(mask, x, y), by a list of indices x.numpy()");
}

/// A bound of a slice, cut off where it goes beyond all arrays.
std::int64_t bound_from(PyObject* bound) {
    const nb::object number = nb::steal(PyNumber_Index(bound));
    if (!number.is_valid()) {
        PyErr_Clear();
        refuse(bound);
    }
    return PyNumber_AsSsize_t(number.ptr(), nullptr);
}

slice slice_from(nb::handle part) {
    const auto* const given = reinterpret_cast<PySliceObject*>(part.ptr());
    slice made;
    if (given->start != Py_None) {
        made.start = bound_from(given->start);
    }
    if (given->stop != Py_None) {
        made.stop = bound_from(given->stop);
    }
    if (given->step != Py_None) {
        made.step = bound_from(given->step);
    }
    return made;
}

std::int64_t position_from(nb::handle part) {
    const bool is_none_of_ours = PyBool_Check(part.ptr()) != 0 || nb::isinstance<array>(part);
    const nb::object number = is_none_of_ours ? nb::object() : nb::steal(PyNumber_Index(part.ptr()));
    if (!number.is_valid()) {
        PyErr_Clear();
        refuse(part);
    }
    const Py_ssize_t at = PyNumber_AsSsize_t(number.ptr(), PyExc_IndexError);
    if (at == -1 && PyErr_Occurred() != nullptr) {
        PyErr_Clear();
        throw index_error("the index " + repr_of(part) + " is out of range");
    }
    return at;
}

index_term term_from(nb::handle part) {
    if (PyLong_CheckExact(part.ptr()) != 0) {
        return position_from(part);
    }
    if (PySlice_Check(part.ptr()) != 0) {
        return slice_from(part);
    }
    if (part.is_none()) {
        return new_axis;
    }
    if (part.ptr() == Py_Ellipsis) {
        return ellipsis;
    }
    return position_from(part);
}

array view_of(const array& x, nb::handle index) {
    std::vector<index_term> terms;
    if (PyTuple_Check(index.ptr()) != 0) {
        terms.reserve(nb::len(index));
        for (const nb::handle part : nb::borrow<nb::tuple>(index)) {
            terms.push_back(term_from(part));
        }
    } else {
        terms.push_back(term_from(index));
    }
    try {
        return x.at(terms);
    } catch (const argument_error& error) {
        throw index_error(error.what());
    }
}

std::int64_t length_of(const array& x) {
    if (x.dimensions() == 0) {
        throw argument_type_error(
            "an array without dimensions has no length and cannot be iterated over: x.item() is "
            "its element");
    }
    return x.shape()[0];
}

}  // namespace

void bind_indexing(nb::class_<array>& cls) {
    cls.def("__getitem__", view_of, nb::arg("index").none(), nb::sig("def __getitem__(self, index: Any, /) -> Array"),
            "A view: the same memory. Takes integers, slices, None and ..., or a tuple of them. Raises IndexError (as "
            "an ArgumentError), ArgumentTypeError.")
        .def(
            "__setitem__",
            [](const array& self, nb::handle index, nb::handle value) {
                const bool is_result_of_in_place = nb::isinstance<array>(value);
                array target = view_of(self, index);
                if (is_result_of_in_place) {
                    // `x[1:3] += y` assigns the view, which has been changed already.
                    const auto& source = nb::cast<const array&>(value);
                    if (source.buffer().resource(detail::key) == target.buffer().resource(detail::key) &&
                        source.data() == target.data() && source.dtype() == target.dtype() &&
                        source.shape() == target.shape() && std::ranges::equal(source.strides(), target.strides())) {
                        return;
                    }
                }
                assign(target, value, std::nullopt, here());
            },
            nb::arg("index").none(), nb::arg("value").none(),
            nb::sig("def __setitem__(self, index: Any, value: Any, /) -> None"),
            "Enqueues a copy of a number, an array of Weir's or NumPy's, or a list into the view. What is NumPy's is "
            "taken as it is at the call.")
        .def(
            "__delitem__",
            [](const array& /*self*/, nb::handle /*index*/) {
                throw argument_type_error("elements of an array cannot be deleted: make an array without them");
            },
            nb::arg("index").none(), nb::sig("def __delitem__(self, index: Any, /) -> NoReturn"))
        .def("__len__", length_of)
        .def(
            "__iter__",
            [](nb::handle self) {
                static_cast<void>(length_of(nb::cast<const array&>(self)));
                return nb::steal(PySeqIter_New(self.ptr()));
            },
            nb::sig("def __iter__(self) -> Iterator[Array]"));
}

}  // namespace weir::python
