// Arrays made from anything that holds numbers.
#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "arithmetic.hpp"
#include "arrays.hpp"
#include "buffers.hpp"
#include "dtypes.hpp"
#include "exchange.hpp"
#include "interpreter.hpp"
#include "numpy.hpp"
#include "weir/error.hpp"
#include "weir/launch.hpp"

namespace weir::python {

dtype common_type(std::span<const scalar> numbers) {
    dtype_kind highest = numbers.empty() ? dtype_kind::real : dtype_kind::boolean;
    bool negative = false;
    bool large = false;
    for (const scalar& one : numbers) {
        highest = std::max(highest, one.kind());
        const auto* const with_sign = std::get_if<std::int64_t>(&one.value());
        const auto* const without = std::get_if<std::uint64_t>(&one.value());
        negative = negative || (with_sign != nullptr && *with_sign < 0);
        large = large || (without != nullptr && *without > INT64_MAX);
    }
    switch (highest) {
        case dtype_kind::boolean:
            return dtype::bool_;
        case dtype_kind::real:
            return dtype::float64;
        case dtype_kind::complex:
            return dtype::complex128;
        default:
            if (large && negative) {
                throw argument_error(
                    "no integer type holds both negative numbers and such beyond 2**63 - 1: pass dtype=\"float64\"");
            }
            return large ? dtype::uint64 : dtype::int64;
    }
}

namespace {

bool is_sequence(nb::handle object) { return PyList_Check(object.ptr()) != 0 || PyTuple_Check(object.ptr()) != 0; }

/// Numbers of Python's in nested lists.
struct nested_numbers {
    bool round_integers = false;  ///< those that no integer type has
    std::vector<std::int64_t> extents;
    std::vector<scalar> numbers;

    /// Adds what is `depth` lists deep; false if that is no number of Python's: NumPy may know it.
    bool add(nb::handle source, std::size_t depth) {
        if (!is_sequence(source)) {
            const std::optional<scalar> number = number_from(source, round_integers);
            if (!number) {
                return false;
            }
            is_complete_ = true;
            if (depth != extents.size()) {
                refuse();
            }
            numbers.push_back(*number);
            return true;
        }
        const nb::object items = nb::steal(PySequence_Fast(source.ptr(), "a list"));
        const Py_ssize_t length = PySequence_Fast_GET_SIZE(items.ptr());
        if (depth == extents.size() && !is_complete_) {
            extents.push_back(length);
            static_cast<void>(shape(extents));  // throws if they are nested too deep
        }
        if (depth >= extents.size() || extents[depth] != length) {
            refuse();
        }
        is_complete_ = is_complete_ || length == 0;
        for (Py_ssize_t i = 0; i < length; ++i) {
            // The code of a number may change the list that it is in.
            if (PySequence_Fast_GET_SIZE(items.ptr()) != length) {
                refuse();
            }
            const nb::object item = nb::borrow(PySequence_Fast_GET_ITEM(items.ptr(), i));
            if (!add(item, depth + 1)) {
                return false;
            }
        }
        return true;
    }

private:
    bool is_complete_ = false;  ///< whether all extents are known

    [[noreturn]] static void refuse() {
        throw argument_error(
            "nested lists of different lengths or depths: all lists at one depth must be of one length");
    }
};

array from_numbers(const nested_numbers& source, std::optional<dtype> type, const stream& on_stream,
                   const source_location& where) {
    const dtype element = type ? *type : common_type(source.numbers);
    const std::size_t item = size_of(element);
    const shape extents(source.extents);
    std::vector<std::byte> bytes(source.numbers.size() * item);
    for (std::size_t i = 0; i < source.numbers.size(); ++i) {
        source.numbers[i].expect_fits(element);
        source.numbers[i].store(element, bytes.data() + i * item);
    }
    return released([&] {
        array made = empty(extents, element, on_stream, where);
        copy_from_host(on(on_stream, where), made, bytes);
        return made;
    });
}

/// A copy on the device of `on`, of that type.
array from_array(const array& source, dtype type, const stream& on_stream, const source_location& where) {
    return released([&] { return to(on(on_stream, where), source, on_stream.device(), type); });
}

/// What the buffer protocol gives, without NumPy.
std::optional<array> from_memory(nb::handle source, std::optional<dtype> type, const stream& on_stream,
                                 const source_location& where) {
    const std::optional<lent_buffer> memory = lent_buffer::of(source);
    if (!memory) {
        return std::nullopt;
    }
    const std::optional<dtype> own = memory->type();
    if (!own) {
        throw argument_type_error("memory with elements of the format \"" + std::string(memory->format()) +
                                  "\": pass numbers, or install NumPy to convert it");
    }
    const nb::bytes packed = memory->packed();
    const shape extents = memory->extents();
    const std::span bytes(static_cast<const std::byte*>(packed.data()), packed.size());
    return released([&] {
        array made = empty(extents, *own, on_stream, where);
        copy_from_host(on(on_stream, where), made, bytes);
        return type && *type != *own ? astype(on(on_stream, where), made, *type) : made;
    });
}

}  // namespace

array copied_from_package(const array& source, std::optional<dtype> type, const stream& on_stream,
                          const source_location& where) {
    array made = from_array(source, type.value_or(source.dtype()), on_stream, where);
    if (source.device().kind() != device_kind::cuda) {
        waiting([&] {
            const host_access copied(detail::key, made.buffer(), made.used(detail::key), order::access_mode::read,
                                     where);
        });
    }
    return made;
}

array made_from(nb::handle source, std::optional<dtype> type, const stream& on_stream, const source_location& where) {
    if (nb::isinstance<array>(source)) {
        const auto& one = nb::cast<const array&>(source);
        return from_array(one, type.value_or(one.dtype()), on_stream, where);
    }
    if (!numpy::is_array(source) && !numpy::is_scalar(source)) {
        if (const nb::object theirs = is_sequence(source) ? nb::object() : array_of_package(source, where);
            theirs.is_valid()) {
            return copied_from_package(nb::cast<const array&>(theirs), type, on_stream, where);
        }
        nested_numbers numbers;
        numbers.round_integers = type && is_inexact(*type);
        if (numbers.add(source, 0)) {
            return from_numbers(numbers, type, on_stream, where);
        }
        const nb::object module = numpy::find();
        if (!module.is_valid()) {
            if (std::optional<array> made = from_memory(source, type, on_stream, where)) {
                return *std::move(made);
            }
            throw argument_type_error(
                "an array of " + repr_of(source) +
                ": pass numbers, nested lists of them, or memory with the buffer protocol (without "
                "NumPy no more is known)");
        }
        const nb::object converted(module.attr("asarray")(source));
        if (nb::cast<std::string_view>(converted.attr("dtype").attr("kind")) == "O") {
            throw argument_type_error("an array of " + repr_of(source) +
                                      ": pass numbers, nested lists of them, or an array");
        }
        return made_from(converted, type, on_stream, where);
    }
    const dtype own = numpy::from_dtype(source.attr("dtype"));
    array made = numpy::copied(source, on_stream, where);
    if (!type || *type == own) {
        return made;
    }
    return released([&] { return astype(on(on_stream, where), made, *type); });
}

}  // namespace weir::python
