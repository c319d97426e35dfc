#include "buffers.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "attributes.hpp"
#include "ownership.hpp"
#include "reference.hpp"
#include "weir/detail/passkey.hpp"
#include "weir/dlpack.hpp"

namespace weir::python {

namespace {

struct known_format {
    std::string_view format;
    dtype means;
};

/// In the machine's own sizes and byte order.
constexpr known_format formats[] = {
    {"?", dtype::bool_},   {"b", dtype::int8},       {"h", dtype::int16},      {"i", dtype::int32},
    {"l", dtype::int64},   {"q", dtype::int64},      {"B", dtype::uint8},      {"H", dtype::uint16},
    {"I", dtype::uint32},  {"L", dtype::uint64},     {"Q", dtype::uint64},     {"e", dtype::float16},
    {"f", dtype::float32}, {"d", dtype::float64},    {"c", dtype::uint8},      {"N", dtype::uint64},
    {"n", dtype::int64},   {"Zf", dtype::complex64}, {"Zd", dtype::complex128}};

}  // namespace

lent_buffer::lent_buffer(nb::handle object) : view_(nb::steal(PyMemoryView_FromObject(object.ptr()))) {
    if (!view_.is_valid()) {
        nb::raise_python_error();
    }
}

std::optional<lent_buffer> lent_buffer::of(nb::handle object) {
    if (PyObject_CheckBuffer(object.ptr()) == 0) {
        return std::nullopt;
    }
    try {
        return lent_buffer(object);
    } catch (nb::python_error& raised) {  // it lends nothing now
        raised.restore();
        forget_raised();
        return std::nullopt;
    }
}

const char* lent_buffer::format() const noexcept { return memory().format == nullptr ? "B" : memory().format; }

std::optional<dtype> lent_buffer::type() const noexcept {
    std::string_view text = format();
    constexpr bool is_little = std::endian::native == std::endian::little;
    // "<" has sizes of its own, which are those of x86 and Arm but for "l" and "L".
    const bool is_standard = text.starts_with(is_little ? '<' : '>') || text.starts_with('=');
    if (is_standard || text.starts_with('@')) {
        text.remove_prefix(1);
    }
    if (is_standard && (text == "l" || text == "L")) {
        return text == "l" ? dtype::int32 : dtype::uint32;
    }
    const auto* const found = std::find_if(std::begin(formats), std::end(formats),
                                           [&](const known_format& one) { return one.format == text; });
    return found == std::end(formats) ? std::nullopt : std::optional(found->means);
}

shape lent_buffer::extents() const {
    return shape(std::vector<std::int64_t>(memory().shape, memory().shape + memory().ndim));
}

nb::bytes lent_buffer::packed() const { return nb::bytes(nb::object(view_.attr("tobytes")())); }

std::span<const std::byte> lent_buffer::bytes() const noexcept {
    return {static_cast<const std::byte*>(memory().buf), static_cast<std::size_t>(memory().len)};
}

std::optional<array> lent_buffer::shared(std::shared_ptr<package> from, const source_location& where) const {
    const Py_buffer& lent = memory();
    const std::optional<dtype> elements = type();
    if (!elements || lent.suboffsets != nullptr || static_cast<std::size_t>(lent.itemsize) != size_of(*elements)) {
        return std::nullopt;
    }
    const std::size_t aligned_to = is_complex(*elements) ? size_of(*elements) / 2 : size_of(*elements);
    if (reinterpret_cast<std::uintptr_t>(lent.buf) % aligned_to != 0) {
        return std::nullopt;
    }
    return shared_memory(lent, *elements, view_, std::move(from), where);
}

std::optional<array> shared_memory(const Py_buffer& lent, dtype type, nb::object owner, std::shared_ptr<package> from,
                                   const source_location& where) {
    std::array<std::int64_t, shape::most> extents;
    std::array<std::int64_t, shape::most> strides;
    const auto dimensions = static_cast<std::size_t>(lent.ndim);
    if (dimensions > shape::most) {
        return std::nullopt;
    }
    for (std::size_t axis = 0; axis < dimensions; ++axis) {
        if (lent.strides[axis] % lent.itemsize != 0) {
            return std::nullopt;
        }
        extents[axis] = lent.shape[axis];
        strides[axis] = lent.strides[axis] / lent.itemsize;
    }
    exchange::dlpack::tensor what;
    what.data = lent.buf;
    what.dimensions = lent.ndim;
    what.type = to_dlpack_dtype(type);
    what.shape = extents.data();
    what.strides = strides.data();
    const std::uint64_t flags = lent.readonly != 0 ? exchange::dlpack::read_only : 0;
    return exchange::from_dlpack(weir::detail::key, what, flags, lender_of(reference(std::move(owner))),
                                 std::move(from), where);
}

}  // namespace weir::python
