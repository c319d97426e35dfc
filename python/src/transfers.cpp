// Copies between arrays, of Weir's and of NumPy's, and between devices.
#include <optional>
#include <string>

#include "arithmetic.hpp"
#include "arrays.hpp"
#include "devices.hpp"
#include "exchange.hpp"
#include "interpreter.hpp"
#include "labelling.hpp"
#include "numpy.hpp"
#include "site.hpp"
#include "weir/detail/internal_memory.hpp"
#include "weir/error.hpp"
#include "weir/launch.hpp"

namespace weir::python {

namespace {

bool is_cpu(const device& one) { return one.kind() == device_kind::cpu || one.kind() == device_kind::cpu_inline; }

nb::object copy_to(nb::handle dst, nb::handle src, nb::handle on_stream, nb::handle label) {
    const labelled named(label);
    const source_location where = here();
    const std::optional<stream> given = on_stream.is_none() ? std::nullopt : std::optional(stream_from(on_stream));
    if (numpy::is_array(dst)) {
        array target = numpy::wrapped(dst, where);
        const device from = nb::isinstance<array>(src) ? nb::cast<const array&>(src).device() : cpu();
        const stream used = given ? *given : stream_between(cpu(), from);
        const completion done = assign(target, src, used, where);
        // NumPy has no streams: code that reads the array next must find the elements.
        waiting([&] { done.synchronize(where); });
        return event_of(done, used);
    }
    const nb::object shared = shared_array_for("copy()", dst, where);
    auto& target = nb::cast<array&>(shared);
    const device from = nb::isinstance<array>(src) ? nb::cast<const array&>(src).device() : target.device();
    const stream used = given ? *given : stream_between(target.device(), from);
    return event_of(assign(target, src, used, where), used);
}

nb::object fill_with(nb::handle x, nb::handle value, nb::handle on_stream, nb::handle label) {
    const labelled named(label);
    const source_location where = here();
    const nb::object shared = shared_array_for("fill()", x, where);
    auto& target = nb::cast<array&>(shared);
    if (PyList_Check(value.ptr()) != 0 || PyTuple_Check(value.ptr()) != 0) {
        throw argument_type_error("fill() got a list: pass a number, or call copy(x, values)");
    }
    const stream used = on_stream.is_none() ? stream_of(target) : stream_from(on_stream);
    return event_of(assign(target, value, used, where), used);
}

}  // namespace

namespace {

bool holds_integers(dtype type) noexcept { return has_arithmetic(type) && !is_inexact(type); }

}  // namespace

stream stream_between(const device& to, const device& from) { return current_in_context(is_cpu(to) ? from : to); }

completion assign(array& dst, nb::handle src, const std::optional<stream>& given, const source_location& where) {
    if (nb::isinstance<array>(src)) {
        const auto& source = nb::cast<const array&>(src);
        const stream used = given ? *given : stream_between(dst.device(), source.device());
        return released([&] { return copy(on(used, where).label("copy"), dst, source); });
    }
    const stream used = given ? *given : stream_of(dst);
    std::optional<scalar> number = number_from(src, is_inexact(dst.dtype()));
    if (!number && numpy::is_scalar(src)) {
        number = numpy::number(src);
    }
    if (number) {
        return released([&] { return fill(on(used, where).label("fill"), dst, *number); });
    }
    if (!numpy::is_array(src)) {
        if (const nb::object shared = readable_array(src, where); shared.is_valid()) {
            const auto& source = nb::cast<const array&>(shared);
            return released([&] { return copy(on(used, where).label("copy"), dst, source); });
        }
    }
    const bool reaches_one_side = used.device() == dst.device() || is_cpu(used.device());
    const stream at = reaches_one_side ? used : stream_of(dst);
    // Numbers of Python have no type: their values have to fit.
    const bool is_list = PyList_Check(src.ptr()) != 0 || PyTuple_Check(src.ptr()) != 0 || PyRange_Check(src.ptr()) != 0;
    array source =
        made_from(src, is_list && is_inexact(dst.dtype()) ? std::optional(dst.dtype()) : std::nullopt, at, where);
    if (is_list && holds_integers(dst.dtype()) && source.dtype() != dst.dtype() &&
        (holds_integers(source.dtype()) || source.size() == 0)) {
        source = made_from(src, dst.dtype(), at, where);
    }
    source = detail::internal(std::move(source));
    return released([&] { return copy(on(used, where).label("copy"), dst, source); });
}

void bind_transfers(nb::module_& m) {
    m.def(
        "copy", copy_to, nb::arg("dst").none(), nb::arg("src").none(), nb::kw_only(),
        nb::arg("stream").none() = nb::none(), nb::arg("label").none() = nb::none(),
        nb::sig("def copy(dst: Any, src: Any, /, *, stream: Any = None, label: str | None = None) -> Event"),
        "Copies `src` to `dst`, as numpy.copyto does: arrays of Weir, NumPy, torch, CuPy and others, of any strides, "
        "on "
        "any two devices. "
        "`src` is broadcast, and converted within the same kind of numbers or to a higher one. Without `stream` on the "
        "current stream of the device that is not the CPU. Returns once enqueued; an array of NumPy's is taken as it "
        "is "
        "at the call, and as `dst` it is written when the call returns. `label`: "
        "the operation's name in errors, reports and timelines.\n\n"
        ">>> x = weir.empty(4, device=\"sim:0\")\n>>> done = weir.copy(x, numpy.ones(4))\n");
    m.def("fill", fill_with, nb::arg("x").none(), nb::arg("value").none(), nb::kw_only(),
          nb::arg("stream").none() = nb::none(), nb::arg("label").none() = nb::none(),
          nb::sig("def fill(x: Any, value: Any, /, *, stream: Any = None, label: str | None = None) -> Event"),
          "Sets every element of `x` to the number. Returns once enqueued, on the current stream if none is given. "
          "`label`: the operation's name in errors, reports and timelines.");
}

}  // namespace weir::python
