// What Weir knows of captures of CUDA graphs.
#include "weir/capture.hpp"

#include <string>

#include "interpreter.hpp"
#include "weir/error.hpp"
#include "work.hpp"

namespace weir::python {

void bind_captures(nb::module_& m) {
    m.def(
        "captures",
        [](nb::handle known) {
            const std::string text = nb::isinstance<nb::str>(known) ? nb::cast<std::string>(known) : std::string();
            if (text != "none" && text != "unknown") {
                const std::string given = repr_of(known);
                const std::string wanted =
                    " says nothing about captures: pass \"none\" (no capture of a CUDA graph runs in this process, "
                    "ever) or "
                    "\"unknown\"";
                if (nb::isinstance<nb::str>(known)) {
                    throw argument_error(given + wanted);
                }
                throw argument_type_error(given + wanted);
            }
            weir::captures(text == "none" ? capture_knowledge::none : capture_knowledge::unknown);
        },
        nb::arg("known").none(), nb::sig("def captures(known: typing.Literal['none', 'unknown'], /) -> None"),
        "Declares whether captures of CUDA graphs may be running in this process, in any library; \"unknown\" until "
        "a program says more. Where there is none, Weir learns by itself when memory is free that was handed to a "
        "library which does not "
        "say when it is done; otherwise such memory stays in quarantine until safe_point().");
    m.def(
        "safe_point", [] { waiting([] { weir::safe_point(); }); },
        "States that no capture of a CUDA graph runs at this moment: memory in quarantine comes back as soon as "
        "everything is "
        "over that is in the contexts of the CUDA devices in use. What consumers have released before the call comes "
        "back, too.");
}

}  // namespace weir::python
