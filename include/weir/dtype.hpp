// Element types. Layer: array.
#pragma once

#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "weir/export.hpp"
#include "weir/float16.hpp"

namespace weir {

/// What the bits of an element mean. The values are those of DLPack's DLDataTypeCode.
enum class dtype_code : std::uint8_t {
    signed_integer = 0,
    unsigned_integer = 1,
    ieee_float = 2,
    opaque = 3,  ///< bits that have no meaning to Weir
    bfloat = 4,
    complex = 5,
    boolean = 6,
    float8_e3m4 = 7,
    float8_e4m3 = 8,
    float8_e4m3b11fnuz = 9,
    float8_e4m3fn = 10,
    float8_e4m3fnuz = 11,
    float8_e5m2 = 12,
    float8_e5m2fnuz = 13,
    float8_e8m0fnu = 14,
    float6_e2m3fn = 15,
    float6_e3m2fn = 16,
    float4_e2m1fn = 17,
};

/// The element type of an array, known at run time: a code, the number of bits in a lane, and the number of lanes, as in DLPack's
/// DLDataType. Names are those of NumPy and ml_dtypes. Weir computes with types that have arithmetic (`has_arithmetic`); it carries all
/// others: makes, copies, views and moves their arrays between devices, bit by bit.
class dtype {
public:
    /// bool_.
    constexpr dtype() noexcept = default;
    /// Any combination. No array can be made of a type with 0 bits or 0 lanes.
    constexpr dtype(dtype_code code, std::uint8_t bits, std::uint16_t lanes = 1) noexcept
        : code_(code), bits_(bits), lanes_(lanes) {}

    /// What the bits of a lane mean.
    [[nodiscard]] constexpr dtype_code code() const noexcept { return code_; }
    /// The number of bits in one lane; for a complex number, of both parts together.
    [[nodiscard]] constexpr std::uint8_t bits() const noexcept { return bits_; }
    /// The number of lanes in an element; 1 except for vector types.
    [[nodiscard]] constexpr std::uint16_t lanes() const noexcept { return lanes_; }
    /// Code, bits and lanes in one number, different for different types: `switch (type.key()) { case dtype::int8.key(): ... }`.
    [[nodiscard]] constexpr std::uint32_t key() const noexcept {
        return static_cast<std::uint32_t>(code_) | static_cast<std::uint32_t>(bits_) << 8U |
               static_cast<std::uint32_t>(lanes_) << 16U;
    }
    /// Whether code, bits and lanes are the same. Types have no order.
    friend constexpr bool operator==(dtype a, dtype b) noexcept { return a.key() == b.key(); }

    /// @{
    /// Types with arithmetic.
    static const dtype bool_;  ///< one byte, 0 or 1; its name is "bool"
    static const dtype int8;
    static const dtype int16;
    static const dtype int32;
    static const dtype int64;
    static const dtype uint8;
    static const dtype uint16;
    static const dtype uint32;
    static const dtype uint64;
    static const dtype float16;
    static const dtype bfloat16;
    static const dtype float32;
    static const dtype float64;
    static const dtype complex64;
    static const dtype complex128;
    /// @}
    /// @{
    /// Types that Weir carries without arithmetic.
    static const dtype float8_e3m4;
    static const dtype float8_e4m3;
    static const dtype float8_e4m3b11fnuz;
    static const dtype float8_e4m3fn;
    static const dtype float8_e4m3fnuz;
    static const dtype float8_e5m2;
    static const dtype float8_e5m2fnuz;
    static const dtype float8_e8m0fnu;
    static const dtype float6_e2m3fn;
    static const dtype float6_e3m2fn;
    static const dtype float4_e2m1fn;
    static const dtype int2;
    static const dtype int4;
    static const dtype uint2;
    static const dtype uint4;
    /// @}

private:
    dtype_code code_ = dtype_code::boolean;
    std::uint8_t bits_ = 8;
    std::uint16_t lanes_ = 1;
};

inline constexpr dtype dtype::bool_{dtype_code::boolean, 8};
inline constexpr dtype dtype::int8{dtype_code::signed_integer, 8};
inline constexpr dtype dtype::int16{dtype_code::signed_integer, 16};
inline constexpr dtype dtype::int32{dtype_code::signed_integer, 32};
inline constexpr dtype dtype::int64{dtype_code::signed_integer, 64};
inline constexpr dtype dtype::uint8{dtype_code::unsigned_integer, 8};
inline constexpr dtype dtype::uint16{dtype_code::unsigned_integer, 16};
inline constexpr dtype dtype::uint32{dtype_code::unsigned_integer, 32};
inline constexpr dtype dtype::uint64{dtype_code::unsigned_integer, 64};
inline constexpr dtype dtype::float16{dtype_code::ieee_float, 16};
inline constexpr dtype dtype::bfloat16{dtype_code::bfloat, 16};
inline constexpr dtype dtype::float32{dtype_code::ieee_float, 32};
inline constexpr dtype dtype::float64{dtype_code::ieee_float, 64};
inline constexpr dtype dtype::complex64{dtype_code::complex, 64};
inline constexpr dtype dtype::complex128{dtype_code::complex, 128};
inline constexpr dtype dtype::float8_e3m4{dtype_code::float8_e3m4, 8};
inline constexpr dtype dtype::float8_e4m3{dtype_code::float8_e4m3, 8};
inline constexpr dtype dtype::float8_e4m3b11fnuz{dtype_code::float8_e4m3b11fnuz, 8};
inline constexpr dtype dtype::float8_e4m3fn{dtype_code::float8_e4m3fn, 8};
inline constexpr dtype dtype::float8_e4m3fnuz{dtype_code::float8_e4m3fnuz, 8};
inline constexpr dtype dtype::float8_e5m2{dtype_code::float8_e5m2, 8};
inline constexpr dtype dtype::float8_e5m2fnuz{dtype_code::float8_e5m2fnuz, 8};
inline constexpr dtype dtype::float8_e8m0fnu{dtype_code::float8_e8m0fnu, 8};
inline constexpr dtype dtype::float6_e2m3fn{dtype_code::float6_e2m3fn, 6};
inline constexpr dtype dtype::float6_e3m2fn{dtype_code::float6_e3m2fn, 6};
inline constexpr dtype dtype::float4_e2m1fn{dtype_code::float4_e2m1fn, 4};
inline constexpr dtype dtype::int2{dtype_code::signed_integer, 2};
inline constexpr dtype dtype::int4{dtype_code::signed_integer, 4};
inline constexpr dtype dtype::uint2{dtype_code::unsigned_integer, 2};
inline constexpr dtype dtype::uint4{dtype_code::unsigned_integer, 4};

/// The kind of number that elements are. The kinds are in the order of NumPy's promotion.
enum class dtype_kind : std::uint8_t { boolean, unsigned_integer, signed_integer, real, complex, opaque };

/// The kind of number that each lane of an element is.
[[nodiscard]] constexpr dtype_kind kind_of(dtype type) noexcept {
    switch (type.code()) {
        case dtype_code::boolean:
            return dtype_kind::boolean;
        case dtype_code::signed_integer:
            return dtype_kind::signed_integer;
        case dtype_code::unsigned_integer:
            return dtype_kind::unsigned_integer;
        case dtype_code::complex:
            return dtype_kind::complex;
        case dtype_code::opaque:
            return dtype_kind::opaque;
        default:
            return dtype_kind::real;
    }
}

/// Whether elements are complex numbers.
[[nodiscard]] constexpr bool is_complex(dtype type) noexcept { return kind_of(type) == dtype_kind::complex; }
/// Whether elements are real floating-point numbers.
[[nodiscard]] constexpr bool is_real(dtype type) noexcept { return kind_of(type) == dtype_kind::real; }
/// Whether elements are integers, with or without sign; bool is not.
[[nodiscard]] constexpr bool is_integer(dtype type) noexcept {
    return kind_of(type) == dtype_kind::signed_integer || kind_of(type) == dtype_kind::unsigned_integer;
}

/// Whether Weir computes with elements of this type, converts them and prints them. It carries all other types.
[[nodiscard]] constexpr bool has_arithmetic(dtype type) noexcept {
    const unsigned bits = type.bits();
    if (type.lanes() != 1) {
        return false;
    }
    switch (type.code()) {
        case dtype_code::boolean:
            return bits == 8;
        case dtype_code::signed_integer:
        case dtype_code::unsigned_integer:
            return bits == 8 || bits == 16 || bits == 32 || bits == 64;
        case dtype_code::ieee_float:
            return bits == 16 || bits == 32 || bits == 64;
        case dtype_code::bfloat:
            return bits == 16;
        case dtype_code::complex:
            return bits == 64 || bits == 128;
        default:
            return false;
    }
}

/// Number of bits in one element, all lanes together.
[[nodiscard]] constexpr std::size_t bits_of(dtype type) noexcept {
    return static_cast<std::size_t>(type.bits()) * type.lanes();
}

/// Whether an element takes whole bytes. Elements of other types are packed, the first one in the lowest bits of a byte, as in DLPack.
[[nodiscard]] constexpr bool has_whole_bytes(dtype type) noexcept { return bits_of(type) % 8 == 0; }

/// Bytes of `count` consecutive elements. Elements that are not whole bytes are packed, and the result is rounded up.
[[nodiscard]] constexpr std::size_t bytes_for(dtype type, std::size_t count) noexcept {
    const std::size_t bits = bits_of(type);
    return has_whole_bytes(type) ? count * (bits / 8) : count / 8 * bits + (count % 8 * bits + 7) / 8;
}

namespace detail {

[[noreturn]] WEIR_EXPORT void refuse_size(dtype type);
[[noreturn]] WEIR_EXPORT void refuse_arithmetic(dtype type, const char* what);

/// Throws argument_type_error, which names the types with arithmetic, unless `type` is one of them.
inline void expect_arithmetic(dtype type, const char* what) {
    if (!has_arithmetic(type)) {
        refuse_arithmetic(type, what);
    }
}

}  // namespace detail

/// Bytes of one element. Throws argument_type_error if an element is not whole bytes (`has_whole_bytes`): `bits_of` and `bytes_for`
/// support all types.
[[nodiscard]] constexpr std::size_t size_of(dtype type) {
    if (!has_whole_bytes(type)) {
        detail::refuse_size(type);
    }
    return bits_of(type) / 8;
}

/// The alignment of an element's address: numbers of 1, 2, 4 or 8 bytes are aligned to their size, complex numbers and vectors like their
/// parts, all others to 1 byte.
[[nodiscard]] constexpr std::size_t alignment_of(dtype type) noexcept {
    const unsigned part = is_complex(type) ? type.bits() / 2U : type.bits();
    const bool is_number = type.code() != dtype_code::opaque && (part == 16 || part == 32 || part == 64);
    return is_number ? part / 8 : 1;
}

/// "float32", "float8_e4m3fn"; for vector types "float32x4", for opaque types "opaque64".
[[nodiscard]] WEIR_EXPORT std::string name_of(dtype type);
/// The dtype of that name. Throws argument_type_error, which lists the names.
[[nodiscard]] WEIR_EXPORT dtype dtype_from_name(std::string_view name);
/// All types that have a constant in `dtype`, those with arithmetic first.
[[nodiscard]] WEIR_EXPORT std::span<const dtype> all_dtypes() noexcept;
/// The types with arithmetic.
[[nodiscard]] WEIR_EXPORT std::span<const dtype> arithmetic_dtypes() noexcept;

/// The three fields of DLPack's DLDataType.
struct dlpack_dtype {
    std::uint8_t code = 0;    ///< the number of a dtype_code
    std::uint8_t bits = 0;    ///< the number of bits in one lane; for a complex number, of both parts together
    std::uint16_t lanes = 0;  ///< the number of lanes in an element
    /// Whether all three fields are the same.
    friend constexpr bool operator==(const dlpack_dtype&, const dlpack_dtype&) noexcept = default;
};

/// The type as DLPack describes it. Never throws.
[[nodiscard]] constexpr dlpack_dtype to_dlpack_dtype(dtype type) noexcept {
    return {static_cast<std::uint8_t>(type.code()), type.bits(), type.lanes()};
}
/// The type for DLPack's description. Throws argument_type_error for a code that DLPack 1.3 does not have, for bits that do not fit the
/// code (float8 with other than 8 bits, and so on), and for 0 bits or 0 lanes.
[[nodiscard]] WEIR_EXPORT dtype from_dlpack_dtype(const dlpack_dtype& described);

namespace detail {

template <class T>
concept integer_element =
    std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char> && !std::same_as<T, wchar_t> &&
    !std::same_as<T, char8_t> && !std::same_as<T, char16_t> && !std::same_as<T, char32_t>;

template <class T>
struct dtype_for;
/// By size: long and long long are the same element type if they have the same size.
template <integer_element T>
struct dtype_for<T> {
    static constexpr dtype value{std::is_signed_v<T> ? dtype_code::signed_integer : dtype_code::unsigned_integer,
                                 8 * sizeof(T)};
};
template <>
struct dtype_for<bool> {
    static constexpr dtype value = dtype::bool_;
};
template <>
struct dtype_for<float16> {
    static constexpr dtype value = dtype::float16;
};
template <>
struct dtype_for<bfloat16> {
    static constexpr dtype value = dtype::bfloat16;
};
template <>
struct dtype_for<float> {
    static constexpr dtype value = dtype::float32;
};
template <>
struct dtype_for<double> {
    static constexpr dtype value = dtype::float64;
};
template <>
struct dtype_for<std::complex<float>> {
    static constexpr dtype value = dtype::complex64;
};
template <>
struct dtype_for<std::complex<double>> {
    static constexpr dtype value = dtype::complex128;
};

}  // namespace detail

/// A C++ type that elements of an array can have: bool, integers (no character types), weir::float16, weir::bfloat16, float, double, and
/// std::complex of the last two.
template <class T>
concept element = requires {
    detail::dtype_for<T>::value;
};

/// The dtype of a C++ element type.
template <element T>
inline constexpr dtype dtype_of = detail::dtype_for<T>::value;

}  // namespace weir

/// Makes dtype usable as a key of unordered containers.
template <>
struct std::hash<weir::dtype> {
    /// The hash of `type`. Never blocks.
    [[nodiscard]] std::size_t operator()(weir::dtype type) const noexcept { return type.key(); }
};
