// Operands without memory.
#include "weir/token.hpp"

#include <cstdint>
#include <string>

#include "arguments.hpp"
#include "site.hpp"
#include "weir/error.hpp"
#include "work.hpp"

namespace weir::python {

namespace {

std::string in_words(const token& self) {
    const std::string name = self.name();
    return name.empty() ? "<weir.Token #" + std::to_string(self.unique_id()) + ">" : "<weir.Token \"" + name + "\">";
}

/// Operators, which say that there is nothing to compute with: Python's own message names types alone.
void refuse_arithmetic(nb::class_<token>& cls) {
    for (const char* const name :
         {"add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor"}) {
        for (const char* const side : {"__", "__r"}) {
            const std::string method = side + std::string(name) + "__";
            const std::string signature = "def " + method + "(self, other: object, /) -> NoReturn";
            cls.def(
                method.c_str(),
                [](const token& self, nb::handle /*other*/) {
                    throw argument_type_error(in_words(self) +
                                              " is a token, which has no elements to compute with: pass an array or a "
                                              "number");
                },
                nb::arg("other").none(), nb::sig(signature.c_str()));
        }
    }
    cls.attr("__array_ufunc__") = nb::none();  // NumPy's arrays leave it to the methods above
}

}  // namespace

void bind_tokens(nb::module_& m) {
    nb::class_<token> cls(
        m, "Token", nb::is_weak_referenceable(),
        "An operand without memory, for what operations share and no array stands for: a communicator, a file, a slot "
        "of a pool,\na queue that lives on the device (rule K5). Operations declare it as they declare arrays, and it "
        "is ordered, checked and\nexplained like one: what reads it runs side by side, what writes it comes one after "
        "the other, on whatever device.\n\n"
        "`weir.host_task(f, reads=t)`, or `writes=t`; so in `Kernel.launch`; `weir.In(t)`, `Out(t)` and `InOut(t)` as "
        "arguments of\na host task, which gets the token itself; `weir.borrow(t)`.\n\n"
        ">>> file = weir.Token(\"results.bin\")\n"
        ">>> lines = []\n"
        ">>> a, b = weir.Stream(), weir.Stream()\n"
        ">>> e = weir.host_task(lines.append, \"first\", writes=file, stream=a)\n"
        ">>> e = weir.host_task(lines.append, \"second\", writes=file, stream=b)\n"
        ">>> e.wait()\nTrue\n"
        ">>> lines\n['first', 'second']\n");
    cls.def(
           "__init__",
           [](token* self, nb::handle name) {
               new (self)
                   token(name.is_none() ? std::string() : std::string(text_from(name, "name", "a text, for reports")),
                         here());
           },
           nb::arg("name").none() = nb::none(), nb::sig("def __init__(self, name: str | None = None) -> None"),
           "Reports and messages call it by `name`, which need not be unique; without one they give its number.")
        .def_prop_ro(
            "name",
            [](const token& self) -> nb::object {
                const std::string name = self.name();
                return name.empty() ? nb::object(nb::none()) : nb::object(nb::str(name.c_str(), name.size()));
            },
            nb::sig("def name(self) -> str | None"), "As it was given.")
        .def("__repr__", in_words)
        .def(
            "__array__",
            [](const token& self, nb::args /*unused*/, nb::kwargs /*unused*/) {
                throw argument_type_error(in_words(self) + " is a token, which has no elements to make an array of");
            },
            nb::sig("def __array__(self, *args: object, **kwargs: object) -> NoReturn"));
    refuse_arithmetic(cls);
}

}  // namespace weir::python
