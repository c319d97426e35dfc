// check(): the race detector.
#include "checking.hpp"

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "interpreter.hpp"
#include "notes.hpp"
#include "reference.hpp"
#include "site.hpp"
#include "weir/check.hpp"
#include "weir/error.hpp"
#include "wrong_calls.hpp"

namespace weir::python {

namespace {

PyObject* warning_class = nullptr;

/// weir::report, and the scope that it comes from while that is active.
class py_report {
public:
    explicit py_report(check_options options) : options_(std::move(options)) {}
    ~py_report() {
        if (scope_) {
            scope_.reset();
            notes::want(-1);
        }
    }
    py_report(const py_report&) = delete;
    py_report& operator=(const py_report&) = delete;

    void enter() {
        const one_at_a_time alone(mutex_);
        if (scope_ || is_over_) {
            throw state_error("this check() was entered before: make another one for another `with`");
        }
        keeps_stacks_.emplace();
        notes::want(1);
        scope_ = std::make_unique<check_scope>(options_);
    }
    /// `fails`: an exception leaves the `with`. It is not replaced.
    void exit(bool fails) {
        drain();  // what waits for the GIL is dropped within the scope
        const note_taking notes;
        {
            const one_at_a_time alone(mutex_);
            if (!scope_) {
                throw state_error(is_over_ ? "this check() has ended before"
                                           : "this check() was not entered: use it in a `with`");
            }
            try {
                end();
            } catch (const race_error&) {
                if (!fails) {
                    throw;
                }
            }
        }
        if (!fails) {
            notes.say();  // else its destructor does it
        }
    }
    [[nodiscard]] report get() const {
        const one_at_a_time alone(mutex_);
        return scope_ ? scope_->report() : found_;
    }

private:
    /// Throws race_error, and has ended the scope then.
    void end() {
        const std::unique_ptr<check_scope> scope = std::move(scope_);
        is_over_ = true;
        const auto finish = [&] {
            found_ = scope->report();
            keeps_stacks_.reset();
            notes::want(-1);
        };
        try {
            scope->end();
        } catch (...) {
            finish();
            throw;
        }
        finish();
    }

    check_options options_;
    std::optional<stack_keeping> keeps_stacks_;
    std::unique_ptr<check_scope> scope_;
    report found_;
    bool is_over_ = false;
    mutable nb::ft_mutex mutex_;
};

constexpr const char* modes =
    "\"collect\" (a report), \"warn\" (and a weir.RaceWarning for each race) or \"raise\" (weir.RaceError from the "
    "call "
    "that completes a race)";
constexpr const char* assumptions =
    "\"manual\" (as if Weir inserted no waits), or None (what the active mode cannot order)";

check_mode mode_from(std::string_view name) {
    if (name == "collect") {
        return check_mode::collect;
    }
    if (name == "warn") {
        return check_mode::warn;
    }
    if (name == "raise") {
        return check_mode::raise;
    }
    throw argument_error("check() got mode=\"" + std::string(name) + "\": pass " + modes);
}

std::shared_ptr<py_report> make_check(nb::handle mode, nb::handle assume) {
    if (!assume.is_none()) {
        const std::string_view what = text_from(assume, "assume", assumptions);
        if (what != "manual") {
            throw argument_error("check() got assume=\"" + std::string(what) + "\": pass " + assumptions);
        }
    }
    check_options options{mode_from(text_from(mode, "mode", modes)), !assume.is_none(), {}};
    if (options.mode == check_mode::warn) {
        options.warn = [](const std::string& text) { notes::leave(note_kind::warning, text); };
    }
    return std::make_shared<py_report>(std::move(options));
}

using frame = std::tuple<std::string, std::uint32_t, std::string>;

std::vector<frame> stack_of(const race_access& access) {
    std::vector<frame> all;
    for (const source_location& each : kept_stack(access.where)) {
        all.emplace_back(each.file, each.line, each.function);
    }
    if (all.empty()) {
        all.emplace_back(access.file, access.line, access.function);
    }
    return all;
}

std::string place(const race_access& access) { return access.file + ":" + std::to_string(access.line); }

std::string in_words(const race_access& access) {
    const char* const deed = access.is_drop ? "drops " : access.mode == access_mode::write ? "writes " : "reads ";
    return std::string(deed) + access.array + " on " + access.stream + ", " + place(access);
}

void bind_race(nb::module_& m) {
    nb::class_<race_access> access(m, "Access", "One of the two accesses of a Race.");
    refuse_making(access, "weir.Access is not made by programs: a weir.Race has two, `first` and `second`")
        .def_ro("file", &race_access::file, "The source file of the call that enqueued it.")
        .def_ro("line", &race_access::line, "The line there.")
        .def_ro("function", &race_access::function, "The function that the call stands in.")
        .def_ro("stream", &race_access::stream, "The stream's name; \"host\" for an access of the host's.")
        .def_ro("label", &race_access::label, "The operation's label; empty if it has none.")
        .def_ro("array", &race_access::array, "The memory in words: its number, size and where it was allocated.")
        .def_ro("is_drop", &race_access::is_drop,
                "It is no operation but the end of the memory: the place is that of the allocation then.")
        .def_prop_ro(
            "mode", [](const race_access& self) { return self.mode == access_mode::write ? "write" : "read"; },
            nb::sig("def mode(self) -> typing.Literal['read', 'write']"), "Whether it reads or writes.")
        .def_prop_ro(
            "range", [](const race_access& self) { return std::pair(self.range.begin, self.range.end); },
            "The bytes of the memory, from the first to behind the last.")
        .def_prop_ro("stack", stack_of, nb::sig("def stack(self) -> list[tuple[str, int, str]]"),
                     "The calls that led there, (file, line, function) for each, the innermost first.")
        .def("__repr__", [](const race_access& self) { return "<weir.Access " + in_words(self) + ">"; });
    nb::class_<race> cls(m, "Race",
                         "Two accesses to the same bytes, at least one a write, that nothing in the program orders.");
    refuse_making(cls, "weir.Race is not made by programs: weir.check() reports them")
        .def_ro(
            "kind", &race::kind,
            "\"RAW\", \"WAR\", \"WAW\" (read after write and so on, as enqueued), \"use-after-free\", \"early-reuse\", "
            "\"host\", \"stale-event\", \"default-stream\", \"exchange\": the most specific that fits.")
        .def_ro("certainty", &race::certainty, "\"definite\": the same bytes; \"possible\": that is hard to see.")
        .def_ro("first", &race::first, "The access that was enqueued first.")
        .def_ro("second", &race::second, "The other one.")
        .def_ro("reason", &race::reason,
                "Of a stale event: which wait took which record; of a default stream: which one; otherwise empty.")
        .def_ro("mend", &race::mend, "Code that adds what is missing, streams called by their names.")
        .def_ro("times", &race::times, "How often accesses of these two lines raced.")
        .def("__repr__",
             [](const race& self) {
                 return "<weir.Race " + self.kind + " " + place(self.first) + " " + place(self.second) + ">";
             })
        .def("__str__", [](const race& self) { return report({self}, {}).to_string(); });
}

}  // namespace

PyObject* race_warning() noexcept { return warning_class; }

void bind_checking(nb::module_& m) {
    warning_class = PyErr_NewExceptionWithDoc("weir.RaceWarning", "`check` in its mode \"warn\" found a race.",
                                              PyExc_UserWarning, nullptr);
    if (warning_class == nullptr) {
        nb::raise_python_error();
    }
    m.attr("RaceWarning") = nb::borrow(warning_class);
    bind_race(m);
    nb::class_<py_report> cls(
        m, "Report", nb::is_weak_referenceable(),
        "What a check() found up to now, or up to its end: a sequence of Race, one for each pair of source "
        "lines. str() tells people what raced, why it matters, what to add where.");
    refuse_making(cls, "weir.Report is not made by programs: call weir.check()")
        .def(
            "__enter__",
            [](nb::handle self) {
                nb::cast<py_report&>(self).enter();
                return nb::borrow(self);
            },
            nb::sig("def __enter__(self) -> Report"))
        .def(
            "__exit__",
            [](py_report& self, nb::args exception) { self.exit(exception.size() != 0 && !exception[0].is_none()); },
            nb::sig("def __exit__(self, *exception: object) -> None"))
        .def_prop_ro(
            "races", [](const py_report& self) { return self.get().races(); }, nb::sig("def races(self) -> list[Race]"),
            "In the order in which they were found.")
        .def_prop_ro(
            "unseen", [](const py_report& self) { return self.get().unseen(); },
            "What could not be seen, in words. Where this is not empty, silence proves less.")
        .def("__len__", [](const py_report& self) { return self.get().size(); })
        .def(
            "__iter__", [](const py_report& self) { return nb::iter(nb::cast(self.get().races())); },
            nb::sig("def __iter__(self) -> typing.Iterator[Race]"))
        .def(
            "__getitem__",
            [](const py_report& self, nb::handle index) { return nb::object(nb::cast(self.get().races())[index]); },
            nb::arg("index"), nb::sig("def __getitem__(self, index: int, /) -> Race"))
        .def(
            "to_json", [](const py_report& self) { return self.get().to_json(); },
            "For programs: {\"races\": [...], \"unseen\": [...]}.")
        .def(
            "to_sarif", [](const py_report& self) { return self.get().to_sarif(); },
            "For code review and editors: SARIF 2.1.0.")
        .def("__str__", [](const py_report& self) { return self.get().to_string(); })
        .def("__repr__",
             [](const py_report& self) { return "<weir.Report of " + std::to_string(self.get().size()) + " races>"; });
    m.def(
        "check", make_check, nb::kw_only(), nb::arg("mode").none() = "collect", nb::arg("assume").none() = nb::none(),
        nb::sig("def check(*, mode: typing.Literal['collect', 'warn', 'raise'] = 'collect', assume: "
                "typing.Literal['manual'] | None = None) -> Report"),
        "Watches the whole process inside of the `with`, keeps it safe, and reports each pair of conflicting "
        "accesses that "
        "the program's own ordering leaves unordered; with assume=\"manual\" as if Weir inserted no waits.\n\n"
        ">>> with weir.check(assume=\"manual\") as report:\n"
        "...     run()\n"
        ">>> print(report)\nweir check: no races found\n<BLANKLINE>\n\n"
        "mode \"warn\" gives a weir.RaceWarning, too, from the line that completes a race; \"raise\" a "
        "weir.RaceError there: its operation is enqueued, safely, so do not call again. A drop of memory has no line: "
        "its race is told by a later call of the thread, at the latest at the end of the `with`, and nothing is told "
        "afterwards. At its end a RaceError does not replace another exception.");
}

}  // namespace weir::python
