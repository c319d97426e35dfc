#include "array/elements/prelude.hpp"

namespace weir::elements {

namespace {

#define WEIR_USE(from)                                                                               \
    "using " from "sqrt; using " from "cbrt; using " from "sin; using " from "cos; using " from      \
    "tan;\n"                                                                                         \
    "using " from "asin; using " from "acos; using " from "atan; using " from "sinh; using " from    \
    "cosh;\n"                                                                                        \
    "using " from "tanh; using " from "asinh; using " from "acosh; using " from "atanh; using " from \
    "exp;\n"                                                                                         \
    "using " from "exp2; using " from "expm1; using " from "log; using " from "log2; using " from    \
    "log10;\n"                                                                                       \
    "using " from "log1p; using " from "fabs; using " from "floor; using " from "ceil; using " from  \
    "trunc;\n"                                                                                       \
    "using " from "round; using " from "rint; using " from "erf; using " from "erfc; using " from    \
    "tgamma;\n"                                                                                      \
    "using " from "lgamma; using " from "pow; using " from "atan2; using " from "fmod; using " from  \
    "hypot;\n"                                                                                       \
    "using " from "fmin; using " from "fmax; using " from "copysign; using " from "fma; using " from \
    "isnan;\n"                                                                                       \
    "using " from "isinf; using " from "isfinite; using " from "abs; using " from "ldexp;\n"

}  // namespace

const char* const prelude_host_functions = "\nnamespace weir {\n" WEIR_USE("std::") R"(
// Without these, the functions of C would be found, which compute in double. On CUDA devices they are global.
using std::fdim; using std::logb; using std::nearbyint; using std::nextafter; using std::remainder; using std::signbit;
// As on CUDA devices: single precision stays what it is beside an integer exponent.
inline float pow(float x, int y) { return ::powf(x, static_cast<float>(y)); }
inline float rsqrt(float x) { return 1.0F / ::sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / ::sqrt(x); }
}  // namespace weir
)";

const char* const prelude_cuda_functions = "\nnamespace weir {\n" WEIR_USE("::") R"(
using ::rsqrt;
}  // namespace weir
)";

#undef WEIR_USE

const char* const prelude_common = R"cuda(
namespace weir {

template <class A, class B>
__device__ inline auto min(A a, B b) -> decltype(a + b) {
    return b < a ? b : a;
}
template <class A, class B>
__device__ inline auto max(A a, B b) -> decltype(a + b) {
    return a < b ? b : a;
}

template <bool Is, class T>
struct only_if {};
template <class T>
struct only_if<true, T> {
    using type = T;
};
template <class T>
inline constexpr bool is_number = is_real<T> || is_same<T, int> || is_same<T, unsigned> || is_same<T, long> ||
                                  is_same<T, unsigned long> || is_same<T, long long> || is_same<T, unsigned long long> ||
                                  is_same<T, short> || is_same<T, unsigned short> || is_same<T, signed char> ||
                                  is_same<T, unsigned char> || is_same<T, char> || is_same<T, bool>;
/// The result where a complex number meets a real one.
template <class Part, class Number>
using beside = typename only_if<is_number<Number>, complex<Part>>::type;

template <class P>
__device__ inline complex<P> operator+(complex<P> a, complex<P> b) { return {a.real + b.real, a.imag + b.imag}; }
template <class P>
__device__ inline complex<P> operator-(complex<P> a, complex<P> b) { return {a.real - b.real, a.imag - b.imag}; }
template <class P>
__device__ inline complex<P> operator*(complex<P> a, complex<P> b) {
    return {a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real};
}
// Smith's method: no intermediate result is out of range where the quotient is not.
template <class P>
__device__ inline complex<P> operator/(complex<P> a, complex<P> b) {
    if (fabs(b.real) >= fabs(b.imag)) {
        const P ratio = b.imag / b.real;
        const P scale = b.real + b.imag * ratio;
        return {(a.real + a.imag * ratio) / scale, (a.imag - a.real * ratio) / scale};
    }
    const P ratio = b.real / b.imag;
    const P scale = b.real * ratio + b.imag;
    return {(a.real * ratio + a.imag) / scale, (a.imag * ratio - a.real) / scale};
}
template <class P, class N>
__device__ inline beside<P, N> operator+(complex<P> a, N b) { return {a.real + static_cast<P>(b), a.imag}; }
template <class P, class N>
__device__ inline beside<P, N> operator-(complex<P> a, N b) { return {a.real - static_cast<P>(b), a.imag}; }
template <class P, class N>
__device__ inline beside<P, N> operator*(complex<P> a, N b) {
    return {a.real * static_cast<P>(b), a.imag * static_cast<P>(b)};
}
template <class P, class N>
__device__ inline beside<P, N> operator/(complex<P> a, N b) {
    return {a.real / static_cast<P>(b), a.imag / static_cast<P>(b)};
}
template <class P, class N>
__device__ inline beside<P, N> operator+(N a, complex<P> b) { return {static_cast<P>(a) + b.real, b.imag}; }
template <class P, class N>
__device__ inline beside<P, N> operator-(N a, complex<P> b) { return {static_cast<P>(a) - b.real, -b.imag}; }
template <class P, class N>
__device__ inline beside<P, N> operator*(N a, complex<P> b) {
    return {static_cast<P>(a) * b.real, static_cast<P>(a) * b.imag};
}
template <class P, class N>
__device__ inline beside<P, N> operator/(N a, complex<P> b) { return complex<P>{static_cast<P>(a), 0} / b; }
template <class P>
__device__ inline complex<P> operator+(complex<P> a) { return a; }
template <class P>
__device__ inline complex<P> operator-(complex<P> a) { return {-a.real, -a.imag}; }
template <class P>
__device__ inline bool operator==(complex<P> a, complex<P> b) { return a.real == b.real && a.imag == b.imag; }
template <class P>
__device__ inline bool operator!=(complex<P> a, complex<P> b) { return !(a == b); }
template <class P, class N>
__device__ inline typename only_if<is_number<N>, bool>::type operator==(complex<P> a, N b) {
    return a.real == static_cast<P>(b) && a.imag == 0;
}
template <class P, class N>
__device__ inline typename only_if<is_number<N>, bool>::type operator==(N a, complex<P> b) { return b == a; }
template <class P, class N>
__device__ inline typename only_if<is_number<N>, bool>::type operator!=(complex<P> a, N b) { return !(a == b); }
template <class P, class N>
__device__ inline typename only_if<is_number<N>, bool>::type operator!=(N a, complex<P> b) { return !(b == a); }
template <class P, class B>
__device__ inline complex<P>& operator+=(complex<P>& a, B b) { return a = a + b; }
template <class P, class B>
__device__ inline complex<P>& operator-=(complex<P>& a, B b) { return a = a - b; }
template <class P, class B>
__device__ inline complex<P>& operator*=(complex<P>& a, B b) { return a = a * b; }
template <class P, class B>
__device__ inline complex<P>& operator/=(complex<P>& a, B b) { return a = a / b; }

template <class P>
__device__ inline complex<P> conj(complex<P> a) { return {a.real, -a.imag}; }
template <class P>
__device__ inline P real(complex<P> a) { return a.real; }
template <class P>
__device__ inline P imag(complex<P> a) { return a.imag; }
template <class P>
__device__ inline P abs(complex<P> a) { return hypot(a.real, a.imag); }
template <class P>
__device__ inline P arg(complex<P> a) { return atan2(a.imag, a.real); }
template <class P>
__device__ inline complex<P> exp(complex<P> a) {
    const P size = exp(a.real);
    return {size * cos(a.imag), size * sin(a.imag)};
}

/// What an output becomes that the body assigns `value`: converted as C++ does. A complex number does not become a real one.
template <class To, class From>
__device__ inline To assigned(const From& value) {
    if constexpr (is_complex<To> && is_complex<From>) {
        return convert<To>(value);
    } else if constexpr (is_complex<To>) {
        return To{static_cast<typename part_of<To>::type>(value), 0};
    } else {
        return static_cast<To>(value);
    }
}

}  // namespace weir
)cuda";

}  // namespace weir::elements
