// Uses of an array's memory by work that Weir cannot see: used_on and pin (rule X7).
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "arguments.hpp"
#include "arrays.hpp"
#include "devices.hpp"
#include "events.hpp"
#include "interpreter.hpp"
#include "reference.hpp"
#include "site.hpp"
#include "weir/error.hpp"
#include "weir/event.hpp"
#include "weir/native_event.hpp"
#include "weir/pin.hpp"
#include "weir/sharing.hpp"

namespace weir::python {

namespace {

/// The driver's handle of an event of another package: of torch, CuPy, Numba or cuda.core. Nothing for what is no event.
std::optional<std::uintptr_t> event_handle_of(nb::handle argument) {
    const auto number = [&](const char* name) -> std::optional<std::uintptr_t> {
        nb::object found(argument.attr(name));
        if (nb::hasattr(found, "value")) {  // of ctypes, as Numba has it
            found = found.attr("value");
        }
        const nb::object index = nb::steal(PyNumber_Index(found.ptr()));
        if (!index.is_valid()) {
            PyErr_Clear();
            return std::nullopt;
        }
        const unsigned long long value = PyLong_AsUnsignedLongLong(index.ptr());
        if (PyErr_Occurred() != nullptr) {
            PyErr_Clear();
            return std::nullopt;
        }
        return static_cast<std::uintptr_t>(value);
    };
    if (nb::hasattr(argument, "cuda_event")) {
        return number("cuda_event");
    }
    const std::string name = nb::inst_name(argument).c_str();
    if (name.size() < 5 || name.compare(name.size() - 5, 5, "Event") != 0) {
        return std::nullopt;
    }
    for (const char* const attribute : {"ptr", "handle"}) {
        if (nb::hasattr(argument, attribute)) {
            return number(attribute);
        }
    }
    return std::nullopt;
}

void used_on_anything(const array& self, nb::handle by, nb::handle exclusively) {
    const source_location where = here();
    const bool exclusive = flag_from(exclusively, "exclusive");
    self.expect_usable(detail::key);
    const buffer& memory = self.buffer();
    if (by.is_none()) {
        throw argument_type_error(
            "used_on() got None: pass the stream that the memory was used on, or an event that was "
            "recorded after the use");
    }
    if (const py_event* const own = object_of<py_event>(by)) {
        released([&, upto = own->get()] { used_on(memory, upto); });
    } else if (const std::optional<std::uintptr_t> handle = event_handle_of(by)) {
        if (*handle == 0) {
            throw argument_error("used_on() got an event that was never recorded: record it after the use");
        }
        // The event goes with its object.
        auto owner = std::make_shared<reference>(nb::borrow(by));
        released([&] {
            exchange::used_up_to(memory, reinterpret_cast<void*>(*handle),  // NOLINT(performance-no-int-to-ptr)
                                 self.device(), package_use::writes, std::move(owner), where);
        });
    } else {
        const std::optional<device> on =
            self.device().kind() == device_kind::cuda ? std::optional(self.device()) : std::nullopt;
        const stream theirs = stream_from(by, object_of<stream>(by) != nullptr ? std::nullopt : on);
        released([&] { used_on(memory, theirs, package_use::writes, where); });
    }
    if (exclusive) {
        released([&] { end_exports(memory); });
    }
}

exchange::pin pinned(const array& self) {
    self.expect_usable(detail::key);
    return released([&] { return exchange::pin(self.buffer()); });
}

}  // namespace

void bind_foreign_use(nb::module_& m, nb::class_<array>& cls) {
    nb::class_<exchange::pin>(m, "_Pin", "What Array.pin() gives: memory that stays reserved until release().")
        .def(
            "release", [](exchange::pin& self) { released([&] { self.release(); }); },
            nb::sig("def release(self) -> None"),
            "No further work of others uses the memory: it may be used for something else once what they have enqueued "
            "by now is over. Doing it twice changes nothing.")
        .def(
            "__enter__", [](nb::handle self) { return nb::borrow(self); }, nb::sig("def __enter__(self) -> _Pin"))
        .def(
            "__exit__", [](exchange::pin& self, const nb::args& /*unused*/) { released([&] { self.release(); }); },
            nb::sig("def __exit__(self, *exception: object) -> None"))
        .def_prop_ro(
            "released", [](const exchange::pin& self) { return !self; }, nb::sig("def released(self) -> bool"),
            "Whether release() was called.");
    cls.def("used_on", used_on_anything, nb::arg("stream_or_event").none(), nb::kw_only(),
            nb::arg("exclusive").none() = false,
            nb::sig("def used_on(self, stream_or_event: Any, *, exclusive: bool = False) -> None"),
            "Another package has used the memory up to now on a stream that Weir does not know of, or up to an event "
            "that "
            "was recorded after the use: what is enqueued through Weir later, or gets the memory later, comes after. "
            "Takes "
            "streams and events of Weir, torch, CuPy, Numba and cuda.core, and handles of streams.\n\n"
            "`exclusive=True` adds that consumers used it there alone, and use it no more: operations are no longer "
            "ordered "
            "with their current streams, and the memory need not go through quarantine when it is dropped.\n\n"
            "Does not block. Raises ArgumentError, ArgumentTypeError, DeviceError.\n\n"
            ">>> x = weir.zeros(3)\n>>> s = weir.Stream()\n>>> x.used_on(s)\n")
        .def("pin", pinned, nb::sig("def pin(self) -> _Pin"),
             "Keeps the memory reserved, even if all arrays in it are dropped, until `release()` of what this gives, "
             "or the "
             "end of a `with` of it: for work that is enqueued where Weir cannot see it, such as replays of a CUDA "
             "graph that "
             "another package captured. It orders nothing: see used_on. Dropping the result releases nothing.\n\n"
             ">>> with weir.zeros(3).pin() as held:\n...     held.released\nFalse\n");
}

}  // namespace weir::python
