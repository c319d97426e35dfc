#include "exchange.hpp"

#include <cstdint>
#include <string>

#include "devices.hpp"
#include "errors.hpp"
#include "interpreter.hpp"
#include "packages.hpp"
#include "weir/dlpack.hpp"
#include "weir/error.hpp"

namespace weir::python {

std::optional<device> wanted_device(nb::handle argument) {
    if (argument.is_none()) {
        return std::nullopt;
    }
    if (PyTuple_Check(argument.ptr()) == 0) {
        return device_from(argument);
    }
    const auto number = [&](Py_ssize_t at) {
        const bool is_one =
            PyTuple_GET_SIZE(argument.ptr()) == 2 && PyLong_Check(PyTuple_GET_ITEM(argument.ptr(), at)) != 0;
        if (!is_one) {
            throw argument_type_error("device is " + repr_of(argument) +
                                      ": pass a weir.Device, a name such as \"cpu\", or DLPack's (type, id)");
        }
        const long long value = PyLong_AsLongLong(PyTuple_GET_ITEM(argument.ptr(), at));
        PyErr_Clear();
        return value == static_cast<std::int32_t>(value) ? static_cast<std::int32_t>(value) : -1;
    };
    const exchange::dlpack::device asked{static_cast<exchange::dlpack::device_type>(number(0)), number(1)};
    // Of the CPU there is one; what producers say of it is read with less care.
    if (const std::optional<device> found = released([&] { return exchange::device_of(asked); });
        found && (*found != cpu() || asked.id == 0)) {
        return found;
    }
    throw argument_error("weir has no device that DLPack names " + repr_of(argument));
}

namespace {

/// What makes an array that `x`'s package does share, where the package is known to refuse some of its own.
std::string mend_for(nb::handle x, const std::string& name) {
    struct refused {
        const char* asked;  ///< true of a tensor that torch refuses: an attribute, or a method without arguments
        const char* mend;
    };
    constexpr refused of_torch[] = {{"requires_grad", "x.detach()"},   {"is_conj", "x.resolve_conj()"},
                                    {"is_neg", "x.resolve_neg()"},     {"is_sparse", "x.to_dense()"},
                                    {"is_sparse_csr", "x.to_dense()"}, {"is_mkldnn", "x.to_dense()"},
                                    {"is_quantized", "x.dequantize()"}};
    if (name == "torch") {
        for (const refused& one : of_torch) {
            nb::object answer = nb::getattr(x, one.asked, nb::none());
            if (PyCallable_Check(answer.ptr()) != 0) {
                answer = answer();
            }
            if (answer.is(Py_True)) {
                return std::string("pass ") + one.mend;
            }
        }
    }
    return "make an array in " + name + " that it shares, such as a plain copy of numbers, and pass that";
}

}  // namespace

void refuse_for_package(nb::handle x, const char* protocol, const nb::python_error& raised) {
    if (is_of_weir(raised) || !raised.matches(PyExc_Exception) || raised.matches(PyExc_MemoryError)) {
        throw raised;
    }
    const std::string name = package_name_of(x);
    const nb::object its = exception_in(raised);
    const std::string said = nb::str(its).c_str();
    raise_exchange_error(name + " does not hand over its array by " + protocol + ": " + nb::inst_name(its).c_str() +
                             (said.empty() ? "" : ", \"" + said + "\"") + "; " + mend_for(x, name),
                         raised);
}

std::string text_of(const exchange::dlpack::device& one) {
    return "(" + std::to_string(static_cast<std::int32_t>(one.type)) + ", " + std::to_string(one.id) + ")";
}

std::string interface_name_of(dtype type) {
    const bool is_known = has_arithmetic(type) && type != dtype::bfloat16;
    constexpr char kinds[] = {'b', 'u', 'i', 'f', 'c'};  // in the order of dtype_kind
    return is_known ? (size_of(type) == 1 ? "|" : "<") +
                          std::string(1, kinds[static_cast<std::size_t>(kind_of(type))]) + std::to_string(size_of(type))
                    : std::string();
}

}  // namespace weir::python
