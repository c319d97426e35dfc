#include <cmath>
#include <complex>
#include <type_traits>

#include "array/loops.hpp"
#include "array/visit.hpp"

namespace weir::loops {

namespace {

template <class T, class F>
void each(const std::byte* a, const std::byte* b, std::byte* out, std::size_t count) {
    const auto* const x = reinterpret_cast<const T*>(a);
    const auto* const y = reinterpret_cast<const T*>(b);
    auto* const z = reinterpret_cast<T*>(out);
    for (std::size_t i = 0; i < count; ++i) {
        z[i] = F()(x[i], y[i]);
    }
}

template <class T, class F>
void each(const std::byte* a, std::byte* out, std::size_t count) {
    const auto* const x = reinterpret_cast<const T*>(a);
    auto* const z = reinterpret_cast<T*>(out);
    for (std::size_t i = 0; i < count; ++i) {
        z[i] = F()(x[i]);
    }
}

/// Integers wrap: computed in an unsigned type wide enough that nothing is promoted to a signed one.
template <class T>
using wide = std::conditional_t<(sizeof(T) < 4), std::uint32_t, std::make_unsigned_t<T>>;

struct add {
    template <class T>
    T operator()(T a, T b) const noexcept {
        if constexpr (std::is_same_v<T, bool>) {
            return a || b;
        } else if constexpr (std::is_integral_v<T>) {
            return static_cast<T>(static_cast<wide<T>>(a) + static_cast<wide<T>>(b));
        } else {
            return a + b;
        }
    }
};

struct subtract {
    template <class T>
    T operator()(T a, T b) const noexcept {
        if constexpr (std::is_integral_v<T>) {
            return static_cast<T>(static_cast<wide<T>>(a) - static_cast<wide<T>>(b));
        } else {
            return a - b;
        }
    }
};

struct multiply {
    template <class T>
    T operator()(T a, T b) const noexcept {
        if constexpr (std::is_same_v<T, bool>) {
            return a && b;
        } else if constexpr (std::is_integral_v<T>) {
            return static_cast<T>(static_cast<wide<T>>(a) * static_cast<wide<T>>(b));
        } else if constexpr (detail::is_complex_element<T>) {
            // As in NumPy: without the special handling of infinities that C++ requires, which costs most of the time.
            return T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
        } else {
            return a * b;
        }
    }
};

struct divide {
    template <class T>
    T operator()(T a, T b) const noexcept {
        if constexpr (!detail::is_complex_element<T>) {
            return a / b;
        } else {
            // R. L. Smith, Algorithm 116 (1962): scaled, so that squares do not overflow.
            using part = typename T::value_type;
            if (std::abs(b.real()) >= std::abs(b.imag())) {
                if (b.real() == 0 && b.imag() == 0) {
                    return T(a.real() / std::abs(b.real()), a.imag() / std::abs(b.real()));
                }
                const part ratio = b.imag() / b.real();
                const part scale = part(1) / (b.real() + b.imag() * ratio);
                return T((a.real() + a.imag() * ratio) * scale, (a.imag() - a.real() * ratio) * scale);
            }
            const part ratio = b.real() / b.imag();
            const part scale = part(1) / (b.imag() + b.real() * ratio);
            return T((a.real() * ratio + a.imag()) * scale, (a.imag() * ratio - a.real()) * scale);
        }
    }
};

struct bit_and {
    template <class T>
    T operator()(T a, T b) const noexcept {
        return static_cast<T>(a & b);
    }
};
struct bit_or {
    template <class T>
    T operator()(T a, T b) const noexcept {
        return static_cast<T>(a | b);
    }
};
struct bit_xor {
    template <class T>
    T operator()(T a, T b) const noexcept {
        return static_cast<T>(a ^ b);
    }
};

struct negate {
    template <class T>
    T operator()(T a) const noexcept {
        if constexpr (std::is_integral_v<T>) {
            return static_cast<T>(wide<T>(0) - static_cast<wide<T>>(a));
        } else {
            return -a;
        }
    }
};
struct invert {
    template <class T>
    T operator()(T a) const noexcept {
        if constexpr (std::is_same_v<T, bool>) {
            return !a;
        } else {
            return static_cast<T>(~a);
        }
    }
};

template <class F>
binary for_type(dtype type) noexcept {
    return detail::visit(type, []<class T>(std::type_identity<T>) -> binary {
        constexpr bool is_bool = std::is_same_v<T, bool>;
        constexpr bool bits = std::is_same_v<F, bit_and> || std::is_same_v<F, bit_or> || std::is_same_v<F, bit_xor>;
        constexpr bool fits = std::is_same_v<F, divide>     ? !std::is_integral_v<T>
                              : std::is_same_v<F, subtract> ? !is_bool
                                                            : !bits || std::is_integral_v<T>;
        if constexpr (detail::is_short_float<T> || !fits) {
            return nullptr;
        } else if constexpr (std::is_integral_v<T> && !is_bool) {
            return each<std::make_unsigned_t<T>, F>;  // the same bits with and without sign
        } else {
            return each<T, F>;
        }
    });
}

}  // namespace

binary arithmetic(binary_operation what, dtype type) noexcept {
    switch (what) {
        case binary_operation::add:
            return for_type<add>(type);
        case binary_operation::subtract:
            return for_type<subtract>(type);
        case binary_operation::multiply:
            return for_type<multiply>(type);
        case binary_operation::divide:
            return for_type<divide>(type);
        case binary_operation::bitwise_and:
            return for_type<bit_and>(type);
        case binary_operation::bitwise_or:
            return for_type<bit_or>(type);
        case binary_operation::bitwise_xor:
            return for_type<bit_xor>(type);
        default:
            return nullptr;
    }
}

binary_loop find(binary_operation what, dtype type) noexcept {
    dtype in = computed_in(type);
    if (is_comparison(what)) {
        return {comparison(what, in), in, in, dtype::bool_};
    }
    if (what == binary_operation::power) {
        in = in == dtype::bool_ ? dtype::int8 : in;
        return {power(in), in, in, type == dtype::bool_ ? dtype::int8 : type};
    }
    if (what == binary_operation::divide && kind_of(type) < dtype_kind::real) {
        in = type = dtype::float64;
    }
    return {arithmetic(what, in), in, in, type};
}

unary_loop find(unary_operation what, dtype type) noexcept {
    const dtype in = computed_in(type);
    const unary run = detail::visit(in, [&]<class T>(std::type_identity<T>) -> unary {
        if constexpr (detail::is_short_float<T>) {
            return nullptr;
        } else if constexpr (std::is_integral_v<T>) {
            if constexpr (std::is_same_v<T, bool>) {
                return what == unary_operation::invert ? unary(each<T, invert>) : nullptr;
            } else {
                using bits = std::make_unsigned_t<T>;
                return what == unary_operation::invert ? unary(each<bits, invert>) : unary(each<bits, negate>);
            }
        } else {
            return what == unary_operation::negative ? unary(each<T, negate>) : nullptr;
        }
    });
    return {run, in, type};
}

}  // namespace weir::loops
