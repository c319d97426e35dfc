#include "call_log.hpp"

#include <chrono>
#include <exception>

namespace weir::python {

void logged_call::say() const noexcept {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began_;
    const bool is_failing = std::uncaught_exceptions() > 0;
    try {
        nb::module_::import_("weir._logging").attr("said_of_call")(module_, name_, took.count(), is_failing);
    } catch (nb::python_error& of_handler) {
        of_handler.discard_as_unraisable("a handler of the logger \"weir\"");
    }
}

void bind_call_log(nb::module_& m) { m.def("_log_calls", &logged_call::enable, nb::arg("on")); }

}  // namespace weir::python
