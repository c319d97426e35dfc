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
    if (const std::optional<device> found = released([&] { return exchange::device_of(asked); })) {
        return found;
    }
    throw argument_error("weir has no device that DLPack names " + repr_of(argument));
}

void refuse_for_package(nb::handle x, const char* protocol, const nb::python_error& raised) {
    if (is_of_weir(raised) || !raised.matches(PyExc_Exception) || raised.matches(PyExc_MemoryError)) {
        throw raised;
    }
    const std::string name = package_name_of(x);
    const std::string said = nb::str(raised.value()).c_str();
    raise_exchange_error(name + " does not hand over its array by " + protocol + ": " +
                             nb::inst_name(raised.value()).c_str() + (said.empty() ? "" : ", \"" + said + "\"") +
                             "; make an array in " + name +
                             " that it shares, such as a plain copy of numbers, and pass that",
                         raised);
}

std::string interface_name_of(dtype type) {
    const bool is_known = has_arithmetic(type) && type != dtype::bfloat16;
    constexpr char kinds[] = {'b', 'u', 'i', 'f', 'c'};  // in the order of dtype_kind
    return is_known ? (size_of(type) == 1 ? "|" : "<") +
                          std::string(1, kinds[static_cast<std::size_t>(kind_of(type))]) + std::to_string(size_of(type))
                    : std::string();
}

}  // namespace weir::python
