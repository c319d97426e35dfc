// Arrays of anything that holds numbers.
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "arithmetic.hpp"
#include "arrays.hpp"
#include "dtypes.hpp"
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
    std::vector<std::int64_t> extents;
    std::vector<scalar> numbers;

    /// Adds what is `depth` lists deep; false for anything that is no number of Python's: NumPy may know it.
    bool add(nb::handle source, std::size_t depth) {
        if (!is_sequence(source)) {
            const std::optional<scalar> number = number_from(source);
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
            if (!add(PySequence_Fast_GET_ITEM(items.ptr(), i), depth + 1)) {
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
    const nb::object view = nb::steal(PyMemoryView_FromObject(source.ptr()));
    if (!view.is_valid()) {
        PyErr_Clear();
        return std::nullopt;
    }
    const Py_buffer& memory = *PyMemoryView_GET_BUFFER(view.ptr());
    struct known_format {
        const char* format;
        dtype means;
    };
    constexpr known_format formats[] = {
        {"?", dtype::bool_},  {"b", dtype::int8},    {"h", dtype::int16},   {"i", dtype::int32},  {"l", dtype::int64},
        {"q", dtype::int64},  {"B", dtype::uint8},   {"H", dtype::uint16},  {"I", dtype::uint32}, {"L", dtype::uint64},
        {"Q", dtype::uint64}, {"e", dtype::float16}, {"f", dtype::float32}, {"d", dtype::float64}};
    const char* const format = memory.format == nullptr ? "B" : memory.format;
    const auto* const found = std::find_if(std::begin(formats), std::end(formats), [&](const known_format& one) {
        return std::strcmp(one.format, *format == '@' ? format + 1 : format) == 0;
    });
    if (found == std::end(formats)) {
        throw argument_type_error("memory with elements of the format \"" + std::string(format) +
                                  "\": pass numbers, or install NumPy to convert it");
    }
    const nb::object packed(view.attr("tobytes")());
    const std::vector<std::int64_t> extents(memory.shape, memory.shape + memory.ndim);
    const std::span bytes(reinterpret_cast<const std::byte*>(PyBytes_AS_STRING(packed.ptr())),
                          static_cast<std::size_t>(PyBytes_GET_SIZE(packed.ptr())));
    return released([&] {
        array made = empty(shape(extents), found->means, on_stream, where);
        copy_from_host(on(on_stream, where), made, bytes);
        return type && *type != found->means ? astype(on(on_stream, where), made, *type) : made;
    });
}

}  // namespace

array made_from(nb::handle source, std::optional<dtype> type, const stream& on_stream, const source_location& where) {
    if (nb::isinstance<array>(source)) {
        const auto& one = nb::cast<const array&>(source);
        return from_array(one, type.value_or(one.dtype()), on_stream, where);
    }
    if (!numpy::is_array(source) && !numpy::is_scalar(source)) {
        nested_numbers numbers;
        if (numbers.add(source, 0)) {
            return from_numbers(numbers, type, on_stream, where);
        }
        const nb::object module = numpy::find();
        if (!module.is_valid()) {
            if (std::optional<array> made = from_memory(source, type, on_stream, where)) {
                return *std::move(made);
            }
            throw argument_type_error(
                "an array of " + std::string(nb::repr(source).c_str()) +
                ": pass numbers, nested lists of them, or memory with the buffer protocol (without "
                "NumPy no more is known)");
        }
        const nb::object converted(module.attr("asarray")(source));
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
