#include "events.hpp"

#include "bind.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "accesses.hpp"
#include "arguments.hpp"
#include "devices.hpp"
#include "interpreter.hpp"
#include "reference.hpp"
#include "site.hpp"
#include "weir/array.hpp"
#include "weir/detail/interruption.hpp"
#include "weir/error.hpp"
#include "weir/launch.hpp"
#include "wording.hpp"

namespace weir::python {

namespace {

void synchronize(const py_event& self) {
    waiting([what = self.get(), where = here()] { what.wait(where); });
}

/// The number of seconds after which a deadline is no deadline: what the clock cannot hold.
constexpr double no_deadline = 1e9;

/// Whether the event was over within this time.
bool is_over_within(const py_event& self, nb::handle timeout) {
    const double seconds = number_from(timeout, "timeout");
    if (!(seconds >= 0)) {
        throw argument_error("timeout is " + repr_of(timeout) + ": pass seconds, from 0 on, or None");
    }
    if (seconds >= no_deadline) {
        synchronize(self);
        return true;
    }
    using weir::detail::interruptible;
    const auto deadline = std::chrono::steady_clock::now() +
                          std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds));
    return waiting([what = self.get(), where = here(), deadline] {
        if (std::chrono::steady_clock::now() >= deadline && !what.done(where)) {
            return false;
        }
        const interruptible until(check_signals, deadline);
        try {
            what.wait(where);
        } catch (const interruptible::deadline_passed&) {
            return false;
        }
        return true;
    });
}

nb::object wait(const py_event& self, nb::handle by, nb::handle timeout) {
    if (by.is_none()) {
        if (timeout.is_none()) {
            synchronize(self);
            return nb::bool_(true);
        }
        return nb::bool_(is_over_within(self, timeout));
    }
    if (!timeout.is_none()) {
        throw argument_error(
            "wait() got a stream and timeout=: a stream waits as long as it takes; leave one of them out");
    }
    const stream waiter = stream_from(by, std::nullopt);
    released([&, what = self.get(), where = here()] { what.wait(waiter, where); });
    return nb::none();
}

bool is_done(const py_event& self) {
    return released([what = self.get(), where = here()] { return what.done(where); });
}

/// Objects as an event keeps them: of an array its memory. If it kept the Python object, the program's own end of it would show only if
/// the event is over by then, and what check reports about it would depend on timing.
struct kept_objects {
    std::vector<array> arrays;
    nb::list others;

    /// `depth`: how deep lists and tuples are followed.
    void add(nb::handle one, int depth) {
        if (depth > 0 && (PyList_CheckExact(one.ptr()) || PyTuple_CheckExact(one.ptr()))) {
            for (const nb::handle each : nb::tuple(nb::borrow(one))) {
                add(each, depth - 1);
            }
            return;
        }
        const array* const x = object_of<array>(one);
        if (x != nullptr) {
            arrays.push_back(*x);
        }
        if (x == nullptr || is_watched(one)) {
            others.append(one);
        }
    }
};

void keep(const event& after, nb::handle objects) {
    kept_objects kept;
    kept.add(objects, 2);
    reference others{std::move(kept.others)};
    released([&] { keep_alive(after, std::move(kept.arrays), std::move(others)); });
}

std::uintptr_t handle_of(const py_event& self) {
    return reinterpret_cast<std::uintptr_t>(released([what = self.get()] { return what.handle(); }));
}

py_event make_event(nb::handle on, nb::handle timing) { return {device_from(on), flag_from(timing, "timing")}; }

const py_event& event_from(nb::handle argument, const char* name) {
    const py_event* const one = object_of<py_event>(argument);
    if (one == nullptr) {
        refuse_type(argument, name, "a weir.Event, such as stream.record()");
    }
    return *one;
}

}  // namespace

py_event::py_event(completion end, device on) : end_(std::move(end)), device_(on) {
#ifdef Py_GIL_DISABLED
    made();  // now, while no other thread has the object: later there is no GIL that would protect it
#endif
}

void py_event::expect_open() const {
    if (!is_open()) {
        throw state_error("the event is closed: record a new one");
    }
}

const event& py_event::made() const {
    if (!event_) {
        event_.emplace(end_);
    }
    return *event_;
}

const event& py_event::get() const {
    expect_open();
    return made();
}

completion py_event::recorded() const {
    expect_open();
    return event_ ? event_->recorded() : end_;
}

void py_event::record(const stream& on, const source_location& where) {
    event recorded = get();
    released([&] { recorded.record(on, where); });
    std::atomic_ref(device_).store(on.device(), std::memory_order_relaxed);
}

std::string py_event::to_string() const {
    return is_open() ? in_words_of_python(made().to_string()) : "<weir.Event closed>";
}

namespace {

/// The event object that this thread was given last.
constinit thread_local reference* last_of_thread = nullptr;

void forget() noexcept {
    delete std::exchange(last_of_thread, nullptr);  // NOLINT(cppcoreguidelines-owning-memory): its thread's
}

[[maybe_unused]] void remember(nb::object fresh) {
    struct end_of_thread {
        ~end_of_thread() { forget(); }
    };
    if (last_of_thread != nullptr) {
        last_of_thread->replace(std::move(fresh));
        return;
    }
    [[maybe_unused]] thread_local const end_of_thread end;
    last_of_thread = new reference(std::move(fresh));  // NOLINT(cppcoreguidelines-owning-memory): its thread's
}

/// Whether `last_of_thread` has the only reference to the object, weak references included.
[[maybe_unused]] bool is_forgotten(PyObject* object) noexcept {
    return Py_REFCNT(object) == 1 && *PyObject_GET_WEAKREFS_LISTPTR(object) == nullptr;
}

}  // namespace

nb::object object_for(py_event made) {
#ifdef Py_GIL_DISABLED
    return new_object<py_event>(
        std::move(made));  // without a GIL a reference count does not say that the object is unused
#else
    const reference* const last = last_of_thread;
    if (last != nullptr && is_forgotten(last->get().ptr())) {
        *nb::inst_ptr<py_event>(last->get()) = std::move(made);
        return nb::borrow(last->get());
    }
    nb::object fresh = new_object<py_event>(std::move(made));
    remember(fresh);
    return fresh;
#endif
}

void forget_last_event() noexcept { forget(); }

void bind_events(nb::module_& m) {
    nb::class_<py_event> cls(m, "Event", nb::is_weak_referenceable(),
                             "A moment in a stream. Waiting for one that was never recorded is no wait.\n\n"
                             ">>> s = weir.Stream()\n>>> e = s.record()\n>>> weir.Stream().wait(e)   # device-side\n"
                             ">>> e.wait()                  # blocks this thread\nTrue\n");
    cls.def(
           "__init__",
           [](py_event* self, nb::handle on, nb::handle timing) { new (self) py_event(make_event(on, timing)); },
           nb::arg("device").none() = nb::none(), nb::kw_only(), nb::arg("timing").none() = false,
           nb::sig("def __init__(self, device: Device | str | None = None, *, timing: bool = False) -> None"),
           "An event that is not recorded yet. `timing`: its records note the device's time, for elapsed_time.")
        .def(
            "record", [](py_event& self, nb::handle on) { self.record(stream_from(on, std::nullopt), here()); },
            nb::arg("stream").none() = nb::none(), nb::sig("def record(self, stream: Any = None) -> None"),
            "Holds from now on the tail of the stream (the current one) at this moment, whatever it held before.")
        .def("wait", wait, nb::arg("stream").none() = nb::none(), nb::kw_only(), nb::arg("timeout").none() = nb::none(),
             nb::sig("def wait(self, stream: Any = None, *, timeout: float | None = None) -> bool | None"),
             "Without a stream it blocks the calling thread until the recorded moment is over, at most `timeout` "
             "seconds, "
             "and returns whether it is over, as threading.Event.wait does; Ctrl-C ends the wait. With a stream it is "
             "device-side, and returns None at once: what is enqueued there from now on starts after the event. Raises "
             "OperationError if the operation failed.")
        .def("synchronize", synchronize, "The same as wait() without a stream.")
        .def_prop_ro("done", is_done, "Whether the recorded moment is over. Never blocks.")
        .def("query", is_done, "The same as `done`.")
        .def_prop_ro("device", &py_event::where, "The device of the stream it was recorded on, or is to be.")
        .def_prop_ro(
            "timing", [](const py_event& self) { return self.get().is_timed(); }, "Whether it was made with timing.")
        .def(
            "elapsed_time",
            [](const py_event& self, nb::handle end) { return self.get().elapsed_ms(event_from(end, "end").get()); },
            nb::arg("end").none(), nb::sig("def elapsed_time(self, end: Event) -> float"),
            "The milliseconds from the moment recorded here to the one in `end`, by the device's clock. Both must be "
            "timed, "
            "recorded and over: else StateError.")
        .def(
            "keeps",
            [](nb::handle self, nb::args objects) {
                keep(nb::cast<const py_event&>(self).get(), objects);
                return nb::borrow(self);
            },
            nb::sig("def keeps(self, *objects: object) -> Self"),
            "Keeps the objects alive until the recorded moment is over, then lets go of them once. Returns the event.")
        .def_prop_ro(
            "handle", handle_of,
            "On CUDA the driver's event, a CUevent, as an integer: for others to wait for or to ask, not to record. It "
            "is made when it is first asked for, so that it may be over a little later, and is good until this event "
            "is recorded again, closed or gone. Blocks while the work waits for another device; Ctrl-C ends that. 0 on "
            "other devices, and if nothing was recorded.")
        .def("close", &py_event::close, "Any later use is a StateError. What was told to wait for it still does.")
        .def("destroy", &py_event::close, "The same as close().")
        .def("__bool__", &py_event::is_open)
        .def(
            "__enter__",
            [](nb::handle self) {
                static_cast<void>(nb::cast<const py_event&>(self).get());  // throws if it is closed
                return nb::borrow(self);
            },
            nb::sig("def __enter__(self) -> Self"))
        .def(
            "__exit__", [](py_event& self, nb::args /*unused*/) { self.close(); },
            nb::sig("def __exit__(self, *exception: object) -> None"))
        .def(
            "__await__",
            [](nb::handle self) {
                return nb::module_::import_("weir._asyncio").attr("wait")(self).attr("__await__")();
            },
            nb::sig("def __await__(self) -> Generator[Any, None, None]"),
            "Lets the event loop go on until the recorded moment is over. Raises OperationError if the operation "
            "failed.")
        .def(
            "__eq__",
            [](const py_event& self, nb::handle other) {
                return nb::isinstance<py_event>(other) && nb::cast<const py_event&>(other).is_same(self);
            },
            nb::arg("other").none())
        .def("__hash__", &py_event::unique_id)
        .def("__repr__", &py_event::to_string)
        .def("__reduce__", [](const py_event& self) {
            throw argument_type_error(self.to_string() +
                                      " belongs to this process and cannot be pickled: wait for it here");
        });
    m.def("create_event", make_event, nb::arg("device").none() = nb::none(), nb::kw_only(),
          nb::arg("timing").none() = false,
          nb::sig("def create_event(device: Device | str | None = None, *, timing: bool = False) -> Event"),
          "The same as Event(...).");
    m.def(
        "keep_alive", [](nb::handle objects, nb::handle after) { keep(event_from(after, "after").get(), objects); },
        nb::arg("objects").none(), nb::kw_only(), nb::arg("after").none(),
        nb::sig("def keep_alive(objects: object, /, *, after: Event) -> None"),
        "Keeps `objects` (one object, or a list or tuple of them) alive until the event is over, then lets go of them "
        "once. "
        "Does not block.");
}

}  // namespace weir::python
