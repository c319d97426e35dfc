// The functions of CUDA C++ on numbers.
#pragma once

namespace weir_shim {
template <class Integer>
struct if_integer {};
template <>
struct if_integer<int> {
    using type = double;
};
template <>
struct if_integer<unsigned> {
    using type = double;
};
template <>
struct if_integer<long> {
    using type = double;
};
template <>
struct if_integer<unsigned long> {
    using type = double;
};
template <>
struct if_integer<long long> {
    using type = double;
};
template <>
struct if_integer<unsigned long long> {
    using type = double;
};
template <class To, class From>
To bits_of(From from) {
    static_assert(sizeof(To) == sizeof(From), "the sizes differ");
    To to;
    __builtin_memcpy(&to, &from, sizeof to);
    return to;
}
}  // namespace weir_shim

extern "C" void* memcpy(void*, const void*, decltype(sizeof 0)) noexcept;
extern "C" void* memset(void*, int, decltype(sizeof 0)) noexcept;
extern "C" void* memmove(void*, const void*, decltype(sizeof 0)) noexcept;

#define WEIR_SHIM_UNARY(name)                                       \
    extern "C" double name(double) noexcept;                        \
    extern "C" float name##f(float) noexcept;                       \
    inline float name(float x) { return name##f(x); }               \
    template <class Integer>                                        \
    typename weir_shim::if_integer<Integer>::type name(Integer x) { \
        return name(static_cast<double>(x));                        \
    }
#define WEIR_SHIM_BINARY(name)                       \
    extern "C" double name(double, double) noexcept; \
    extern "C" float name##f(float, float) noexcept; \
    inline float name(float x, float y) { return name##f(x, y); }
WEIR_SHIM_UNARY(sqrt)
WEIR_SHIM_UNARY(cbrt)
WEIR_SHIM_UNARY(sin)
WEIR_SHIM_UNARY(cos)
WEIR_SHIM_UNARY(tan)
WEIR_SHIM_UNARY(asin)
WEIR_SHIM_UNARY(acos)
WEIR_SHIM_UNARY(atan)
WEIR_SHIM_UNARY(sinh)
WEIR_SHIM_UNARY(cosh)
WEIR_SHIM_UNARY(tanh)
WEIR_SHIM_UNARY(asinh)
WEIR_SHIM_UNARY(acosh)
WEIR_SHIM_UNARY(atanh)
WEIR_SHIM_UNARY(exp)
WEIR_SHIM_UNARY(exp2)
WEIR_SHIM_UNARY(exp10)
WEIR_SHIM_UNARY(expm1)
WEIR_SHIM_UNARY(log)
WEIR_SHIM_UNARY(log2)
WEIR_SHIM_UNARY(log10)
WEIR_SHIM_UNARY(log1p)
WEIR_SHIM_UNARY(logb)
WEIR_SHIM_UNARY(fabs)
WEIR_SHIM_UNARY(floor)
WEIR_SHIM_UNARY(ceil)
WEIR_SHIM_UNARY(trunc)
WEIR_SHIM_UNARY(round)
WEIR_SHIM_UNARY(rint)
WEIR_SHIM_UNARY(nearbyint)
WEIR_SHIM_UNARY(erf)
WEIR_SHIM_UNARY(erfc)
WEIR_SHIM_UNARY(tgamma)
WEIR_SHIM_UNARY(lgamma)
WEIR_SHIM_BINARY(pow)
WEIR_SHIM_BINARY(atan2)
WEIR_SHIM_BINARY(fmod)
WEIR_SHIM_BINARY(remainder)
WEIR_SHIM_BINARY(hypot)
WEIR_SHIM_BINARY(fmin)
WEIR_SHIM_BINARY(fmax)
WEIR_SHIM_BINARY(fdim)
WEIR_SHIM_BINARY(copysign)
WEIR_SHIM_BINARY(nextafter)
inline double pow(double x, int y) { return pow(x, static_cast<double>(y)); }
inline float pow(float x, int y) { return powf(x, static_cast<float>(y)); }
extern "C" double fma(double, double, double) noexcept;
extern "C" float fmaf(float, float, float) noexcept;
inline float fma(float x, float y, float z) { return fmaf(x, y, z); }
extern "C" double ldexp(double, int) noexcept;
extern "C" float ldexpf(float, int) noexcept;
inline float ldexp(float x, int by) { return ldexpf(x, by); }
extern "C" double frexp(double, int*) noexcept;
extern "C" float frexpf(float, int*) noexcept;
inline float frexp(float x, int* to) { return frexpf(x, to); }
extern "C" double modf(double, double*) noexcept;
extern "C" float modff(float, float*) noexcept;
inline float modf(float x, float* to) { return modff(x, to); }
extern "C" void sincos(double, double*, double*) noexcept;
extern "C" void sincosf(float, float*, float*) noexcept;
inline void sincos(float x, float* s, float* c) { sincosf(x, s, c); }
inline double rsqrt(double x) { return 1 / sqrt(x); }
inline float rsqrtf(float x) { return 1 / sqrtf(x); }
inline float rsqrt(float x) { return rsqrtf(x); }
inline double sinpi(double x) { return sin(3.14159265358979323846 * fmod(x, 2.0)); }
inline double cospi(double x) { return cos(3.14159265358979323846 * fmod(x, 2.0)); }
inline float sinpif(float x) { return static_cast<float>(sinpi(static_cast<double>(x))); }
inline float cospif(float x) { return static_cast<float>(cospi(static_cast<double>(x))); }
inline float sinpi(float x) { return sinpif(x); }
inline float cospi(float x) { return cospif(x); }
inline void sincospi(double x, double* s, double* c) {
    *s = sinpi(x);
    *c = cospi(x);
}
inline void sincospif(float x, float* s, float* c) {
    *s = sinpif(x);
    *c = cospif(x);
}

#define WEIR_SHIM_CLASS(name)                                       \
    inline bool name(double x) { return __builtin_##name(x) != 0; } \
    inline bool name(float x) { return __builtin_##name(x) != 0; }
WEIR_SHIM_CLASS(isnan)
WEIR_SHIM_CLASS(isinf)
WEIR_SHIM_CLASS(isfinite)
inline bool signbit(double x) { return __builtin_signbit(x) != 0; }
inline bool signbit(float x) { return __builtin_signbitf(x) != 0; }

extern "C" int abs(int) noexcept;
extern "C" long labs(long) noexcept;
extern "C" long long llabs(long long) noexcept;
inline long abs(long x) { return labs(x); }
inline long long abs(long long x) { return llabs(x); }
inline double abs(double x) { return fabs(x); }
inline float abs(float x) { return fabsf(x); }

#define WEIR_SHIM_ORDER(result, left, right)                                                                      \
    inline result min(left a, right b) {                                                                          \
        return static_cast<result>(a) < static_cast<result>(b) ? static_cast<result>(a) : static_cast<result>(b); \
    }                                                                                                             \
    inline result max(left a, right b) {                                                                          \
        return static_cast<result>(a) < static_cast<result>(b) ? static_cast<result>(b) : static_cast<result>(a); \
    }
WEIR_SHIM_ORDER(int, int, int)
WEIR_SHIM_ORDER(unsigned, unsigned, unsigned)
WEIR_SHIM_ORDER(unsigned, int, unsigned)
WEIR_SHIM_ORDER(unsigned, unsigned, int)
WEIR_SHIM_ORDER(long, long, long)
WEIR_SHIM_ORDER(unsigned long, unsigned long, unsigned long)
WEIR_SHIM_ORDER(unsigned long, long, unsigned long)
WEIR_SHIM_ORDER(unsigned long, unsigned long, long)
WEIR_SHIM_ORDER(long long, long long, long long)
WEIR_SHIM_ORDER(unsigned long long, unsigned long long, unsigned long long)
WEIR_SHIM_ORDER(unsigned long long, long long, unsigned long long)
WEIR_SHIM_ORDER(unsigned long long, unsigned long long, long long)
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }
inline double min(float a, double b) { return fmin(static_cast<double>(a), b); }
inline double max(float a, double b) { return fmax(static_cast<double>(a), b); }
inline double min(double a, float b) { return fmin(a, static_cast<double>(b)); }
inline double max(double a, float b) { return fmax(a, static_cast<double>(b)); }

inline float __int_as_float(int x) { return weir_shim::bits_of<float>(x); }
inline int __float_as_int(float x) { return weir_shim::bits_of<int>(x); }
inline float __uint_as_float(unsigned x) { return weir_shim::bits_of<float>(x); }
inline unsigned __float_as_uint(float x) { return weir_shim::bits_of<unsigned>(x); }
inline double __longlong_as_double(long long x) { return weir_shim::bits_of<double>(x); }
inline long long __double_as_longlong(double x) { return weir_shim::bits_of<long long>(x); }
inline double __hiloint2double(int high, int low) {
    return weir_shim::bits_of<double>(static_cast<unsigned long long>(static_cast<unsigned>(high)) << 32 |
                                      static_cast<unsigned>(low));
}
inline int __double2hiint(double x) { return static_cast<int>(__double_as_longlong(x) >> 32); }
inline int __double2loint(double x) { return static_cast<int>(__double_as_longlong(x)); }

#define WEIR_SHIM_ROUNDED(prefix, type)                          \
    inline type prefix##add_rn(type a, type b) { return a + b; } \
    inline type prefix##sub_rn(type a, type b) { return a - b; } \
    inline type prefix##mul_rn(type a, type b) { return a * b; } \
    inline type prefix##div_rn(type a, type b) { return a / b; } \
    inline type prefix##sqrt_rn(type a) { return sqrt(a); }      \
    inline type prefix##rcp_rn(type a) { return 1 / a; }
WEIR_SHIM_ROUNDED(__f, float)
WEIR_SHIM_ROUNDED(__d, double)
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __expf(float x) { return expf(x); }
inline float __exp10f(float x) { return exp10f(x); }
inline float __logf(float x) { return logf(x); }
inline float __log2f(float x) { return log2f(x); }
inline float __log10f(float x) { return log10f(x); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __tanf(float x) { return tanf(x); }
inline float __powf(float x, float y) { return powf(x, y); }
inline float __saturatef(float x) { return x >= 0 ? (x > 1 ? 1 : x) : 0; }
inline void __sincosf(float x, float* s, float* c) { sincosf(x, s, c); }

inline int __float2int_rn(float x) { return static_cast<int>(rintf(x)); }
inline int __float2int_rz(float x) { return static_cast<int>(x); }
inline int __float2int_rd(float x) { return static_cast<int>(floorf(x)); }
inline int __float2int_ru(float x) { return static_cast<int>(ceilf(x)); }
inline unsigned __float2uint_rn(float x) { return static_cast<unsigned>(rintf(x)); }
inline unsigned __float2uint_rz(float x) { return static_cast<unsigned>(x); }
inline long long __float2ll_rn(float x) { return static_cast<long long>(rintf(x)); }
inline int __double2int_rn(double x) { return static_cast<int>(rint(x)); }
inline int __double2int_rz(double x) { return static_cast<int>(x); }
inline long long __double2ll_rn(double x) { return static_cast<long long>(rint(x)); }
inline float __double2float_rn(double x) { return static_cast<float>(x); }
inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
inline float __ll2float_rn(long long x) { return static_cast<float>(x); }
inline float __ull2float_rn(unsigned long long x) { return static_cast<float>(x); }
inline double __int2double_rn(int x) { return static_cast<double>(x); }
inline double __ll2double_rn(long long x) { return static_cast<double>(x); }
inline double __ull2double_rn(unsigned long long x) { return static_cast<double>(x); }

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x)); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
    unsigned turned = 0;
    for (int i = 0; i < 32; ++i) {
        turned = turned << 1 | (x >> i & 1);
    }
    return turned;
}
inline unsigned long long __brevll(unsigned long long x) {
    return static_cast<unsigned long long>(__brev(static_cast<unsigned>(x))) << 32 |
           __brev(static_cast<unsigned>(x >> 32));
}
inline unsigned __umulhi(unsigned a, unsigned b) {
    return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32);
}
inline int __mulhi(int a, int b) { return static_cast<int>(static_cast<long long>(a) * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
inline long long __mul64hi(long long a, long long b) {
    return static_cast<long long>(static_cast<__int128>(a) * b >> 64);
}
inline int __mul24(int a, int b) { return a * b; }
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
    const unsigned long long both = static_cast<unsigned long long>(b) << 32 | a;
    unsigned result = 0;
    for (unsigned i = 0; i < 4; ++i) {
        result |= static_cast<unsigned>(both >> (selector >> 4 * i & 7) * 8 & 0xff) << 8 * i;
    }
    return result;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by) {
    return static_cast<unsigned>((static_cast<unsigned long long>(high) << 32 | low) << (by & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) {
    return static_cast<unsigned>((static_cast<unsigned long long>(high) << 32 | low) >> (by & 31));
}
