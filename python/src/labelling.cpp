#include "labelling.hpp"

#include <string>

#include "arguments.hpp"
#include "reference.hpp"
#include "scopes.hpp"
#include "site.hpp"
#include "weir/error.hpp"

namespace weir::python {

namespace {

/// The text of a label, at an address that stays.
const char* label_from(nb::handle argument) {
    const std::string_view text = text_from(argument, "label", "a text, which names the operations");
    if (text.empty()) {
        throw argument_error("label is '': pass a text, which names the operations");
    }
    return interned(text);
}

/// A `with weir.label(...)`. It has no state, so that one may be entered any number of times.
class label_context {
public:
    explicit label_context(const char* text) noexcept : text_(text) {}

    [[nodiscard]] const char* text() const noexcept { return text_; }

private:
    const char* text_;  ///< lives for ever
};

void leave(nb::handle self) {
    if (!scopes::leave(self, scope_kind::label)) {
        throw state_error(
            "a weir.label ends that is not the innermost one of its context (asyncio task, or thread outside of "
            "tasks): "
            "leave labels where they were entered, innermost first; generators that are suspended inside of one end in "
            "another order: pass label= to the calls there");
    }
}

}  // namespace

void labelled::begin(nb::handle label) {
    const char* const text = label_from(label);
    // The scopes of the context first: a call that began them later would end this label before them.
    drain();
    scopes::follow();
    scope_.emplace(text);
}

const char* current_label() {
    scopes::follow();
    return weir::detail::label_scope::current();
}

void scopes::hold_label(nb::handle what, held& into) {
    into.emplace<weir::detail::label_scope>(nb::cast<const label_context&>(what).text());
}

void bind_labelling(nb::module_& m) {
    nb::class_<label_context>(
        m, "label",
        "Names the operations that are enqueued inside of the `with`: in errors, weir.check, weir.trace, weir.explain "
        "and NVIDIA's profilers they have this label instead of their own, such as \"add\" or the name of a kernel.\n\n"
        "It holds for the calling context (asyncio task, or thread outside of tasks), also for the steps of library "
        "calls. The innermost label names an operation; `label=` of a call comes before all of them. Each different "
        "text is kept until the process ends.\n\n"
        ">>> x = weir.zeros(4)\n>>> with weir.label(\"window\"):\n...     x *= 2\n"
        ">>> done = weir.fill(x, 1, label=\"reset\")\n")
        .def(
            "__init__", [](label_context* self, nb::handle text) { new (self) label_context(label_from(text)); },
            nb::arg("text").none(), nb::sig("def __init__(self, text: str, /) -> None"))
        .def(
            "__enter__", [](nb::handle self) { scopes::enter(self, scope_kind::label); },
            nb::sig("def __enter__(self) -> None"))
        .def(
            "__exit__", [](nb::handle self, nb::args /*unused*/) { leave(self); },
            nb::sig("def __exit__(self, *exception: object) -> None"))
        .def("__repr__",
             [](const label_context& self) { return "<weir.label " + repr_of(nb::str(self.text())) + ">"; });
}

}  // namespace weir::python
