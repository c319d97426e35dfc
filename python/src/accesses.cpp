#include "accesses.hpp"

#include <string>

#include "events.hpp"
#include "exchange.hpp"
#include "site.hpp"
#include "weir/error.hpp"
#include "weir/launch.hpp"
#include "weir/token.hpp"
#include "work.hpp"

namespace weir::python {

namespace {

bool is_token(nb::handle x) { return nb::isinstance<token>(x); }

template <class Operand>
void bind_use(nb::module_& m, operand_use use, const char* doc) {
    nb::class_<Operand, declared_use>(m, name_of(use), doc)
        .def(
            "__init__",
            [use](Operand* self, nb::handle x) {
                new (self) Operand{{is_token(x) ? nb::borrow(x) : shared_array_for(name_of(use), x, here()), use}};
            },
            nb::arg("x").none(), nb::sig("def __init__(self, x: Any, /) -> None"))
        .def("__repr__",
             [use](const Operand& self) { return std::string("weir.") + name_of(use) + "(" + repr_of(self.of) + ")"; });
}

completion completion_of(nb::handle one) {
    if (!nb::isinstance<py_event>(one)) {
        throw argument_type_error("after= got " + repr_of(one) +
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
        throw argument_type_error(std::string(what) + " got " + repr_of(x) +
                                  ", which is no weir.Array: weir.array(x) makes one of a NumPy array or a list");
    }
    return nb::cast<const array&>(x);
}

runtime::access_request access_of(const array& x, operand_use use) {
    if (use != operand_use::in) {
        weir::detail::expect_own_elements(x);
    }
    return {x.buffer().resource(detail::key), x.used(detail::key),
            use == operand_use::in ? order::access_mode::read : order::access_mode::write, use == operand_use::out};
}

runtime::access_request access_of(nb::handle operand, operand_use use) {
    if (!is_token(operand)) {
        return access_of(nb::cast<const array&>(operand), use);
    }
    runtime::resource& of = nb::cast<const token&>(operand).expect_resource(detail::key);
    return {&of,
            {0, 1},
            use == operand_use::in ? order::access_mode::read : order::access_mode::write,
            use == operand_use::out};
}

std::vector<nb::object> listed_operands(nb::handle list, const char* name, const source_location& where) {
    std::vector<nb::object> all;
    if (list.is_none()) {
        return all;
    }
    const auto operand = [&](nb::handle one) {
        return is_token(one) ? nb::borrow(one) : shared_array_for(name, one, where);
    };
    nb::object single = is_token(list) ? nb::borrow(list) : shared_array(list, where);
    if (single.is_valid() || !nb::hasattr(list, "__iter__")) {
        all.push_back(single.is_valid() ? std::move(single) : operand(list));
        return all;
    }
    for (const nb::handle one : list) {
        all.push_back(operand(one));
    }
    return all;
}

bool is_watched(nb::handle of) noexcept {
#ifdef Py_GIL_DISABLED
    return true;  // another thread may be making a weak reference
#else
    return !is_exactly<array>(of) || *PyObject_GET_WEAKREFS_LISTPTR(of.ptr()) != nullptr;
#endif
}

bool contains(const std::vector<nb::object>& list, nb::handle one) {
    for (const nb::object& each : list) {
        if (each.is(one)) {
            return true;
        }
    }
    return false;
}

operand_use use_of(nb::handle x, const std::vector<nb::object>& reads, const std::vector<nb::object>& writes) {
    return contains(reads, x) && !contains(writes, x) ? operand_use::in : operand_use::inout;
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
            "array", [](const declared_use& self) { return self.of; }, nb::sig("def array(self) -> Array | Token"),
            "The array, or the token.");
    bind_use<py_in>(m, operand_use::in, "An operand that the operation only reads: `weir.host_task(f, weir.In(x))`.");
    bind_use<py_out>(m, operand_use::out,
                     "An operand of which the operation writes every element and reads none before.");
    bind_use<py_inout>(m, operand_use::inout, "An operand that the operation reads and writes.");
}

std::vector<nb::object> accesses_besides(nb::handle reads, nb::handle writes, std::vector<runtime::access_request>& to,
                                         const source_location& where) {
    const std::vector<nb::object> read = listed_operands(reads, "reads=", where);
    const std::vector<nb::object> written = listed_operands(writes, "writes=", where);
    std::vector<nb::object> all;
    for (const std::vector<nb::object>* const list : {&read, &written}) {
        for (const nb::object& one : *list) {
            if (!contains(all, one)) {
                to.push_back(access_of(one, use_of(one, read, written)));
                all.push_back(one);
            }
        }
    }
    return all;
}

}  // namespace weir::python
