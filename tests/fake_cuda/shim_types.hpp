// The vector types of CUDA C++.
#pragma once

using size_t = decltype(sizeof 0);
using ptrdiff_t = decltype(static_cast<char*>(nullptr) - static_cast<char*>(nullptr));

namespace weir_shim {
template <class Type>
struct identity {
    using type = Type;
};
/// A parameter of this type is not deduced.
template <class Type>
using same = typename identity<Type>::type;
}  // namespace weir_shim

#define WEIR_SHIM_VECTOR(name, of, align2, align4)                        \
    struct name##1 {                                                      \
        of x;                                                             \
    };                                                                    \
    struct __attribute__((aligned(align2))) name##2 {                     \
        of x, y;                                                          \
    };                                                                    \
    struct name##3 {                                                      \
        of x, y, z;                                                       \
    };                                                                    \
    struct __attribute__((aligned(align4))) name##4 {                     \
        of x, y, z, w;                                                    \
    };                                                                    \
    inline name##1 make_##name##1(of x) { return {x}; }                   \
    inline name##2 make_##name##2(of x, of y) { return {x, y}; }          \
    inline name##3 make_##name##3(of x, of y, of z) { return {x, y, z}; } \
    inline name##4 make_##name##4(of x, of y, of z, of w) { return {x, y, z, w}; }
WEIR_SHIM_VECTOR(char, signed char, 2, 4)
WEIR_SHIM_VECTOR(uchar, unsigned char, 2, 4)
WEIR_SHIM_VECTOR(short, short, 4, 8)
WEIR_SHIM_VECTOR(ushort, unsigned short, 4, 8)
WEIR_SHIM_VECTOR(int, int, 8, 16)
WEIR_SHIM_VECTOR(uint, unsigned, 8, 16)
WEIR_SHIM_VECTOR(long, long, 16, 16)
WEIR_SHIM_VECTOR(ulong, unsigned long, 16, 16)
WEIR_SHIM_VECTOR(longlong, long long, 16, 16)
WEIR_SHIM_VECTOR(ulonglong, unsigned long long, 16, 16)
WEIR_SHIM_VECTOR(float, float, 8, 16)
WEIR_SHIM_VECTOR(double, double, 16, 16)

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
    constexpr dim3(const weir_shim::dim3& other) : x(other.x), y(other.y), z(other.z) {}
};
