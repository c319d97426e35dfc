// Calls whose arguments fit no parameters: the words for them.
#pragma once

#include "bind.hpp"

#include "weir/error.hpp"

namespace weir::python {

/// Has every function, method and constructor of the module and its submodules raise ArgumentTypeError, in the words that NumPy uses,
/// where nanobind would raise a TypeError that lists signatures. Call it when all of them are bound. A call that succeeds pays for one
/// more call of a function.
void explain_wrong_calls(nanobind::module_& m);

/// For classes whose objects a program gets from elsewhere: their constructor refuses all arguments with this message.
template <class Class>
Class& refuse_making(Class& cls, const char* message) {
    cls.def(
        "__init__",
        [message](nanobind::handle /*self*/, nanobind::args /*unused*/, nanobind::kwargs /*unused*/) {
            throw argument_type_error(message);
        },
        nanobind::sig("def __init__(self, *args: Never) -> None"));
    return cls;
}

}  // namespace weir::python
