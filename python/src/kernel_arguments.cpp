#include "kernel_arguments.hpp"

#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "accesses.hpp"
#include "numpy.hpp"
#include "weir/array.hpp"
#include "weir/dtype.hpp"
#include "weir/error.hpp"
#include "weir/float16.hpp"
#include "weir/scalar.hpp"

namespace weir::python {

namespace {

struct place {
    const kernel& of;
    const detail::declared_parameter& as;
    std::size_t position;
};

[[noreturn]] void refuse_type(nb::handle given, const place& at, const char* wanted) {
    PyErr_Clear();
    throw argument_type_error(described(at.of, at.as, at.position) + ", and got " + nb::repr(given).c_str() +
                              ": pass " + wanted);
}

[[noreturn]] void refuse_range(nb::handle given, const place& at) {
    PyErr_Clear();
    throw argument_error(described(at.of, at.as, at.position) + ", and got " + nb::repr(given).c_str() +
                         ", which is out of range");
}

template <class T>
void put(const T& value, argument_slot& to) noexcept {
    static_assert(sizeof(T) <= sizeof(to.bytes));
    std::memcpy(to.bytes, &value, sizeof(T));
}

template <class T>
void store_integer(nb::handle given, const place& at, argument_slot& to) {
    nb::object index;
    PyObject* number = given.ptr();
    if (PyLong_Check(number) == 0) {
        index = nb::steal(PyNumber_Index(number));
        if (!index.is_valid()) {
            refuse_type(given, at, "an integer");
        }
        number = index.ptr();
    }
    if constexpr (std::is_same_v<T, std::uint64_t>) {
        const unsigned long long value = PyLong_AsUnsignedLongLong(number);
        if (PyErr_Occurred() != nullptr) {
            refuse_range(given, at);
        }
        put(static_cast<T>(value), to);
    } else {
        int overflow = 0;
        const long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
        if (overflow != 0 || value < static_cast<long long>(std::numeric_limits<T>::min()) ||
            value > static_cast<long long>(std::numeric_limits<T>::max())) {
            refuse_range(given, at);
        }
        put(static_cast<T>(value), to);
    }
}

double real_from(nb::handle given, const place& at) {
    const double value = PyFloat_AsDouble(given.ptr());
    if (value == -1.0 && PyErr_Occurred() != nullptr) {
        if (PyErr_ExceptionMatches(PyExc_OverflowError) != 0) {
            refuse_range(given, at);
        }
        refuse_type(given, at, "a number");
    }
    return value;
}

/// The largest of a type, and nothing that rounds to more.
void expect_range(double value, double largest, nb::handle given, const place& at) {
    if (std::isfinite(value) && std::abs(value) > largest) {
        refuse_range(given, at);
    }
}

float float_from(nb::handle given, const place& at) {
    const double value = real_from(given, at);
    const auto narrow = static_cast<float>(value);
    if (std::isinf(narrow) && std::isfinite(value)) {
        refuse_range(given, at);
    }
    return narrow;
}

Py_complex complex_from(nb::handle given, const place& at) {
    const Py_complex value = PyComplex_AsCComplex(given.ptr());
    if (value.real == -1.0 && PyErr_Occurred() != nullptr) {
        refuse_type(given, at, "a complex number");
    }
    return value;
}

void store_boolean(nb::handle given, const place& at, argument_slot& to) {
    // Numbers too, as C++ takes them, but nothing that merely happens to be true.
    const bool is_one = PyBool_Check(given.ptr()) != 0 || PyIndex_Check(given.ptr()) != 0 ||
                        (numpy::is_scalar(given) && numpy::number(given).kind() == dtype_kind::boolean);
    if (!is_one) {
        refuse_type(given, at, "True or False");
    }
    const int truth = PyObject_IsTrue(given.ptr());
    if (truth < 0) {
        refuse_type(given, at, "True or False");
    }
    put(static_cast<std::uint8_t>(truth), to);
}

}  // namespace

std::string described(const kernel& of, const detail::declared_parameter& as, std::size_t position) {
    return "argument " + std::to_string(position + 1) + " of the kernel " + of.name() + " is \"" + as.text + '"';
}

void store_number(nb::handle number, const kernel& of, const detail::declared_parameter& as, std::size_t position,
                  argument_slot& to) {
    const place at{of, as, position};
    switch (*as.type) {
        case dtype::bool_:
            return store_boolean(number, at, to);
        case dtype::int8:
            return store_integer<std::int8_t>(number, at, to);
        case dtype::int16:
            return store_integer<std::int16_t>(number, at, to);
        case dtype::int32:
            return store_integer<std::int32_t>(number, at, to);
        case dtype::int64:
            return store_integer<std::int64_t>(number, at, to);
        case dtype::uint8:
            return store_integer<std::uint8_t>(number, at, to);
        case dtype::uint16:
            return store_integer<std::uint16_t>(number, at, to);
        case dtype::uint32:
            return store_integer<std::uint32_t>(number, at, to);
        case dtype::uint64:
            return store_integer<std::uint64_t>(number, at, to);
        case dtype::float16: {
            const double value = real_from(number, at);
            expect_range(value, 65504, number, at);
            return put(float16(value), to);
        }
        case dtype::bfloat16:
            return put(bfloat16(float_from(number, at)), to);
        case dtype::float32:
            return put(float_from(number, at), to);
        case dtype::float64:
            return put(real_from(number, at), to);
        case dtype::complex64: {
            const Py_complex value = complex_from(number, at);
            expect_range(value.real, std::numeric_limits<float>::max(), number, at);
            expect_range(value.imag, std::numeric_limits<float>::max(), number, at);
            return put(std::complex<float>(static_cast<float>(value.real), static_cast<float>(value.imag)), to);
        }
        case dtype::complex128: {
            const Py_complex value = complex_from(number, at);
            return put(std::complex<double>(value.real, value.imag), to);
        }
    }
}

const array& array_argument(nb::handle argument, const kernel& of, const detail::declared_parameter& as,
                            std::size_t position) {
    const auto start = [&] { return described(of, as, position) + ", and got "; };
    nb::handle given = argument;
    const array* found = object_of<array>(argument);
    if (const declared_use* const wrapped = found == nullptr ? object_of<declared_use>(argument) : nullptr) {
        given = wrapped->of;
        found = object_of<array>(given);
        const operand_use wanted = as.mode == order::access_mode::read ? operand_use::in
                                   : as.overwrites                     ? operand_use::out
                                                                       : operand_use::inout;
        if (wrapped->use != wanted) {
            throw argument_error(start() + "an array as " + name_of(wrapped->use) + ": pass it as it is, or as weir." +
                                 name_of(wanted) + "(x), or mend the signature");
        }
    }
    if (found == nullptr) {
        throw argument_type_error(start() + nb::repr(given).c_str() + ": pass a weir.Array");
    }
    const array& x = *found;
    if (as.type && x.dtype() != *as.type) {
        throw argument_type_error(start() + "an array of " + std::string(weir::name_of(x.dtype())) + ": x.astype(\"" +
                                  std::string(weir::name_of(*as.type)) + "\") converts it");
    }
    if (!x.is_contiguous()) {
        throw argument_error(
            start() +
            "an array whose elements do not lie one after the other, of which the kernel would see the "
            "address of the first alone: pass x.copy(), or the array that it is a part of");
    }
    return x;
}

}  // namespace weir::python
