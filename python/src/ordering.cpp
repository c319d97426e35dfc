// ordering() and set_ordering(): whether Weir or the program orders operations (rule O5).
#include "checking.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "devices.hpp"
#include "interpreter.hpp"
#include "scopes.hpp"
#include "weir/array.hpp"
#include "weir/error.hpp"
#include "weir/ordering.hpp"
#include "weir/stats.hpp"

namespace weir::python {

namespace {

ordering_mode mode_from(nb::handle name) {
    const std::optional<std::string_view> text = text_in(name);
    if (text == "auto") {
        return ordering_mode::automatic;
    }
    if (text == "manual") {
        return ordering_mode::manual;
    }
    const std::string wanted =
        " is no mode of ordering: pass \"auto\" (Weir inserts the waits that are missing) or \"manual\" "
        "(the program orders its operations itself)";
    if (!nb::isinstance<nb::str>(name)) {
        throw argument_type_error(repr_of(name) + wanted);
    }
    throw argument_error("\"" + (text ? std::string(*text) : repr_of(name)) + "\"" + wanted);
}

/// A `with weir.ordering(...)`: of the calling context, or of one stream, one array, or both.
class ordering_context {
public:
    ordering_context(ordering_mode mode, std::optional<stream> on, std::optional<array> of)
        : mode_(mode), stream_(std::move(on)), array_(std::move(of)) {}

    void enter(nb::handle self) {
        const one_at_a_time alone(mutex_);
        if (is_entered_) {
            throw state_error("this ordering() is entered already: make another one for another `with`");
        }
        if (stream_) {
            stream_before_ = stream_->ordering();
            stream_->set_ordering(mode_);
        }
        if (array_) {
            array_before_ = array_->buffer().ordering();
            array_->set_ordering(mode_);
        }
        if (is_of_context()) {
            scopes::enter(self, scope_kind::ordering);
        }
        is_entered_ = true;
    }

    void exit(nb::handle self) {
        const one_at_a_time alone(mutex_);
        if (!is_entered_) {
            throw state_error("this ordering() is not entered: use it as `with weir.ordering(...):`");
        }
        if (is_of_context() && !scopes::leave(self, scope_kind::ordering)) {
            throw state_error(
                "an ordering() ends that is not the innermost one of its context (asyncio task, or thread outside of "
                "tasks): end it where it began; generators that are suspended inside of it end in another order: pass "
                "stream= or array= to ordering() there");
        }
        if (stream_) {
            stream_->set_ordering(stream_before_);
        }
        if (array_) {
            array_->set_ordering(array_before_);
        }
        is_entered_ = false;
    }

    [[nodiscard]] ordering_mode mode() const noexcept { return mode_; }

private:
    [[nodiscard]] bool is_of_context() const noexcept { return !stream_ && !array_; }

    ordering_mode mode_;
    std::optional<stream> stream_;
    std::optional<array> array_;
    std::optional<ordering_mode> stream_before_;
    std::optional<ordering_mode> array_before_;
    bool is_entered_ = false;
    nb::ft_mutex mutex_;
};

array array_from(nb::handle given) {
    if (!nb::isinstance<array>(given)) {
        throw argument_type_error("ordering(array=) got " + std::string(nb::repr(given).c_str()) +
                                  ": pass a weir.Array");
    }
    return nb::cast<array>(given);
}

std::shared_ptr<ordering_context> ordering(nb::handle mode, nb::handle on, nb::handle of) {
    return std::make_shared<ordering_context>(
        mode_from(mode), on.is_none() ? std::nullopt : std::optional(stream_from(on, std::nullopt)),
        of.is_none() ? std::nullopt : std::optional(array_from(of)));
}

}  // namespace

void scopes::hold_ordering(nb::handle what, held& into) {
    into.emplace<ordering_scope>(nb::cast<const ordering_context&>(what).mode());
}

void bind_ordering(nb::module_& m) {
    nb::class_<ordering_context>(m, "_Ordering", "What ordering() gives: use it as `with weir.ordering(...):`.")
        .def(
            "__enter__", [](nb::handle self) { nb::cast<ordering_context&>(self).enter(self); },
            nb::sig("def __enter__(self) -> None"))
        .def(
            "__exit__", [](nb::handle self, nb::args /*unused*/) { nb::cast<ordering_context&>(self).exit(self); },
            nb::sig("def __exit__(self, *exception: object) -> None"));
    m.def(
        "ordering", ordering, nb::arg("mode").none(), nb::kw_only(), nb::arg("stream").none() = nb::none(),
        nb::arg("array").none() = nb::none(),
        nb::sig(
            "def ordering(mode: typing.Literal['auto', 'manual'], /, *, stream: typing.Any = None, array: typing.Any = "
            "None) -> _Ordering"),
        "Who orders operations inside of the `with`: \"auto\", Weir inserts the device-side waits that are missing; "
        "\"manual\", the program does, by its own events.\n\n"
        "It holds for the calling context (asyncio task, or thread outside of tasks), or with `stream=` or `array=` "
        "for "
        "that one, everywhere. The innermost wins: "
        "array, stream, context, process. Memory is protected in both.\n\n"
        ">>> with weir.ordering(\"manual\"):\n"
        "...     x += 1  # waits are up to you here\n");
    m.def(
        "set_ordering", [](nb::handle mode) { weir::set_ordering(mode_from(mode)); }, nb::arg("mode").none(),
        nb::sig("def set_ordering(mode: typing.Literal['auto', 'manual'], /) -> None"),
        "Sets who orders operations in the whole process, where no array, stream or ordering() says otherwise. "
        "\"auto\" at "
        "first.");
    m.def(
        "stats",
        [] {
            const ordering_statistics now = released([] { return weir::stats(); });
            nb::dict counts;
            counts["operations"] = now.operations;
            counts["waits_issued"] = now.waits_issued;
            counts["waits_elided"] = now.waits_elided;
            counts["late_waits"] = now.late_waits;
            counts["driver_events"] = now.driver_events;
            return counts;
        },
        nb::sig("def stats() -> dict[str, int]"),
        "What the process has enqueued so far, and what its order has cost. \"operations\": what was put into streams, "
        "including what stands there for waits that the program asked for. \"waits_issued\": device-side waits of one "
        "stream for another that were put into streams. \"waits_elided\": such waits that were needed and left out, "
        "since something implied them. \"late_waits\": device-side waits that covered later operations, too, since the "
        "driver's event stands behind these (at most the first wait for a stream is such a one). \"driver_events\": "
        "events of a device's driver that were made; they are used again.\n\n"
        ">>> sorted(weir.stats())\n"
        "['driver_events', 'late_waits', 'operations', 'waits_elided', 'waits_issued']\n");
}

}  // namespace weir::python
