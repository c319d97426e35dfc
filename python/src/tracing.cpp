// trace(), explain(), and the log of waits.
#include "checking.hpp"

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "events.hpp"
#include "interpreter.hpp"
#include "notes.hpp"
#include "weir/array.hpp"
#include "weir/error.hpp"
#include "weir/explain.hpp"
#include "weir/token.hpp"
#include "weir/trace.hpp"
#include "weir/wait_log.hpp"
#include "wording.hpp"
#include "wrong_calls.hpp"

namespace weir::python {

namespace {

/// A `with weir.trace(...)`.
class py_trace {
public:
    explicit py_trace(std::vector<std::filesystem::path> files) : files_(std::move(files)) {}

    void enter() {
        const one_at_a_time alone(mutex_);
        if (scope_) {
            throw state_error("this trace() was entered before: make another one for another `with`");
        }
        scope_ = released([&] { return std::make_unique<trace_scope>(files_); });
    }
    void exit() {
        const one_at_a_time alone(mutex_);
        if (!scope_) {
            throw state_error("this trace() was not entered: use it in a `with`");
        }
        released([&] { scope_->close(); });
    }
    [[nodiscard]] nb::dict summary() const {
        const one_at_a_time alone(mutex_);
        nb::dict all;
        const trace_summary numbers = scope_ ? released([&] { return scope_->summary(); }) : trace_summary();
        all["operations"] = numbers.operations;
        all["streams"] = numbers.streams;
        all["waits_issued"] = numbers.waits_issued;
        all["waits_elided"] = numbers.waits_elided;
        all["waits_minimal"] = numbers.waits_minimal;
        all["waits_for_memory"] = numbers.waits_for_memory;
        all["waits_for_packages"] = numbers.waits_for_packages;
        all["seconds"] = std::chrono::duration<double>(numbers.span).count();
        return all;
    }

private:
    std::vector<std::filesystem::path> files_;
    std::unique_ptr<trace_scope> scope_;
    mutable nb::ft_mutex mutex_;
};

std::filesystem::path path_from(nb::handle given) {
    PyObject* bytes = nullptr;
    if (PyUnicode_FSConverter(given.ptr(), &bytes) == 0) {
        PyErr_Clear();
        throw argument_type_error("trace() got " + repr_of(given) +
                                  ": pass a path that ends in .html, .json (Perfetto) or .weirlog, or a list of paths");
    }
    const nb::bytes path = nb::steal<nb::bytes>(bytes);
    return std::string(path.c_str(), path.size());
}

std::shared_ptr<py_trace> make_trace(nb::handle path) {
    std::vector<std::filesystem::path> files;
    if (nb::isinstance<nb::list>(path) || nb::isinstance<nb::tuple>(path)) {
        for (const nb::handle each : path) {
            files.push_back(path_from(each));
        }
    } else {
        files.push_back(path_from(path));
    }
    return std::make_shared<py_trace>(std::move(files));
}

explanation explain_anything(nb::handle what) {
    if (nb::isinstance<py_event>(what)) {
        return released([about = nb::cast<const py_event&>(what).get()] { return explain(about); });
    }
    if (nb::isinstance<array>(what)) {
        return released([about = nb::cast<const array&>(what)] { return explain(about); });
    }
    if (nb::isinstance<token>(what)) {
        return released([about = nb::cast<const token&>(what)] { return explain(about); });
    }
    if (nb::hasattr(what, "_explain")) {  // a plan
        return nb::cast<explanation>(what.attr("_explain")());
    }
    throw argument_type_error("explain() got " + repr_of(what) +
                              ": pass a weir.Array, a weir.Token, a weir.Event or a plan of a library call");
}

/// Reports waits to the logger "weir", or stops that.
void log_waits(bool on) {
    // Lives for ever: threads may run until the end of the process.
    static auto& log = *new std::unique_ptr<wait_log>;  // NOLINT(cppcoreguidelines-owning-memory)
    static nb::ft_mutex mutex;                          // guards log
    const one_at_a_time alone(mutex);
    if (on == (log != nullptr)) {
        return;
    }
    if (on) {
        log = std::make_unique<wait_log>([](const std::string& line) { notes::leave(note_kind::log, line); });
        notes::want(1);
    } else {
        log.reset();
        notes::want(-1);
    }
}

}  // namespace

void bind_tracing(nb::module_& m) {
    nb::class_<py_trace>(m, "_Trace", "What trace() gives: use it as `with weir.trace(...):`.")
        .def(
            "__enter__",
            [](nb::handle self) {
                nb::cast<py_trace&>(self).enter();
                return nb::borrow(self);
            },
            nb::sig("def __enter__(self) -> _Trace"))
        .def(
            "__exit__", [](py_trace& self, nb::args /*unused*/) { self.exit(); },
            nb::sig("def __exit__(self, *exception: object) -> None"))
        .def("summary", &py_trace::summary, nb::sig("def summary(self) -> dict[str, int | float]"),
             "Numbers of what was traced up to now: operations, streams, waits issued, elided, and the fewest that "
             "give the "
             "same order, seconds.");
    m.def(
        "trace", make_trace, nb::arg("path").none(),
        nb::sig("def trace(path: str | os.PathLike[str] | list[str | os.PathLike[str]], /) -> _Trace"),
        "Notes what Weir does in the whole process inside of the `with`, then writes it to files, by the names' "
        "endings: "
        ".html (a timeline, for any browser), .json (for Perfetto), .weirlog (the evidence log, for `weir verify`).\n\n"
        "Closing does not wait for devices: synchronize first.\n\n"
        ">>> with weir.trace([\"run.html\", \"run.weirlog\"]):\n"
        "...     run()\n"
        "...     weir.Device(\"cpu\").synchronize()\n");
    nb::class_<explanation> cls(m, "Explanation", "What explain() says. str() has all of it in words.");
    refuse_making(cls, "weir.Explanation is not made by programs: call weir.explain(x)")
        .def_ro("protocol", &explanation::protocol,
                "By which an array was exchanged with another package last; \"none\" if it was not.")
        .def_ro("went_out", &explanation::went_out, "Whether it went to the other package, and did not come from it.")
        .def_ro("copied", &explanation::copied, "Whether that took a copy.")
        .def_ro("host_blocked", &explanation::host_blocked, "Whether the host had to wait for that.")
        .def_ro("waits", &explanation::waits, "What is waited for on other streams, one line each.")
        .def_ro("phases", &explanation::phases,
                "Of a plan: which library does each phase, where, and whether the call blocks, one line each.")
        .def_ro(
            "shared_with", &explanation::shared_with,
            "Packages that share an array's memory now and how operations are ordered with them, one line each. None "
            "after asarray(x, exclusive=True).")
        .def_ro("pending", &explanation::pending, "Operations that are not over, one line each.")
        .def("__str__", [](const explanation& self) { return in_words_of_python(self.to_string()); })
        .def("__repr__",
             [](const explanation& self) { return "<weir.Explanation of " + in_words_of_python(self.subject) + ">"; });
    m.def("explain", explain_anything, nb::arg("x_or_event").none(),
          nb::sig("def explain(x_or_event: typing.Any, /) -> Explanation"),
          "The pending operations of an array, or what holds up an event, with labels, lines and streams, at this "
          "moment. "
          "Never blocks.");
    m.def("_log_waits", log_waits, nb::arg("on"));
}

}  // namespace weir::python
