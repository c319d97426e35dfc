#include "array/cuda/prelude.hpp"

namespace weir::array_kernels {

// Must match convert.hpp and float16.hpp. Bits are read through unions: there is no bit_cast without headers.
const char* const prelude_types = R"cuda(
namespace weir {

using int8 = signed char;
using int16 = short;
using int32 = int;
using int64 = long long;
using uint8 = unsigned char;
using uint16 = unsigned short;
using uint32 = unsigned int;
using uint64 = unsigned long long;
using float32 = float;
using float64 = double;

struct float16 {
    uint16 bits;
};
struct bfloat16 {
    uint16 bits;
};
// With the constructors of std::complex. Trivial without arguments, so that it can lie in unions and in shared memory.
template <class Part>
struct complex {
    Part real;
    Part imag;

    complex() = default;
    __device__ inline complex(Part re, Part im = 0) : real(re), imag(im) {}
    template <class Other>
    __device__ inline explicit complex(const complex<Other>& from)
        : real(static_cast<Part>(from.real)), imag(static_cast<Part>(from.imag)) {}
};
using complex64 = complex<float>;
using complex128 = complex<double>;

template <class A, class B>
inline constexpr bool is_same = false;
template <class A>
inline constexpr bool is_same<A, A> = true;
template <class T>
inline constexpr bool is_complex = is_same<T, complex64> || is_same<T, complex128>;
template <class T>
inline constexpr bool is_short = is_same<T, float16> || is_same<T, bfloat16>;
template <class T>
inline constexpr bool is_real = is_same<T, float> || is_same<T, double>;
template <class T>
inline constexpr bool is_integral = !is_complex<T> && !is_short<T> && !is_real<T>;
template <class T>
inline constexpr bool is_signed =
    is_same<T, int8> || is_same<T, int16> || is_same<T, int32> || is_same<T, int64>;

template <class T>
struct part_of {
    using type = T;
};
template <class Part>
struct part_of<complex<Part>> {
    using type = Part;
};

// Integers without sign in which those of T wrap: wide enough that nothing is promoted to a type with sign.
template <class T>
struct wide_of {
    using type = uint32;
};
template <>
struct wide_of<int64> {
    using type = uint64;
};
template <>
struct wide_of<uint64> {
    using type = uint64;
};
template <class T>
using wide = typename wide_of<T>::type;

union float_bits {
    float value;
    uint32 bits;
};
__device__ inline uint32 bits_of(float value) {
    float_bits both;
    both.value = value;
    return both.bits;
}
__device__ inline float float_of(uint32 bits) {
    float_bits both;
    both.bits = bits;
    return both.value;
}

// Rounding to odd: rounded once more, to fewer bits, the result is that of rounding the value itself.
__device__ inline float round_to_odd(double value) {
    const float nearest = static_cast<float>(value);
    const double back = static_cast<double>(nearest);
    if (back == value || value != value) {
        return nearest;
    }
    const bool too_large = (back < 0 ? -back : back) > (value < 0 ? -value : value);
    return float_of((bits_of(nearest) - (too_large ? 1U : 0U)) | 1U);
}
template <class Integer>
__device__ inline double round_to_odd_double(Integer value) {
    if constexpr (sizeof(Integer) < 8) {
        return static_cast<double>(value);
    } else {
        const bool negative = is_signed<Integer> && value < 0;
        uint64 magnitude = static_cast<uint64>(value);
        magnitude = negative ? uint64(0) - magnitude : magnitude;
        if (magnitude >> 53U != 0) {
            magnitude = ((magnitude >> 11U) | ((magnitude & 2047U) != 0 ? 1U : 0U)) << 11U;
        }
        const double rounded = static_cast<double>(magnitude);
        return negative ? -rounded : rounded;
    }
}

__device__ inline uint16 float16_bits(float value) {
    const uint32 bits = bits_of(value);
    const uint32 magnitude = bits & 0x7fffffffU;
    const uint32 normal = (magnitude - (112U << 23U) + 0xfffU + (magnitude >> 13U & 1U)) >> 13U;
    const uint32 small = bits_of(float_of(magnitude) + 0.5F) - 0x3f000000U;
    const uint32 nan = 0x7e00U | ((magnitude >> 13U) & 0x3ffU);
    uint32 rounded = magnitude < 0x38800000U ? small : normal;
    rounded = magnitude >= 0x47800000U || rounded > 0x7c00U ? 0x7c00U : rounded;
    rounded = magnitude > 0x7f800000U ? nan : rounded;
    return static_cast<uint16>((bits >> 16U & 0x8000U) | rounded);
}
__device__ inline float float16_value(uint16 bits) {
    const uint32 magnitude = bits & 0x7fffU;
    const float scaled = float_of(magnitude << 13U) * 5192296858534827628530496329220096.0F;  // 2 to the 112
    const uint32 special = magnitude >= 0x7c00U ? 0x7f800000U : 0U;
    return float_of(bits_of(scaled) | special | (static_cast<uint32>(bits) & 0x8000U) << 16U);
}
__device__ inline uint16 bfloat16_bits(float value) {
    const uint32 bits = bits_of(value);
    const uint32 rounded = (bits + 0x7fffU + (bits >> 16U & 1U)) >> 16U;
    const bool nan = (bits & 0x7fffffffU) > 0x7f800000U;
    return static_cast<uint16>(nan ? (bits >> 16U) | 0x40U : rounded);
}
__device__ inline float bfloat16_value(uint16 bits) { return float_of(static_cast<uint32>(bits) << 16U); }

template <class T>
__device__ inline float widened(T value) {
    if constexpr (is_same<T, float16>) {
        return float16_value(value.bits);
    } else {
        return bfloat16_value(value.bits);
    }
}
template <class T>
__device__ inline T narrowed(float value) {
    if constexpr (is_same<T, float16>) {
        return T{float16_bits(value)};
    } else {
        return T{bfloat16_bits(value)};
    }
}

template <class Integer, class Real>
__device__ inline Integer to_integer(Real value) {
    constexpr Real limit = static_cast<Real>(9223372036854775808.0);  // 2 to the 63
    if (value >= -limit && value < limit) {
        return static_cast<Integer>(static_cast<int64>(value));
    }
    if (is_same<Integer, uint64> && value >= limit && value < 2 * limit) {
        return static_cast<Integer>(static_cast<uint64>(value));
    }
    return static_cast<Integer>(static_cast<int64>(uint64(1) << 63U));
}

template <class To, class From>
__device__ inline To convert(From from) {
    if constexpr (is_same<To, From>) {
        return from;
    } else if constexpr (is_complex<From>) {
        if constexpr (is_same<To, bool>) {
            return from.real != 0 || from.imag != 0;
        } else if constexpr (is_complex<To>) {
            using part = typename part_of<To>::type;
            return To{static_cast<part>(from.real), static_cast<part>(from.imag)};
        } else {
            return convert<To>(from.real);
        }
    } else if constexpr (is_short<From>) {
        return convert<To>(widened(from));
    } else if constexpr (is_same<To, bool>) {
        return from != From(0);
    } else if constexpr (is_complex<To>) {
        return To{convert<typename part_of<To>::type>(from), 0};
    } else if constexpr (is_short<To>) {
        if constexpr (is_same<From, float>) {
            return narrowed<To>(from);
        } else if constexpr (is_same<From, double>) {
            return narrowed<To>(round_to_odd(from));
        } else {
            return narrowed<To>(round_to_odd(round_to_odd_double(from)));
        }
    } else if constexpr (is_real<From> && is_integral<To>) {
        return to_integer<To>(from);
    } else {
        return static_cast<To>(from);
    }
}

}  // namespace weir
)cuda";

}  // namespace weir::array_kernels
