#include "accesses.hpp"

#include <string>

#include "events.hpp"
#include "weir/error.hpp"
#include "weir/launch.hpp"
#include "work.hpp"

namespace weir::python {

namespace {

template <class Operand>
void bind_use(nb::module_& m, operand_use use, const char* doc) {
    nb::class_<Operand, declared_use>(m, name_of(use), doc)
        .def(
            "__init__",
            [use](Operand* self, nb::handle x) {
                static_cast<void>(array_from(x, name_of(use)));
                new (self) Operand{{nb::borrow(x), use}};
            },
            nb::arg("x").none(), nb::sig("def __init__(self, x: Array, /) -> None"))
        .def("__repr__", [use](const Operand& self) {
            return std::string("weir.") + name_of(use) + "(" + nb::repr(self.of).c_str() + ")";
        });
}

completion completion_of(nb::handle one) {
    if (!nb::isinstance<py_event>(one)) {
        throw argument_type_error("after= got " + std::string(nb::repr(one).c_str()) +
                                  ": pass a weir.Event or a list of them, such as [stream.record()]");
    }
    return nb::cast<const py_event&>(one).recorded();
}

}  // namespace

const char* name_of(operand_use use) noexcept {
    switch (use) {
        case operand_use::in:
            return "In";
        case operand_use::out:
            return "Out";
        case operand_use::inout:
            break;
    }
    return "InOut";
}

nb::object operand_object(nb::handle of, operand_use use) {
    switch (use) {
        case operand_use::in:
            return nb::cast(py_in{{nb::borrow(of), use}});
        case operand_use::out:
            return nb::cast(py_out{{nb::borrow(of), use}});
        case operand_use::inout:
            break;
    }
    return nb::cast(py_inout{{nb::borrow(of), operand_use::inout}});
}

const array& array_from(nb::handle x, const char* what) {
    if (!nb::isinstance<array>(x)) {
        throw argument_type_error(std::string(what) + " got " + nb::repr(x).c_str() +
                                  ", which is no weir.Array: weir.array(x) makes one of a NumPy array or a list");
    }
    return nb::cast<const array&>(x);
}

runtime::access_request access_of(const array& x, operand_use use) {
    if (use != operand_use::in) {
        weir::detail::expect_own_elements(x);
    }
    return {x.buffer().resource(), x.footprint(),
            use == operand_use::in ? order::access_mode::read : order::access_mode::write, use == operand_use::out};
}

std::vector<completion> completions_from(nb::handle after) {
    std::vector<completion> all;
    if (after.is_none() || (PyTuple_Check(after.ptr()) != 0 && PyTuple_GET_SIZE(after.ptr()) == 0)) {
        return all;
    }
    if (nb::isinstance<py_event>(after)) {
        all.push_back(completion_of(after));
        return all;
    }
    if (!nb::hasattr(after, "__iter__")) {
        all.push_back(completion_of(after));  // says what is wrong
    }
    for (const nb::handle one : after) {
        all.push_back(completion_of(one));
    }
    return all;
}

void bind_accesses(nb::module_& m) {
    nb::class_<declared_use>(m, "_Declared")
        .def_prop_ro(
            "array", [](const declared_use& self) { return self.of; }, nb::sig("def array(self) -> Array"),
            "The array.");
    bind_use<py_in>(m, operand_use::in, "An operand that the operation only reads: `weir.host_task(f, weir.In(x))`.");
    bind_use<py_out>(m, operand_use::out,
                     "An operand of which the operation writes every element and reads none before.");
    bind_use<py_inout>(m, operand_use::inout, "An operand that the operation reads and writes.");
}

}  // namespace weir::python
