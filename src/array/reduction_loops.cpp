#include "array/reduction_loops.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstring>
#include <type_traits>

#include "array/visit.hpp"

namespace weir::loops {

namespace {

template <class T>
T taken(const partial* from) noexcept {
    T value;
    std::memcpy(&value, from->bytes, sizeof value);
    return value;
}

template <class T>
void put(const T& value, partial* to) noexcept {
    std::memcpy(to->bytes, &value, sizeof value);
}

struct plus {
    template <class T>
    T operator()(const T& a, const T& b) const noexcept {
        if constexpr (std::is_integral_v<T>) {
            using bits = std::make_unsigned_t<T>;
            return static_cast<T>(static_cast<bits>(a) + static_cast<bits>(b));
        } else {
            return a + b;
        }
    }
};

template <class T>
bool is_nan(const T& value) noexcept {
    return value != value;  // NOLINT(misc-redundant-expression): complex numbers have no std::isnan
}

template <class T>
bool is_less(const T& a, const T& b) noexcept {
    if constexpr (detail::is_complex_element<T>) {
        return a.real() < b.real() || (a.real() == b.real() && a.imag() < b.imag());
    } else {
        return a < b;
    }
}

struct lesser {
    template <class T>
    T operator()(const T& a, const T& b) const noexcept {
        return is_less(b, a) || is_nan(b) ? (is_nan(a) ? a : b) : a;
    }
};
struct larger {
    template <class T>
    T operator()(const T& a, const T& b) const noexcept {
        return is_less(a, b) || is_nan(b) ? (is_nan(a) ? a : b) : a;
    }
};

/// In several lanes at once, then the lanes in pairs: fast, and for sums with a smaller error than one after the other.
template <class T, class F>
void many(const std::byte* elements, std::size_t count, partial* result) noexcept {
    constexpr std::size_t lanes = 8;
    const auto* const x = reinterpret_cast<const T*>(elements);
    if (count < lanes) {
        T value = x[0];
        for (std::size_t i = 1; i < count; ++i) {
            value = F()(value, x[i]);
        }
        return put(value, result);
    }
    std::array<T, lanes> lane;
    std::copy_n(x, lanes, lane.begin());
    std::size_t i = lanes;
    for (; i + lanes <= count; i += lanes) {
        for (std::size_t k = 0; k < lanes; ++k) {
            lane[k] = F()(lane[k], x[i + k]);
        }
    }
    for (std::size_t k = 0; i < count; ++i, ++k) {
        lane[k] = F()(lane[k], x[i]);
    }
    for (std::size_t half = lanes / 2; half > 0; half /= 2) {
        for (std::size_t k = 0; k < half; ++k) {
            lane[k] = F()(lane[k], lane[k + half]);
        }
    }
    put(lane[0], result);
}

template <class T, class F>
void two(partial* into, const partial* other) noexcept {
    put(F()(taken<T>(into), taken<T>(other)), into);
}

template <class T>
void divide(partial* by, std::int64_t count) noexcept {
    if constexpr (!std::is_integral_v<T>) {
        if constexpr (detail::is_complex_element<T>) {
            put(taken<T>(by) / static_cast<typename T::value_type>(count), by);
        } else {
            put(taken<T>(by) / static_cast<T>(count), by);
        }
    }
}

template <class F>
reducer for_type(dtype computed, dtype result) noexcept {
    return detail::visit(computed, [&]<class T>(std::type_identity<T>) -> reducer {
        constexpr bool is_bool = std::is_same_v<T, bool>;
        if constexpr (detail::is_short_float<T> || (is_bool && std::is_same_v<F, plus>)) {
            return {};
        } else {
            return {many<T, F>, two<T, F>, divide<T>, computed, result};
        }
    });
}

dtype summed_in(dtype type) noexcept {
    switch (kind_of(type)) {
        case dtype_kind::boolean:
        case dtype_kind::signed_integer:
            return dtype::int64;
        case dtype_kind::unsigned_integer:
            return dtype::uint64;
        case dtype_kind::real:
            return dtype::float64;
        case dtype_kind::complex:
            break;
    }
    return dtype::complex128;
}

}  // namespace

reducer find(reduction what, dtype type) noexcept {
    const bool short_float = type == dtype::float16 || type == dtype::bfloat16;
    const dtype compared_in = short_float ? dtype::float32 : type;
    const bool integer = kind_of(type) < dtype_kind::real;
    switch (what) {
        case reduction::sum:
            return for_type<plus>(summed_in(type), integer ? summed_in(type) : type);
        case reduction::min:
            return for_type<lesser>(compared_in, type);
        case reduction::max:
            return for_type<larger>(compared_in, type);
        case reduction::mean:
            break;
    }
    return for_type<plus>(is_complex(type) ? dtype::complex128 : dtype::float64, integer ? dtype::float64 : type);
}

}  // namespace weir::loops
