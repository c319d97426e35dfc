// Streams: making, adopting, the current one.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "arguments.hpp"
#include "devices.hpp"
#include "events.hpp"
#include "interpreter.hpp"
#include "reference.hpp"
#include "scopes.hpp"
#include "site.hpp"
#include "weir/error.hpp"
#include "weir/event.hpp"
#include "weir/stream.hpp"
#include "wording.hpp"

namespace weir::python {

namespace {

/// The stream that an object of Python's is.
const stream& stream_in(nb::handle object) {
    const stream* const found = object_of<stream>(object);
    return found != nullptr ? *found : nb::cast<const stream&>(object);
}

/// The object of the stream that was current last, outside of all `with stream:`, so that the next query makes no object.
struct last_current {
    std::uint64_t id = 0;
    std::optional<reference> object;
};
last_current& last_of_thread() {
    thread_local last_current one;
    return one;
}

std::string repr(const stream& self) { return in_words_of_python(self.to_string()); }

stream make_stream(nb::handle on, nb::handle priority, nb::handle blocking, nb::handle name) {
    const device where = device_from(on);
    const stream_options options{.priority = int_from(priority, "priority"),
                                 .name = name.is_none() ? "" : std::string(text_from(name, "name", "a text, or None")),
                                 .blocking = flag_from(blocking, "blocking")};
    return released([&] { return stream(where, options); });
}

/// `what` is an event or a stream, of Weir or of another package.
void wait_for(const stream& self, nb::handle what) {
    const source_location where = here();
    if (what.is_none()) {
        throw argument_type_error("wait() got None: pass a weir.Event or a stream");
    }
    if (const py_event* const one = object_of<py_event>(what)) {
        const event awaited = one->get();
        released([&] { self.wait(awaited, where); });
    } else {
        const stream other = stream_from(what, std::nullopt);
        released([&] { self.wait(other, where); });
    }
}

nb::object record(const stream& self, nb::handle into, nb::handle timing_) {
    const source_location where = here();
    const bool timing = flag_from(timing_, "timing");
    if (into.is_none()) {
        return object_for({released([&] { return self.record({.timing = timing}, where); }), self.device()});
    }
    if (!nb::isinstance<py_event>(into)) {
        throw argument_type_error("record() got " + repr_of(into) + ": pass a weir.Event, or nothing");
    }
    auto& event = nb::cast<py_event&>(into);
    if (timing && !event.get().is_timed()) {
        throw argument_error(
            "record() got an event without timing, and timing=True: make it with weir.Event(timing=True), or "
            "leave the event out");
    }
    event.record(self, where);
    return nb::borrow(into);
}

void synchronize(const stream& self) {
    if (!self) {
        throw state_error(
            repr(self) +
            " is closed: synchronize before close(), or wait for an event that was recorded before, or for "
            "the stream's device; `done` still answers");
    }
    task_visit::expect_not_in(self.state(detail::key));
    waiting([&, where = here()] { self.synchronize(where); });
}

std::uintptr_t handle_of(const stream& self) {
    return reinterpret_cast<std::uintptr_t>(released([&] { return self.handle(); }));
}

/// The stream that is current on `on`: the object that was entered, if it is that. The thread follows its context already.
nb::object current_on(device on, scope_node innermost) {
    const stream_ref found = weir::detail::current_stream_ref(on);
    for (scope_node one = innermost.innermost(scope_kind::stream); one;
         one = one.outer().innermost(scope_kind::stream)) {
        if (stream_in(one.what()) == found) {
            return nb::borrow(one.what());
        }
    }
    last_current& last = last_of_thread();
    if (const std::uint64_t id = found.unique_id(); last.id != id) {
        last = {id, reference(nb::cast(current_stream(on)))};
    }
    return nb::borrow(last.object->get());
}

/// The device of the innermost `with stream:`, else the CPU.
device innermost_device(scope_node innermost) {
    const scope_node one = innermost.innermost(scope_kind::stream);
    return one ? stream_in(one.what()).device() : cpu();
}

nb::object current_of_innermost() {
    drain();
    const scope_node innermost = scopes::follow();
    return current_on(innermost_device(innermost), innermost);
}

nb::object current_of(nb::handle of) {
    if (of.is_none()) {
        return current_of_innermost();
    }
    const bool is_an_array = PyUnicode_Check(of.ptr()) == 0 && !nb::isinstance<device>(of) && nb::hasattr(of, "device");
    const device on = device_from(is_an_array ? nb::object(of.attr("device")) : nb::borrow(of));
    drain();
    return current_on(on, scopes::follow());
}

void enter(nb::handle self) {
    if (const stream& entered = stream_in(self); !entered) {
        static_cast<void>(use(entered));  // throws; a context's scope can be of a stream that was closed later
    }
    scopes::enter(self, scope_kind::stream);
}

void leave(nb::handle self) {
    if (!scopes::leave(self, scope_kind::stream)) {
        throw state_error(
            "a `with stream:` ends that is not the innermost one of its context (asyncio task, or thread outside of "
            "tasks): generators that are suspended inside of it end in another order; pass stream= to the calls there");
    }
}

void refuse_pickling(nb::handle self) {
    throw argument_type_error(
        repr_of(self) + " belongs to this process and cannot be pickled: make a new one there, on the same device");
}

}  // namespace

void scopes::hold_stream(nb::handle what, held& into) { into.emplace<weir::detail::resumed_use>(stream_in(what)); }

void forget_current_streams() noexcept {
    last_of_thread() = {};
    scopes::forget();
}

stream current_in_context(device on) {
    scopes::follow();
    return current_stream(on);
}

stream innermost_stream() { return current_stream(innermost_device(scopes::follow())); }

stream stream_from(nb::handle argument, std::optional<device> on) {
    if (argument.is_none()) {
        return on ? current_in_context(*on) : innermost_stream();
    }
    const stream* const own = object_of<stream>(argument);
    stream found = own != nullptr ? *own : adopt(argument, on, nb::none());
    if (!found) {
        throw state_error(repr(found) + " is closed: use another stream");
    }
    if (on && found.device() != *on) {
        throw argument_error(repr(found) + " is a stream of " + found.device().name() + ", and the call works on " +
                             on->name() + ": pass one of that device, such as weir.current_stream(\"" + on->name() +
                             "\")");
    }
    return found;
}

void bind_streams(nb::module_& m) {
    nb::class_<stream> cls(m, "Stream", nb::is_weak_referenceable(),
                           "An in-order queue of work that runs beside the other streams of its device.\n\n"
                           "`with s:` makes it the current stream of the calling context (asyncio task, or thread "
                           "outside of tasks), and restores what was\ncurrent before; nothing else. Dropping the last "
                           "reference closes it, which neither blocks nor cancels what is pending.\n\n"
                           ">>> s = weir.Stream(name=\"load\")\n"
                           ">>> with s:\n"
                           "...     x = weir.zeros(4)\n"
                           ">>> s.synchronize()\n");
    cls.def(
           "__init__",
           [](stream* self, nb::handle on, nb::handle priority, nb::handle blocking, nb::handle name) {
               new (self) stream(make_stream(on, priority, blocking, name));
           },
           nb::arg("device").none() = nb::none(), nb::kw_only(), nb::arg("priority").none() = 0,
           nb::arg("blocking").none() = false, nb::arg("name") = nb::none(),
           nb::sig("def __init__(self, device: Device | str | None = None, *, priority: int = 0, blocking: bool = "
                   "False, name: "
                   "str | None = None) -> None"),
           "A new stream. `priority`: smaller is more urgent, as in CUDA. `blocking`: on CUDA it is ordered with the "
           "legacy "
           "default stream; elsewhere that says nothing. `name` is for messages and timelines.")
        .def("record", record, nb::arg("event").none() = nb::none(), nb::kw_only(), nb::arg("timing").none() = false,
             nb::sig("def record(self, event: Event | None = None, *, timing: bool = False) -> Event"),
             "An event that holds the stream's tail at this moment; `event` itself, if one is given. Does not block.")
        .def("wait", wait_for, nb::arg("event_or_stream").none(),
             nb::sig("def wait(self, event_or_stream: Any, /) -> None"),
             "Device-side: what is enqueued from now on starts after the event, or after everything enqueued on the "
             "other "
             "stream up to now. Does not block the caller.")
        .def(
            "synchronize", synchronize,
            "Blocks until everything enqueued before the call is complete; Ctrl-C ends the wait. Raises OperationError "
            "if an operation failed and no call has reported it yet, StateError if the stream is closed.")
        .def_prop_ro(
            "done", [](const stream& self) { return released([&, where = here()] { return self.done(where); }); },
            "Whether everything enqueued is over. Never blocks.")
        .def_prop_ro(
            "handle", handle_of,
            "The driver's handle, such as a CUstream, as an integer; 0 where there is none. Reading it (as `handle`, "
            "`ptr`, `cuda_stream` or by `__cuda_stream__`) makes the stream a shared one for good: see `shared`. "
            "Blocks "
            "until what was enqueued before is in the driver's queue. Raises StateError if the stream is closed.")
        .def_prop_ro(
            "shared", &stream::shared,
            "Whether other code may put work into the stream that Weir does not see: the stream was adopted, or its "
            "handle was read. It stays so. Each operation of Weir in the stream then costs two calls of the driver "
            "more "
            "than its own: one asks whether the stream is being captured, one records an event behind the operation. "
            "`record`, `wait` for the stream and `synchronize` look up its end anew. To avoid that, read handles only "
            "of "
            "streams that you give to other code. Reading `shared` changes nothing.")
        .def_prop_ro("device", &stream::device, "The device whose queue it is.")
        .def_prop_ro("blocking", &stream::blocking,
                     "Whether CUDA orders it with the legacy default stream. Elsewhere as it was made.")
        .def_prop_ro("priority", &stream::priority, "As it was made: smaller is more urgent.")
        .def_prop_ro(
            "name", [](const stream& self) { return std::string(self.name()); }, "Its name for messages and timelines.")
        .def_prop_ro("unique_id", &stream::unique_id, "Unlike a handle, never used again for another stream.")
        .def(
            "close", &stream::close,
            "No more use: what would put work into the stream, wait for it, make it current or ask for its handle is a "
            "StateError from then on, through any reference. What is pending still runs: `done` and query() tell "
            "whether it is complete, and an event recorded before, or the device, can be waited for. The other "
            "attributes still answer. May be called twice, never blocks.")
        .def(
            "__cuda_stream__", [](const stream& self) { return nb::make_tuple(0, handle_of(self)); },
            nb::sig("def __cuda_stream__(self) -> tuple[int, int]"),
            "The protocol by which CUDA packages exchange streams. Makes the stream a shared one: see `shared`.")
        .def("__bool__", [](const stream& self) { return static_cast<bool>(self); })
        .def(
            "__enter__",
            [](nb::handle self) {
                enter(self);
                return nb::borrow(self);
            },
            nb::sig("def __enter__(self) -> Self"))
        .def(
            "__exit__", [](nb::handle self, nb::handle, nb::handle, nb::handle) { leave(self); }, nb::arg().none(),
            nb::arg().none(), nb::arg().none(), nb::sig("def __exit__(self, *exception: object) -> None"))
        .def(
            "__eq__",
            [](const stream& self, nb::handle other) {
                return nb::isinstance<stream>(other) && nb::cast<const stream&>(other) == self;
            },
            nb::arg("other").none())
        .def("__hash__", &stream::unique_id)
        .def("__repr__", repr)
        .def("__reduce__", refuse_pickling);
    cls.attr("record_event") = cls.attr("record");
    cls.attr("wait_event") = cls.attr("wait");
    cls.attr("wait_stream") = cls.attr("wait");
    cls.attr("sync") = cls.attr("synchronize");
    cls.attr("cuda_stream") = cls.attr("handle");
    cls.attr("ptr") = cls.attr("handle");
    cls.attr("destroy") = cls.attr("close");
    cls.def(
        "query", [](const stream& self) { return released([&, where = here()] { return self.done(where); }); },
        "The same as `done`.");

    nb::class_<device>(m.attr("Device"))
        .def(
            "create_stream",
            [](const device& self, nb::handle priority, nb::handle blocking, nb::handle name) {
                return make_stream(nb::cast(self), priority, blocking, name);
            },
            nb::kw_only(), nb::arg("priority").none() = 0, nb::arg("blocking").none() = false,
            nb::arg("name") = nb::none(), "A new stream of the device: see Stream.");
    m.def("create_stream", make_stream, nb::arg("device").none() = nb::none(), nb::kw_only(),
          nb::arg("priority").none() = 0, nb::arg("blocking").none() = false, nb::arg("name") = nb::none(),
          nb::sig("def create_stream(device: Device | str | None = None, *, priority: int = 0, blocking: bool = False, "
                  "name: str | "
                  "None = None) -> Stream"),
          "The same as Stream(...).");
    // The overload that is used more often comes first.
    m.def("current_stream", current_of, nb::arg("device_or_array").none(),
          nb::sig("def current_stream(device_or_array: Any, /) -> Stream"));
    m.def("current_stream", current_of_innermost, nb::sig("def current_stream() -> Stream"),
          "The current stream of a device, or of an array's device, in the calling context (asyncio task, or thread "
          "outside of tasks): that of the innermost `with stream:`, "
          "else the device's default stream, which all share. Without an argument: of the device of the "
          "innermost "
          "`with stream:`, else of the CPU.");
    m.def(
        "adopt",
        [](nb::handle argument, nb::handle on, nb::handle owner) {
            return adopt(argument, on.is_none() ? std::nullopt : std::optional(device_from(on)), owner);
        },
        nb::arg("stream").none(), nb::kw_only(), nb::arg("device").none() = nb::none(),
        nb::arg("owner").none() = nb::none(),
        nb::sig("def adopt(stream: Any, /, *, device: Device | str | None = None, owner: object = None) -> Stream"),
        "The stream of another package as one of Weir: an object with `__cuda_stream__` (torch, CuPy, cuda.core), a "
        "stream of "
        "Numba, or an integer handle (0 and 1: the legacy default stream, 2: the calling thread's). The object, or "
        "`owner`, is kept "
        "as long as the stream has users or pending work. Weir never ends it.");
}

}  // namespace weir::python
