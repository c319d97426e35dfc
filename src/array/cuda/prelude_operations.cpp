#include "array/cuda/prelude.hpp"

namespace weir::array_kernels {

// Must match loops_arithmetic.cpp and loops_comparison.cpp.
const char* const prelude_operations = R"cuda(
namespace weir {

struct add {
    template <class T>
    __device__ T operator()(T a, T b) const {
        if constexpr (is_same<T, bool>) {
            return a || b;
        } else if constexpr (is_integral<T>) {
            return static_cast<T>(static_cast<wide<T>>(a) + static_cast<wide<T>>(b));
        } else if constexpr (is_complex<T>) {
            return T{a.real + b.real, a.imag + b.imag};
        } else {
            return a + b;
        }
    }
};
struct subtract {
    template <class T>
    __device__ T operator()(T a, T b) const {
        if constexpr (is_integral<T>) {
            return static_cast<T>(static_cast<wide<T>>(a) - static_cast<wide<T>>(b));
        } else if constexpr (is_complex<T>) {
            return T{a.real - b.real, a.imag - b.imag};
        } else {
            return a - b;
        }
    }
};
struct multiply {
    template <class T>
    __device__ T operator()(T a, T b) const {
        if constexpr (is_same<T, bool>) {
            return a && b;
        } else if constexpr (is_integral<T>) {
            return static_cast<T>(static_cast<wide<T>>(a) * static_cast<wide<T>>(b));
        } else if constexpr (is_complex<T>) {
            return T{a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real};
        } else {
            return a * b;
        }
    }
};
struct divide {
    template <class T>
    __device__ T operator()(T a, T b) const {
        if constexpr (!is_complex<T>) {
            return a / b;
        } else {
            using part = typename part_of<T>::type;
            const part real = b.real < 0 ? -b.real : b.real;
            const part imag = b.imag < 0 ? -b.imag : b.imag;
            if (real >= imag) {
                if (b.real == 0 && b.imag == 0) {
                    const part zero = 0;
                    return T{a.real / zero, a.imag / zero};
                }
                const part ratio = b.imag / b.real;
                const part scale = part(1) / (b.real + b.imag * ratio);
                return T{(a.real + a.imag * ratio) * scale, (a.imag - a.real * ratio) * scale};
            }
            const part ratio = b.real / b.imag;
            const part scale = part(1) / (b.imag + b.real * ratio);
            return T{(a.real * ratio + a.imag) * scale, (a.imag * ratio - a.real) * scale};
        }
    }
};

struct bitwise_and {
    template <class T>
    __device__ T operator()(T a, T b) const {
        return static_cast<T>(a & b);
    }
};
struct bitwise_or {
    template <class T>
    __device__ T operator()(T a, T b) const {
        return static_cast<T>(a | b);
    }
};
struct bitwise_xor {
    template <class T>
    __device__ T operator()(T a, T b) const {
        return static_cast<T>(a ^ b);
    }
};

// Of two types these are uint64 and int64, which are compared by their values.
struct equal {
    template <class T>
    __device__ bool operator()(T a, T b) const {
        if constexpr (is_complex<T>) {
            return a.real == b.real && a.imag == b.imag;
        } else {
            return a == b;
        }
    }
    __device__ bool operator()(uint64 a, int64 b) const { return b >= 0 && a == static_cast<uint64>(b); }
    __device__ bool operator()(int64 a, uint64 b) const { return a >= 0 && static_cast<uint64>(a) == b; }
};
// Neither imaginary part is NaN.
template <class T>
__device__ inline bool are_ordered(T a, T b) {
    return a.imag == a.imag && b.imag == b.imag;
}
struct less {
    template <class T>
    __device__ bool operator()(T a, T b) const {
        if constexpr (is_complex<T>) {
            return are_ordered(a, b) && (a.real < b.real || (a.real == b.real && a.imag < b.imag));
        } else {
            return a < b;
        }
    }
    __device__ bool operator()(uint64 a, int64 b) const { return b >= 0 && a < static_cast<uint64>(b); }
    __device__ bool operator()(int64 a, uint64 b) const { return a < 0 || static_cast<uint64>(a) < b; }
};
struct less_equal {
    template <class T>
    __device__ bool operator()(T a, T b) const {
        if constexpr (is_complex<T>) {
            return are_ordered(a, b) && (a.real < b.real || (a.real == b.real && a.imag <= b.imag));
        } else {
            return a <= b;
        }
    }
    __device__ bool operator()(uint64 a, int64 b) const { return b >= 0 && a <= static_cast<uint64>(b); }
    __device__ bool operator()(int64 a, uint64 b) const { return a < 0 || static_cast<uint64>(a) <= b; }
};
struct not_equal {
    template <class A, class B>
    __device__ bool operator()(A a, B b) const {
        return !equal()(a, b);
    }
};
struct greater {
    template <class A, class B>
    __device__ bool operator()(A a, B b) const {
        return less()(b, a);
    }
};
struct greater_equal {
    template <class A, class B>
    __device__ bool operator()(A a, B b) const {
        return less_equal()(b, a);
    }
};

struct negative {
    template <class T>
    __device__ T operator()(T a) const {
        if constexpr (is_integral<T>) {
            return static_cast<T>(wide<T>(0) - static_cast<wide<T>>(a));
        } else if constexpr (is_complex<T>) {
            return T{-a.real, -a.imag};
        } else {
            return -a;
        }
    }
};
struct invert {
    template <class T>
    __device__ T operator()(T a) const {
        if constexpr (is_same<T, bool>) {
            return !a;
        } else {
            return static_cast<T>(~a);
        }
    }
};
struct select {
    template <class T>
    __device__ T operator()(bool condition, T a, T b) const {
        return condition ? a : b;
    }
};
struct same {
    template <class T>
    __device__ T operator()(T a) const {
        return a;
    }
};

}  // namespace weir
)cuda";

// Must match loops_power.cpp for integers; real numbers have the results of the device's pow.
const char* const prelude_power = R"cuda(
namespace weir {

// |x| as its logarithm, without loss where it is near 1.
__device__ inline double log_of_magnitude(double a, double b) {
    a = fabs(a);
    b = fabs(b);
    const double most = a > b ? a : b;
    const double least = a > b ? b : a;
    if (most > 0.5 && most < 2.0) {
        return 0.5 * log1p((most - 1.0) * (most + 1.0) + least * least);
    }
    return log(hypot(a, b));
}

__device__ inline complex128 exponential(double real, double imag) {
    if (imag == 0) {
        return complex128{exp(real), imag};
    }
    const double size = exp(real);
    const bool finite = imag - imag == 0;
    if (!finite && size == 0) {
        return complex128{0, 0};
    }
    if (!finite && size - size != 0 && real == real) {
        return complex128{size, imag - imag};
    }
    return complex128{size * cos(imag), size * sin(imag)};
}

// As in loops_power.cpp.
template <class T>
__device__ inline T multiplied_out(T base, int exponent) {
    unsigned left = exponent < 0 ? -exponent : exponent;
    T square = base;
    for (; (left & 1U) == 0; left >>= 1U) {
        square = multiply()(square, square);
    }
    T product = square;
    while ((left >>= 1U) != 0) {
        square = multiply()(square, square);
        if ((left & 1U) != 0) {
            product = multiply()(product, square);
        }
    }
    return exponent < 0 ? divide()(T{1, 0}, product) : product;
}

struct power {
    int* negative_exponent;  // set where integers have one

    template <class T>
    __device__ T operator()(T base, T exponent) const {
        if constexpr (is_complex<T>) {
            if (exponent.real == 0 && exponent.imag == 0) {
                return T{1, 0};
            }
            if (exponent.imag == 0 && exponent.real >= -99 && exponent.real <= 99 &&
                exponent.real == static_cast<int>(exponent.real) &&
                (base.real != 0 || base.imag != 0 || exponent.real > 0)) {
                return multiplied_out(base, static_cast<int>(exponent.real));
            }
            const double size = log_of_magnitude(base.real, base.imag);
            const double angle = atan2(static_cast<double>(base.imag), static_cast<double>(base.real));
            const double a = exponent.real;
            const double b = exponent.imag;
            return convert<T>(exponential(a * size - (b == 0 ? 0 : b * angle), a * angle + (b == 0 ? 0 : b * size)));
        } else if constexpr (is_same<T, float>) {
            return powf(base, exponent);
        } else if constexpr (is_same<T, double>) {
            return pow(base, exponent);
        } else {
            if constexpr (is_signed<T>) {
                if (exponent < 0) {
                    *negative_exponent = 1;
                    return 0;
                }
            }
            wide<T> product = 1;
            wide<T> square = static_cast<wide<T>>(base);
            for (wide<T> left = static_cast<wide<T>>(exponent); left != 0; left >>= 1U) {
                product *= (left & 1U) != 0 ? square : 1;
                square *= square;
            }
            return static_cast<T>(product);
        }
    }
};

}  // namespace weir
)cuda";

// Must match reduction_loops.cpp.
const char* const prelude_reductions = R"cuda(
namespace weir {

template <class T>
__device__ inline bool is_nan(T value) {
    if constexpr (is_complex<T>) {
        return value.real != value.real || value.imag != value.imag;
    } else {
        return value != value;
    }
}
template <class T>
__device__ inline bool is_less(T a, T b) {
    if constexpr (is_complex<T>) {
        return a.real < b.real || (a.real == b.real && a.imag < b.imag);
    } else {
        return a < b;
    }
}

struct plus {
    template <class T>
    __device__ T operator()(T a, T b) const {
        if constexpr (is_complex<T>) {
            return T{a.real + b.real, a.imag + b.imag};
        } else if constexpr (is_integral<T>) {
            return static_cast<T>(static_cast<uint64>(a) + static_cast<uint64>(b));
        } else {
            return a + b;
        }
    }
};
struct lesser {
    template <class T>
    __device__ T operator()(T a, T b) const {
        return is_less(b, a) || is_nan(b) ? (is_nan(a) ? a : b) : a;
    }
};
struct larger {
    template <class T>
    __device__ T operator()(T a, T b) const {
        return is_less(a, b) || is_nan(b) ? (is_nan(a) ? a : b) : a;
    }
};

template <class T>
__device__ inline T divided(T sum, uint64 count) {
    if constexpr (is_complex<T>) {
        using part = typename part_of<T>::type;
        return T{sum.real / static_cast<part>(count), sum.imag / static_cast<part>(count)};
    } else {
        return sum / static_cast<T>(count);
    }
}

}  // namespace weir
)cuda";

// Must match philox.hpp.
const char* const prelude_random = R"cuda(
namespace weir {

struct words {
    uint32 of[4];
};

__device__ inline words philox(uint64 seed, uint64 block) {
    words counter{{static_cast<uint32>(block), static_cast<uint32>(block >> 32U), 0, 0}};
    uint32 key[2] = {static_cast<uint32>(seed), static_cast<uint32>(seed >> 32U)};
    for (int round = 0; round < 10; ++round) {
        const uint64 a = uint64(0xD2511F53U) * counter.of[0];
        const uint64 b = uint64(0xCD9E8D57U) * counter.of[2];
        counter = words{{static_cast<uint32>(b >> 32U) ^ counter.of[1] ^ key[0], static_cast<uint32>(b),
                         static_cast<uint32>(a >> 32U) ^ counter.of[3] ^ key[1], static_cast<uint32>(a)}};
        key[0] += 0x9E3779B9U;
        key[1] += 0xBB67AE85U;
    }
    return counter;
}

template <class T>
__device__ inline T random_number(const words& from, uint32 which) {
    if constexpr (is_same<T, float>) {
        return static_cast<float>(from.of[which] >> 8U) * (1.0F / 16777216.0F);
    } else {
        const uint64 both = static_cast<uint64>(from.of[2 * which + 1]) << 32U | from.of[2 * which];
        return static_cast<double>(both >> 11U) * (1.0 / 9007199254740992.0);
    }
}

}  // namespace weir
)cuda";

}  // namespace weir::array_kernels
