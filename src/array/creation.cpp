#include <algorithm>
#include <complex>

#include "weir/array.hpp"
#include "weir/error.hpp"
#include "weir/launch.hpp"

namespace weir {

namespace {

/// Throws argument_error if a real type cannot hold `value`.
void expect_fits(std::complex<double> value, dtype type) {
    if (!is_complex(type) && value.imag() != 0) {
        throw argument_error("the value " + std::to_string(value.real()) + " + " + std::to_string(value.imag()) +
                             "i for elements of " + std::string(name_of(type)) +
                             ": take a complex dtype, or a value without an imaginary part");
    }
}

template <class T>
T converted(std::complex<double> value) {
    if constexpr (std::is_floating_point_v<T>) {
        return static_cast<T>(value.real());
    } else {
        return T(value);
    }
}

template <class T>
completion fill_typed(const on& where, const array& dst, std::complex<double> value) {
    const auto target = out(dst.view<T>());
    return detail::submit_work(
        where, runtime::work_kind::device,
        [span = target.data, element = converted<T>(value)] { std::fill(span.begin(), span.end(), element); }, target);
}

}  // namespace

completion fill(const on& where, const array& dst, std::complex<double> value) {
    expect_fits(value, dst.dtype());
    switch (dst.dtype()) {
        case dtype::float32:
            return fill_typed<float>(where, dst, value);
        case dtype::float64:
            return fill_typed<double>(where, dst, value);
        case dtype::complex64:
            return fill_typed<std::complex<float>>(where, dst, value);
        case dtype::complex128:
            return fill_typed<std::complex<double>>(where, dst, value);
    }
    throw argument_type_error("an element type that this build does not know");
}

array empty(const shape& extents, dtype type, const stream_ref& on, source_location where) {
    const std::size_t bytes = static_cast<std::size_t>(extents.elements()) * size_of(type);
    return {buffer(bytes, on, where), type, extents};
}

array zeros(const shape& extents, dtype type, const stream_ref& on, source_location where) {
    return full(extents, 0, type, on, where);
}

array full(const shape& extents, std::complex<double> value, dtype type, const stream_ref& on, source_location where) {
    expect_fits(value, type);
    array made = empty(extents, type, on, where);
    fill({on, where}, made, value);
    return made;
}

}  // namespace weir
