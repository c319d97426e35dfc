// Copies between arrays, of Weir's and of NumPy's, and between devices.
#include <optional>
#include <string>

#include "arithmetic.hpp"
#include "arrays.hpp"
#include "devices.hpp"
#include "interpreter.hpp"
#include "numpy.hpp"
#include "site.hpp"
#include "weir/detail/internal_memory.hpp"
#include "weir/error.hpp"
#include "weir/launch.hpp"

namespace weir::python {

namespace {

bool is_cpu(const device& one) { return one.kind() == device_kind::cpu || one.kind() == device_kind::cpu_inline; }

const array& expect_array(nb::handle x, const char* function) {
    if (!nb::isinstance<array>(x)) {
        throw argument_type_error(std::string(function) + "() got " + nb::repr(x).c_str() + ": pass a weir.Array");
    }
    return nb::cast<const array&>(x);
}

nb::object copy_to(nb::handle dst, nb::handle src, nb::handle on_stream) {
    const source_location where = here();
    const std::optional<stream> given = on_stream.is_none() ? std::nullopt : std::optional(stream_from(on_stream));
    if (numpy::is_array(dst)) {
        const array target = numpy::wrapped(dst, where);
        const device from = nb::isinstance<array>(src) ? nb::cast<const array&>(src).device() : cpu();
        const stream used = given ? *given : stream_between(cpu(), from);
        const completion done = assign(target, src, used, where);
        // NumPy has no streams: whoever reads the array next must find the elements.
        waiting([&] { done.synchronize(where); });
        return event_of(done, used);
    }
    const array& target = expect_array(dst, "copy");
    const device from = nb::isinstance<array>(src) ? nb::cast<const array&>(src).device() : target.device();
    const stream used = given ? *given : stream_between(target.device(), from);
    return event_of(assign(target, src, used, where), used);
}

nb::object fill_with(nb::handle x, nb::handle value, nb::handle on_stream) {
    const source_location where = here();
    const array& target = expect_array(x, "fill");
    if (PyList_Check(value.ptr()) != 0 || PyTuple_Check(value.ptr()) != 0) {
        throw argument_type_error("fill() got a list: pass a number, or call copy(x, values)");
    }
    const stream used = on_stream.is_none() ? stream_of(target) : stream_from(on_stream);
    return event_of(assign(target, value, used, where), used);
}

}  // namespace

stream stream_between(const device& to, const device& from) { return current_in_context(is_cpu(to) ? from : to); }

completion assign(const array& dst, nb::handle src, const std::optional<stream>& given, const source_location& where) {
    if (nb::isinstance<array>(src)) {
        const auto& source = nb::cast<const array&>(src);
        const stream used = given ? *given : stream_between(dst.device(), source.device());
        return released([&] { return copy(on(used, where).label("copy"), dst, source); });
    }
    const stream used = given ? *given : stream_of(dst);
    std::optional<scalar> number = number_from(src);
    if (!number && numpy::is_scalar(src)) {
        number = numpy::number(src);
    }
    if (number) {
        return released([&] { return fill(on(used, where).label("fill"), dst, *number); });
    }
    const bool reaches_one_side = used.device() == dst.device() || is_cpu(used.device());
    const array source =
        detail::internal(made_from(src, std::nullopt, reaches_one_side ? used : stream_of(dst), where));
    return released([&] { return copy(on(used, where).label("copy"), dst, source); });
}

void bind_transfers(nb::module_& m) {
    m.def(
        "copy", copy_to, nb::arg("dst").none(), nb::arg("src").none(), nb::kw_only(),
        nb::arg("stream").none() = nb::none(),
        nb::sig("def copy(dst: Any, src: Any, /, *, stream: Any = None) -> Event"),
        "Copies `src` to `dst`, as numpy.copyto does: arrays of Weir or of NumPy, of any strides, on any two devices. "
        "`src` is broadcast, and converted within the same kind of numbers or to a higher one. Without `stream` on the "
        "current stream of the device that is not the CPU. Returns once enqueued; an array of NumPy's is taken as it "
        "is "
        "at the call, and as `dst` it is written when the call returns.\n\n"
        ">>> x = weir.empty(4, device=\"sim:0\")\n>>> done = weir.copy(x, numpy.ones(4))\n");
    m.def("fill", fill_with, nb::arg("x").none(), nb::arg("value").none(), nb::kw_only(),
          nb::arg("stream").none() = nb::none(),
          nb::sig("def fill(x: Array, value: Any, /, *, stream: Any = None) -> Event"),
          "Sets every element of `x` to the number. Returns once enqueued, on the current stream if none is given.");
}

}  // namespace weir::python
