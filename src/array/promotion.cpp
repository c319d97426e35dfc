#include "array/promotion.hpp"

#include <array>
#include <string>

#include "weir/error.hpp"

namespace weir {

namespace {

/// The smallest real type that has all values of `type`, by NumPy's rules: also float64 for 64-bit integers.
dtype real_for(dtype type) {
    switch (size_of(type)) {
        case 1:
            return dtype::float16;
        case 2:
            return is_real(type) ? type : dtype::float32;
        case 4:
            return is_real(type) ? type : dtype::float64;
        default:
            return dtype::float64;
    }
}

dtype complex_for(dtype type) {
    if (is_complex(type)) {
        return type;
    }
    return real_for(type) == dtype::float64 ? dtype::complex128 : dtype::complex64;
}

dtype signed_of_size(std::size_t bytes) noexcept {
    constexpr std::array types = {dtype::int8, dtype::int16, dtype::int32, dtype::int64};
    return types[bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3];
}

dtype larger(dtype a, dtype b) { return size_of(b) > size_of(a) ? b : a; }

/// `low` is another type, of a lower kind than `high`, or of the same kind and not larger. bool_ means that there is no common type.
dtype promoted(dtype low, dtype high) {
    const dtype_kind kind = kind_of(high);
    if (kind == kind_of(low)) {
        const bool two_short = size_of(low) == 2 && size_of(high) == 2 && kind == dtype_kind::real;
        return two_short ? dtype::bool_ : high;
    }
    if (low == dtype::bool_) {
        return high;
    }
    if (kind == dtype_kind::complex) {
        return larger(high, complex_for(low));
    }
    if (kind == dtype_kind::real) {
        // ml_dtypes, the source of NumPy's bfloat16, defines nothing for it with integers of more than 8 bits.
        if (high == dtype::bfloat16) {
            return size_of(low) == 1 ? high : dtype::bool_;
        }
        return larger(high, real_for(low));
    }
    if (size_of(high) > size_of(low)) {
        return high;
    }
    return size_of(low) == 8 ? dtype::float64 : signed_of_size(2 * size_of(low));
}

}  // namespace

dtype promote_types(dtype a, dtype b) {
    detail::expect_arithmetic(a, "promotion");
    detail::expect_arithmetic(b, "promotion");
    if (a == b) {
        return a;
    }
    const bool ordered = kind_of(a) < kind_of(b) || (kind_of(a) == kind_of(b) && size_of(a) <= size_of(b));
    const dtype found = ordered ? promoted(a, b) : promoted(b, a);
    if (found == dtype::bool_) {
        throw argument_type_error(std::string(name_of(a)) + " and " + std::string(name_of(b)) +
                                  " have no common type: convert one of them with astype(on, x, dtype)");
    }
    return found;
}

namespace promotion {

dtype beside(dtype type, const scalar& number) noexcept {
    switch (number.kind()) {
        case dtype_kind::boolean:
            return type;
        case dtype_kind::unsigned_integer:
        case dtype_kind::signed_integer:
            return type == dtype::bool_ ? dtype::int64 : type;
        case dtype_kind::real:
            return kind_of(type) < dtype_kind::real ? dtype::float64 : type;
        case dtype_kind::complex:
        case dtype_kind::opaque:  // no number is of this kind
            break;
    }
    return kind_of(type) < dtype_kind::real ? dtype::complex128 : complex_for(type);
}

dtype alone(const scalar& number) noexcept {
    return number.kind() == dtype_kind::boolean ? dtype::bool_ : beside(dtype::bool_, number);
}

dtype common(const operand& a, const operand& b) {
    if (a.is_array() && b.is_array()) {
        return promote_types(a.of_array().dtype(), b.of_array().dtype());
    }
    if (a.is_array() || b.is_array()) {
        return a.is_array() ? beside(a.of_array().dtype(), b.number()) : beside(b.of_array().dtype(), a.number());
    }
    return promote_types(alone(a.number()), alone(b.number()));
}

}  // namespace promotion

}  // namespace weir
