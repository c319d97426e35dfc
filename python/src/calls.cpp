#include "calls.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "arrays.hpp"
#include "exchange.hpp"
#include "numpy.hpp"
#include "packages.hpp"
#include "weir/error.hpp"
#include "weir/sharing.hpp"

namespace weir::python {

namespace {

/// Where a call computes: as execution_target says.
device computing_device(const execution_target& execution, const device& its, nb::handle on) {
    if (const device* const named = std::get_if<device>(&execution)) {
        return *named;
    }
    const device_kind* const kind = std::get_if<device_kind>(&execution);
    if (kind == nullptr || *kind == its.kind()) {
        return its;
    }
    if (nb::isinstance<stream>(on) && nb::cast<const stream&>(on).device().kind() == *kind) {
        return nb::cast<const stream&>(on).device();
    }
    switch (*kind) {
        case device_kind::cuda:
            return released([] { return cuda(); });
        case device_kind::sim:
            return sim();
        case device_kind::cpu:
        case device_kind::cpu_inline:
        case device_kind::registered:
            break;
    }
    return cpu();
}

/// The addresses between which an array's elements lie.
std::pair<std::uintptr_t, std::uintptr_t> bytes_of(const array& x) noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(x.device_data());
    std::int64_t below = 0;
    auto above = static_cast<std::int64_t>(size_of(x.dtype()));
    for (std::size_t axis = 0; axis < x.shape().dimensions(); ++axis) {
        const std::int64_t stride = x.strides()[axis];
        (stride < 0 ? below : above) += (x.shape()[axis] - 1) * stride;
    }
    return {at - static_cast<std::uintptr_t>(-below), at + static_cast<std::uintptr_t>(above)};
}

}  // namespace

execution_target execution_from(nb::handle argument) {
    if (argument.is_none()) {
        return {};
    }
    if (const std::optional<std::string_view> name = text_in(argument)) {
        if (name == "cpu") {
            return device_kind::cpu;
        }
        if (name == "cuda") {
            return device_kind::cuda;
        }
        if (name == "sim") {
            return device_kind::sim;
        }
    }
    return device_from(argument);
}

call_blocking blocking_from(nb::handle argument) {
    if (argument.is(Py_True)) {
        return call_blocking::always;
    }
    if (text_in(argument) == "auto") {
        return call_blocking::automatic;
    }
    throw argument_error("blocking is " + repr_of(argument) + ": pass \"auto\" or True");
}

memory_limit memory_limit_from(nb::handle argument) {
    if (const std::optional<std::string_view> text = text_in(argument)) {
        return *text;
    }
    if (PyFloat_Check(argument.ptr()) != 0) {
        return PyFloat_AS_DOUBLE(argument.ptr());
    }
    if (PyIndex_Check(argument.ptr()) == 0 || PyBool_Check(argument.ptr()) != 0) {
        throw argument_type_error(
            "memory_limit is " + repr_of(argument) +
            ": pass bytes, a part of the device's memory such as 0.8, or a text such as \"80%\" or "
            "\"1.5 GiB\"");
    }
    return integer_from(argument, "memory_limit");
}

std::string elements_in_words(const array& x) { return std::string(name_of(x.dtype())) + " " + x.shape().to_string(); }

call_operand::call_operand(nb::handle a, const char* function, const source_location& where) {
    if (nb::isinstance<array>(a)) {
        array_ = nb::cast<const array&>(a);
        return;
    }
    if (numpy::is_array(a)) {
        is_numpy_ = true;
        array_ = numpy::taken(a, where);
    } else if (const nb::object shared = shared_array(a, where); shared.is_valid()) {
        array_ = nb::cast<const array&>(shared);
    } else {
        throw argument_type_error(std::string(function) + "() got " + repr_of(a) +
                                  ": pass a weir.Array or an array of NumPy, torch, CuPy, JAX or another package that "
                                  "shares memory by DLPack");
    }
    theirs_ = nb::borrow(a);
}

bool call_operand::blocks() const noexcept { return !is_weir() && array_.device().kind() != device_kind::cuda; }

std::string call_operand::package() const { return is_weir() ? "weir" : package_name_of(theirs_); }

stream computing_stream(const execution_target& execution, const device& of_operands, nb::handle on) {
    if (nb::isinstance<stream>(on)) {
        return stream_from(on);  // the call says what is wrong with its device
    }
    return stream_from(on, computing_device(execution, of_operands, on));
}

stream call_operand::stream_for(const execution_target& execution, nb::handle on) const {
    if (on.is_none() && !is_weir()) {
        const device computes = computing_device(execution, array_.device(), on);
        if (computes == array_.device()) {
            if (const std::optional<stream> theirs = package_of(theirs_)->current_stream(computes)) {
                return *theirs;
            }
        }
    }
    return computing_stream(execution, array_.device(), on);
}

void call_operand::copy_again(const source_location& where) { numpy::take_again(theirs_, array_, where); }

void call_operand::expect_target(nb::handle out) const {
    if (!numpy::is_array(out)) {
        throw argument_type_error("out= got " + repr_of(out) +
                                  ", and the operand is an array of NumPy: pass one of NumPy, too");
    }
    if (!nb::cast<bool>(out.attr("flags").attr("writeable"))) {
        throw argument_error(
            "out= is an array of NumPy that is read-only: pass one that can be written, or leave out= out");
    }
}

array call_operand::target(nb::handle out, const source_location& where) const {
    array found = array_of_target(out, where);
    if (is_read_only(found.buffer()) || !found.has_own_elements()) {
        throw argument_error("out= is " + found.to_string() +
                             ", which cannot be written: pass an array that can, or leave out= out");
    }
    return found;
}

array call_operand::array_of_target(nb::handle out, const source_location& where) const {
    if (is_weir()) {
        return array_from(out, "out=");
    }
    if (out.is(theirs_)) {
        return array_;
    }
    if (nb::isinstance<array>(out) || numpy::is_array(out) || package_name_of(out) != package()) {
        throw argument_type_error("out= got " + repr_of(out) + ", and the operand is an array of " + package() +
                                  ": pass one of " + package() + ", too");
    }
    return nb::cast<const array&>(shared_array_for("out=", out, where));
}

bool call_operand::overlaps(const array& out) const noexcept {
    if (is_weir() || out.device_data() == nullptr || array_.device_data() == nullptr ||
        out.buffer().resource(detail::key) == array_.buffer().resource(detail::key)) {
        return false;
    }
    const auto [first, last] = bytes_of(array_);
    const auto [out_first, out_last] = bytes_of(out);
    return first < out_last && out_first < last;
}

nb::object call_operand::result(array&& made, nb::handle out, const source_location& /*where*/) const {
    nb::object result = nb::cast(std::move(made));
    if (is_weir()) {
        return result;
    }
    if (!is_numpy()) {
        return nb::module_::import_("weir._packages").attr("handed_back")(result, theirs_);
    }
    result = result.attr("numpy")();
    if (out.is_none()) {
        return result;
    }
    if (!out.attr("shape").equal(result.attr("shape")) || !out.attr("dtype").equal(result.attr("dtype"))) {
        const auto text = [](nb::handle x) {
            return repr_of(x.attr("shape")) + " and elements of " + nb::cast<std::string>(x.attr("dtype").attr("name"));
        };
        throw argument_error("out= has shape " + text(out) + ", and the result has shape " + text(result));
    }
    nb::module_::import_("numpy").attr("copyto")(out, result);
    return nb::borrow(out);
}

}  // namespace weir::python
