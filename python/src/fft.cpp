// Discrete Fourier transforms.
#include "weir/fft.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "arrays.hpp"
#include "call_log.hpp"
#include "calls.hpp"
#include "devices.hpp"
#include "labelling.hpp"
#include "weir/array.hpp"
#include "weir/error.hpp"
#include "weir/launch.hpp"
#include "work.hpp"

namespace weir::python {

namespace {

namespace calls = weir::fft;

fft_norm norm_from(nb::handle argument) {
    if (argument.is_none()) {
        return fft_norm::backward;
    }
    const std::string_view name = text_from(argument, "norm", "\"backward\", \"ortho\" or \"forward\"");
    if (name == "backward") {
        return fft_norm::backward;
    }
    if (name == "ortho") {
        return fft_norm::ortho;
    }
    if (name == "forward") {
        return fft_norm::forward;
    }
    throw argument_error("norm is " + repr_of(argument) + ": pass \"backward\", \"ortho\" or \"forward\"");
}

/// What all transforms take, as Python gives it.
struct arguments {
    nb::handle n;
    nb::handle axis;
    nb::handle axes;
    nb::handle norm;
    nb::handle out;
    nb::handle execution;
    nb::handle blocking;
    nb::handle memory_limit;
    nb::handle stream;
};

calls::options options_from(const arguments& given) {
    calls::options how;
    if (!given.n.is_none()) {
        if (PySequence_Check(given.n.ptr()) != 0) {
            how.s = integers_from(given.n, "n");
        } else {
            how.n = integer_from(given.n, "n");
        }
    }
    if (!given.axes.is_none()) {
        how.axes = integers_from(given.axes, "axes");
        if (how.axes.empty()) {
            throw argument_error("axes is empty: name the axes to transform");
        }
    } else if (!given.axis.is_none()) {
        how.axis = integer_from(given.axis, "axis");
    }
    how.norm = norm_from(given.norm);
    how.execution = execution_from(given.execution);
    how.blocking = blocking_from(given.blocking);
    how.memory_limit = memory_limit_from(given.memory_limit);
    return how;
}

/// One of namespace fft.
struct transform {
    const char* name;
    array (*on_stream)(const on&, const array&, const calls::options&);
    array (*on_current)(const array&, const calls::options&, source_location);
    completion (*into)(const on&, const array&, array&, const calls::options&);
};

nb::object call(const transform& what, nb::handle a, const arguments& given) {
    const source_location where = here();
    calls::options how = options_from(given);
    const call_operand from(a, what.name, where);
    if (from.blocks()) {
        how.blocking = call_blocking::always;
    }
    if (!given.out.is_none() && !from.is_numpy()) {
        array out = from.target(given.out, where);
        const stream to = from.stream_for(how.execution, given.stream);
        if (from.overlaps(out)) {
            const stream copies = to.device() == out.device() ? to : current_in_context(out.device());
            waiting([&] {
                const array made = what.on_stream(on(to, where), from.get(), how);
                if (made.shape() != out.shape() || made.dtype() != out.dtype()) {
                    throw argument_error("out= is " + out.to_string() + ", and the result is " + made.to_string());
                }
                copy(on(copies, where), out, made);
            });
        } else {
            waiting([&] { what.into(on(to, where), from.get(), out, how); });
        }
        return nb::borrow(given.out);
    }
    if (!given.out.is_none()) {
        from.expect_target(given.out);
    }
    const bool on_current = given.stream.is_none() && from.is_weir();
    const std::optional<stream> to =
        on_current ? std::nullopt : std::optional(from.stream_for(how.execution, given.stream));
    array result = waiting(
        [&] { return to ? what.on_stream(on(*to, where), from.get(), how) : what.on_current(from.get(), how, where); });
    return from.result(std::move(result), given.out, where);
}

template <bool AllAxes>
void bind_transform(nb::module_& m, const transform& what, const char* doc) {
    const nb::object axis = AllAxes ? nb::object(nb::none()) : nb::object(nb::int_(-1));
    const std::string sig =
        std::string("def ") + what.name + "(a: Any, /, *, n: int | " + (AllAxes ? "Sequence[int] | " : "") +
        "None = None, axis: int" + (AllAxes ? " | None = None" : " = -1") +
        ", axes: Sequence[int] | None = None, norm: str | None = \"backward\", out: Any = None, "
        "execution: Device | str | None = None, blocking: bool | str = \"auto\", stream: Any = None, "
        "memory_limit: int | float | str = \"80%\", label: str | None = None) -> Any";
    m.def(
        what.name,
        [what](nb::handle a, nb::handle n, nb::handle axis_, nb::handle axes, nb::handle norm, nb::handle out,
               nb::handle execution, nb::handle blocking, nb::handle stream, nb::handle memory_limit,
               nb::handle label) {
            const logged_call logged("weir.fft", what.name);
            const labelled named(label);
            return call(what, a, {n, axis_, axes, norm, out, execution, blocking, memory_limit, stream});
        },
        nb::arg("a").none(), nb::kw_only(), nb::arg("n").none() = nb::none(), nb::arg("axis").none() = axis,
        nb::arg("axes").none() = nb::none(), nb::arg("norm").none() = "backward", nb::arg("out").none() = nb::none(),
        nb::arg("execution").none() = nb::none(), nb::arg("blocking").none() = "auto",
        nb::arg("stream").none() = nb::none(), nb::arg("memory_limit").none() = "80%",
        nb::arg("label").none() = nb::none(), nb::sig(sig.c_str()), doc);
}

fft_direction direction_from(nb::handle argument) {
    const std::string_view name = text_from(argument, "direction", "\"forward\" or \"inverse\"");
    if (name == "forward") {
        return fft_direction::forward;
    }
    if (name == "inverse") {
        return fft_direction::inverse;
    }
    throw argument_error("direction is " + repr_of(argument) + ": pass \"forward\" or \"inverse\"");
}

std::optional<fft_kind> kind_from(nb::handle argument) {
    if (argument.is_none()) {
        return std::nullopt;
    }
    const std::string_view name = text_from(argument, "kind", "\"c2c\", \"r2c\" or \"c2r\"");
    if (name == "c2c") {
        return fft_kind::complex_to_complex;
    }
    if (name == "r2c") {
        return fft_kind::real_to_complex;
    }
    if (name == "c2r") {
        return fft_kind::complex_to_real;
    }
    throw argument_error("kind is " + repr_of(argument) + ": pass \"c2c\", \"r2c\" or \"c2r\", or nothing");
}

/// "a weir.Array", "arrays of NumPy", "an array of torch".
std::string operands_of(const std::string& package, bool several) {
    if (package == "weir") {
        return several ? "weir.Array" : "a weir.Array";
    }
    return (several ? "arrays of " : "an array of ") + (package == "numpy" ? std::string("NumPy") : package);
}

/// A plan, with its operand as Python has it.
class py_fft {
public:
    py_fft(nb::handle a, const arguments& given, std::optional<fft_kind> kind)
        : how_(options_from(given)), kind_(kind), stream_(nb::borrow(given.stream)), where_(here()) {
        hold(a);
        if (operand_->blocks()) {
            how_.blocking = call_blocking::always;
        }
        if (!stream_.is_none()) {
            static_cast<void>(operand_->stream_for(how_.execution, stream_));  // refuses at once what is no stream
        }
        plan_.emplace(operand_->get(), how_, kind_);
        described_ = elements_in_words(operand_->get()) + " on " + operand_->get().device().name();
    }

    void plan(nb::handle on_, nb::handle label) {
        const logged_call logged("weir.fft", "FFT.plan");
        const labelled named(label);
        const one_at_a_time alone(mutex_);
        const source_location where = here();
        const std::optional<stream> to = chosen(on_, "plan()");
        waiting([&] { to ? alive().plan(on(*to, where)) : alive().plan(where); });
    }

    nb::object execute(nb::handle direction, nb::handle on_, nb::handle release_workspace_, nb::handle label) {
        const logged_call logged("weir.fft", "FFT.execute");
        const labelled named(label);
        const bool release_workspace = flag_from(release_workspace_, "release_workspace");
        const one_at_a_time alone(mutex_);
        const source_location where = here();
        const fft_direction which = direction_from(direction);
        const std::optional<stream> to = chosen(on_, "execute()");
        if (operand_ && operand_->is_numpy()) {  // as it is now, not as it was when it was given
            operand_->copy_again(where);
        }
        const fft_execution how{release_workspace};
        array result = waiting(
            [&] { return to ? alive().execute(on(*to, where), which, how) : alive().execute(which, how, where); });
        return operand_->result(std::move(result), nb::none(), where);
    }

    void reset_operand(nb::handle a, nb::handle on_) {
        const one_at_a_time alone(mutex_);
        static_cast<void>(alive());
        if (!on_.is_none()) {
            static_cast<void>(stream_from(on_));  // the elements are read by execute() alone, on its stream
        }
        const std::string was = package_;
        std::optional<call_operand> before = std::exchange(operand_, std::nullopt);
        try {
            hold(a);
            if (package_ != was) {
                throw argument_type_error("reset_operand() got " + operands_of(package_, false) +
                                          ", and the plan is for " + operands_of(was, true) + ": make another FFT" +
                                          (was == "weir" ? ", or pass weir.array(x)" : ""));
            }
            released([&] { plan_->reset_operand(operand_->get()); });
        } catch (...) {
            package_ = was;
            operand_ = std::move(before);
            throw;
        }
    }
    void release_operand() {
        const one_at_a_time alone(mutex_);
        released([&] { alive().release_operand(); });
        operand_.reset();
    }
    void free() noexcept {
        const one_at_a_time alone(mutex_);
        operand_.reset();
        if (plan_) {
            const nb::gil_scoped_release no_gil;
            plan_.reset();
        }
    }
    [[nodiscard]] std::size_t workspace_bytes() const noexcept {
        const one_at_a_time alone(mutex_);
        return plan_ ? plan_->workspace_bytes() : 0;
    }

    [[nodiscard]] std::string to_string() const {
        const one_at_a_time alone(mutex_);
        if (!plan_) {
            return "<weir.fft.FFT freed>";
        }
        return "<weir.fft.FFT of " + described_ + (operand_ ? ">" : ", released>");
    }

    [[nodiscard]] explanation explained() {
        const one_at_a_time alone(mutex_);
        const fft_plan& of = alive();
        return released([&] { return explain(of); });
    }

private:
    [[nodiscard]] fft_plan& alive() {
        if (!plan_) {
            throw state_error("the FFT is freed: make another one");
        }
        return *plan_;
    }
    void hold(nb::handle a) {
        operand_.emplace(a, "FFT", here());
        package_ = operand_->package();
    }
    /// The stream that the call names, else the one that the plan was made with; nothing: the current one.
    [[nodiscard]] std::optional<stream> chosen(nb::handle on_, const char* before) {
        static_cast<void>(alive());
        if (!operand_) {
            throw state_error(std::string("the FFT has no operand: call reset_operand(a) before ") + before);
        }
        const nb::handle named = on_.is_none() ? nb::handle(stream_) : on_;
        if (named.is_none() && operand_->is_weir()) {
            return std::nullopt;
        }
        return operand_->stream_for(how_.execution, named);
    }

    calls::options how_;
    std::optional<fft_kind> kind_;
    nb::object stream_;
    source_location where_;
    std::optional<call_operand> operand_;
    std::optional<fft_plan> plan_;
    std::string package_;
    std::string described_;  ///< the operand, for repr()
    mutable nb::ft_mutex mutex_;
};

void bind_plan(nb::module_& m) {
    nb::class_<py_fft>(
        m, "FFT", nb::is_weak_referenceable(),
        "A transform that is prepared once and executed often. Over all axes unless `axes` names some; of "
        "real elements it is\nrfftn, of complex ones fftn and ifftn (`kind`: \"r2c\", \"c2c\", or \"c2r\" "
        "for irfftn).\n\n"
        ">>> with weir.fft.FFT(a) as f:\n...     f.plan()\n...     b = f.execute()\n"
        "...     f.reset_operand(c)\n...     d = f.execute(stream=s)\n\n"
        "Streams may change from call to call without a word, and `a`, `b` and `c` may be dropped at once.")
        .def(
            "__init__",
            [](py_fft* self, nb::handle a, nb::handle axes, nb::handle norm, nb::handle execution, nb::handle blocking,
               nb::handle memory_limit, nb::handle stream, nb::handle n, nb::handle kind) {
                new (self) py_fft(a, {n, nb::none(), axes, norm, nb::none(), execution, blocking, memory_limit, stream},
                                  kind_from(kind));
            },
            nb::arg("a").none(), nb::kw_only(), nb::arg("axes").none() = nb::none(),
            nb::arg("norm").none() = "backward", nb::arg("execution").none() = nb::none(),
            nb::arg("blocking").none() = "auto", nb::arg("memory_limit").none() = "80%",
            nb::arg("stream").none() = nb::none(), nb::arg("n").none() = nb::none(),
            nb::arg("kind").none() = nb::none(),
            nb::sig(
                "def __init__(self, a: Any, /, *, axes: Sequence[int] | None = None, norm: str | None = \"backward\", "
                "execution: Device | str | None = None, blocking: bool | str = \"auto\", memory_limit: int | float | "
                "str = \"80%\", stream: Any = None, n: int | Sequence[int] | None = None, kind: str | None = None) -> "
                "None"),
            "Describes the transform and keeps `a`. `stream`: for the calls that are given none. Enqueues nothing.")
        .def("plan", &py_fft::plan, nb::kw_only(), nb::arg("stream").none() = nb::none(),
             nb::arg("label").none() = nb::none(),
             nb::sig("def plan(self, *, stream: Any = None, label: str | None = None) -> None"),
             "Prepares the transform. To be called before execute(); again is harmless.")
        .def("execute", &py_fft::execute, nb::kw_only(), nb::arg("direction").none() = "forward",
             nb::arg("stream").none() = nb::none(), nb::arg("release_workspace").none() = false,
             nb::arg("label").none() = nb::none(),
             nb::sig("def execute(self, *, direction: str = \"forward\", stream: Any = None, release_workspace: bool = "
                     "False, label: str | None = None) -> Any"),
             "Enqueues the transform of the operand as it is at this point of the stream, and returns the result in "
             "the operand's package (see weir.fft), for packages on the CPU once it is computed. `direction`: "
             "\"forward\" or \"inverse\". Raises StateError if it is not planned, released or freed.")
        .def("reset_operand", &py_fft::reset_operand, nb::arg("a").none(), nb::kw_only(),
             nb::arg("stream").none() = nb::none(),
             nb::sig("def reset_operand(self, a: Any, /, *, stream: Any = None) -> None"),
             "Holds another operand of the same package, shape, element type and device from now on.")
        .def("release_operand", &py_fft::release_operand,
             "Drops the operand and keeps the plan; pending transforms are not disturbed. May be called twice.")
        .def("__repr__", &py_fft::to_string)
        .def("_explain", &py_fft::explained, "For weir.explain.")
        .def("free", &py_fft::free,
             "Drops operand, plan and workspace; pending transforms are not disturbed. May be called twice.")
        .def_prop_ro("workspace_bytes", &py_fft::workspace_bytes, "Bytes of the workspace that the plan keeps.")
        .def(
            "__enter__", [](nb::handle self) { return nb::borrow(self); }, nb::sig("def __enter__(self) -> Self"))
        .def(
            "__exit__", [](py_fft& self, nb::args /*unused*/) { self.free(); },
            nb::sig("def __exit__(self, *exception: object) -> None"));
}

}  // namespace

#define WEIR_TRANSFORM(name) \
    { #name, calls::name, calls::name, calls::name }  // the overloads of one name

void bind_fft(nb::module_& parent) {
    nb::module_ m = parent.def_submodule("fft");
    bind_transform<false>(m, WEIR_TRANSFORM(fft), "The forward transform along one axis, as numpy.fft.fft.");
    bind_transform<false>(m, WEIR_TRANSFORM(ifft), "The inverse transform along one axis, as numpy.fft.ifft.");
    bind_transform<false>(m, WEIR_TRANSFORM(rfft), "The forward transform of real elements, as numpy.fft.rfft.");
    bind_transform<false>(m, WEIR_TRANSFORM(irfft), "The inverse of rfft, as numpy.fft.irfft.");
    bind_transform<true>(m, WEIR_TRANSFORM(fftn), "The forward transform over all axes, as numpy.fft.fftn.");
    bind_transform<true>(m, WEIR_TRANSFORM(ifftn), "The inverse transform over all axes, as numpy.fft.ifftn.");
    bind_transform<true>(m, WEIR_TRANSFORM(rfftn), "The forward transform of real elements over all axes.");
    bind_transform<true>(m, WEIR_TRANSFORM(irfftn), "The inverse of rfftn, as numpy.fft.irfftn.");
    bind_plan(m);
}

#undef WEIR_TRANSFORM

}  // namespace weir::python
