#include "calls.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "arrays.hpp"
#include "numpy.hpp"
#include "weir/detail/internal_memory.hpp"
#include "weir/error.hpp"

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
            break;
    }
    return cpu();
}

}  // namespace

execution_target execution_from(nb::handle argument) {
    if (argument.is_none()) {
        return {};
    }
    if (PyUnicode_Check(argument.ptr()) != 0) {
        const auto name = nb::cast<std::string_view>(argument);
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
    if (PyUnicode_Check(argument.ptr()) != 0 && nb::cast<std::string_view>(argument) == "auto") {
        return call_blocking::automatic;
    }
    throw argument_error("blocking is " + std::string(nb::repr(argument).c_str()) + ": pass \"auto\" or True");
}

memory_limit memory_limit_from(nb::handle argument) {
    if (PyUnicode_Check(argument.ptr()) != 0) {
        return nb::cast<std::string_view>(argument);
    }
    if (PyFloat_Check(argument.ptr()) != 0) {
        return PyFloat_AS_DOUBLE(argument.ptr());
    }
    if (PyIndex_Check(argument.ptr()) == 0 || PyBool_Check(argument.ptr()) != 0) {
        throw argument_type_error(
            "memory_limit is " + std::string(nb::repr(argument).c_str()) +
            ": pass bytes, a part of the device's memory such as 0.8, or a text such as \"80%\" or "
            "\"1.5 GiB\"");
    }
    return integer_from(argument, "memory_limit");
}

call_operand::call_operand(nb::handle a, const char* function, const source_location& where) {
    if (nb::isinstance<array>(a)) {
        array_ = nb::cast<const array&>(a);
        return;
    }
    if (!numpy::is_array(a)) {
        throw argument_type_error(std::string(function) + "() got " + nb::repr(a).c_str() +
                                  ": pass a weir.Array or an array of NumPy");
    }
    numpy_ = nb::borrow(a);
    array_ = detail::internal(numpy::taken(a, where));
}

stream call_operand::stream_for(const execution_target& execution, nb::handle on) const {
    if (nb::isinstance<stream>(on)) {
        return stream_from(on);  // the call says what is wrong with its device
    }
    return stream_from(on, computing_device(execution, array_.device(), on));
}

void call_operand::copy_again(const source_location& where) {
    const array now = numpy::taken(numpy_, where);
    if (now.shape() != array_.shape() || now.dtype() != array_.dtype()) {
        throw argument_error("the operand has become " + now.to_string() + ", and was " + array_.to_string() +
                             ": call reset_operand() with one like that");
    }
    if (now.size() == 0) {
        return;
    }
    waiting([&] {
        const host_access changes(array_.buffer(), array_.footprint(), order::access_mode::write, where);
        std::copy_n(now.data(), now.nbytes(), array_.data());
    });
}

nb::object call_operand::result(array&& made, nb::handle out, const source_location& /*where*/) const {
    nb::object result = nb::cast(std::move(made));
    if (!is_numpy()) {
        return result;
    }
    result = result.attr("numpy")();
    if (out.is_none()) {
        return result;
    }
    if (!numpy::is_array(out)) {
        throw argument_type_error("out= got " + std::string(nb::repr(out).c_str()) +
                                  ", and the operand is an array of NumPy: pass one of NumPy, too");
    }
    if (!out.attr("shape").equal(result.attr("shape")) || !out.attr("dtype").equal(result.attr("dtype"))) {
        const auto text = [](nb::handle x) {
            return std::string(nb::repr(x.attr("shape")).c_str()) + " and elements of " +
                   nb::cast<std::string>(x.attr("dtype").attr("name"));
        };
        throw argument_error("out= has shape " + text(out) + ", and the result has shape " + text(result));
    }
    nb::module_::import_("numpy").attr("copyto")(out, result);
    return nb::borrow(out);
}

}  // namespace weir::python
