// The folder array/ adds element types and shapes to memory, and has the operations on whole arrays: copies, arithmetic, reductions.
// It includes memory/, runtime/ and the folders below.
#include "weir/dtype.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>

#include "weir/error.hpp"

namespace weir {

namespace {

struct named {
    dtype type;
    std::string_view name;
};

/// Types with arithmetic first.
constexpr std::array<named, 30> known = {{
    {dtype::bool_, "bool"},
    {dtype::int8, "int8"},
    {dtype::int16, "int16"},
    {dtype::int32, "int32"},
    {dtype::int64, "int64"},
    {dtype::uint8, "uint8"},
    {dtype::uint16, "uint16"},
    {dtype::uint32, "uint32"},
    {dtype::uint64, "uint64"},
    {dtype::float16, "float16"},
    {dtype::bfloat16, "bfloat16"},
    {dtype::float32, "float32"},
    {dtype::float64, "float64"},
    {dtype::complex64, "complex64"},
    {dtype::complex128, "complex128"},
    {dtype::float8_e3m4, "float8_e3m4"},
    {dtype::float8_e4m3, "float8_e4m3"},
    {dtype::float8_e4m3b11fnuz, "float8_e4m3b11fnuz"},
    {dtype::float8_e4m3fn, "float8_e4m3fn"},
    {dtype::float8_e4m3fnuz, "float8_e4m3fnuz"},
    {dtype::float8_e5m2, "float8_e5m2"},
    {dtype::float8_e5m2fnuz, "float8_e5m2fnuz"},
    {dtype::float8_e8m0fnu, "float8_e8m0fnu"},
    {dtype::float6_e2m3fn, "float6_e2m3fn"},
    {dtype::float6_e3m2fn, "float6_e3m2fn"},
    {dtype::float4_e2m1fn, "float4_e2m1fn"},
    {dtype::int2, "int2"},
    {dtype::int4, "int4"},
    {dtype::uint2, "uint2"},
    {dtype::uint4, "uint4"},
}};

constexpr std::size_t with_arithmetic = 15;

constexpr std::array<dtype, known.size()> types = []() {
    std::array<dtype, known.size()> made{};
    for (std::size_t i = 0; i < made.size(); ++i) {
        made[i] = known[i].type;
    }
    return made;
}();

static_assert(std::all_of(types.begin(), types.begin() + with_arithmetic, has_arithmetic) &&
              std::none_of(types.begin() + with_arithmetic, types.end(), has_arithmetic));

/// The name of one lane of a vector type.
std::string name_of_lane(dtype type) {
    const dtype lane(type.code(), type.bits());
    const auto* const found =
        std::find_if(known.begin(), known.end(), [&](const named& one) { return one.type == lane; });
    if (found != known.end()) {
        return std::string(found->name);
    }
    const std::string bits = std::to_string(type.bits());
    switch (type.code()) {
        case dtype_code::signed_integer:
            return "int" + bits;
        case dtype_code::unsigned_integer:
            return "uint" + bits;
        case dtype_code::ieee_float:
            return "float" + bits;
        case dtype_code::bfloat:
            return "bfloat" + bits;
        case dtype_code::complex:
            return "complex" + bits;
        case dtype_code::boolean:
            return "bool" + bits;
        case dtype_code::opaque:
            return "opaque" + bits;
        default:
            return "type" + std::to_string(static_cast<int>(type.code())) + "_" + bits;
    }
}

/// The number in `text`, if the whole text is a number from 1 to `most`.
std::optional<unsigned> number_from(std::string_view text, unsigned most) noexcept {
    unsigned number = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (failed != std::errc() || end != text.data() + text.size() || number == 0 || number > most) {
        return std::nullopt;
    }
    return number;
}

std::optional<dtype> lane_from_name(std::string_view name) noexcept {
    const auto* const found =
        std::find_if(known.begin(), known.end(), [&](const named& one) { return one.name == name; });
    if (found != known.end()) {
        return found->type;
    }
    constexpr std::string_view opaque = "opaque";
    if (name.starts_with(opaque)) {
        if (const std::optional<unsigned> bits = number_from(name.substr(opaque.size()), 255)) {
            return dtype(dtype_code::opaque, static_cast<std::uint8_t>(*bits));
        }
    }
    return std::nullopt;
}

std::string names_of(std::span<const dtype> some) {
    std::string text;
    for (const dtype one : some) {
        text += (text.empty() ? "" : ", ") + name_of(one);
    }
    return text;
}

/// The number of bits of a code with only one width; 0 for other codes.
constexpr unsigned fixed_bits(dtype_code code) noexcept {
    if (code >= dtype_code::float8_e3m4 && code <= dtype_code::float8_e8m0fnu) {
        return 8;
    }
    if (code == dtype_code::float6_e2m3fn || code == dtype_code::float6_e3m2fn) {
        return 6;
    }
    return code == dtype_code::float4_e2m1fn ? 4 : 0;
}

}  // namespace

std::string name_of(dtype type) {
    return name_of_lane(type) + (type.lanes() == 1 ? std::string() : "x" + std::to_string(type.lanes()));
}

dtype dtype_from_name(std::string_view name) {
    if (const std::optional<dtype> found = lane_from_name(name)) {
        return *found;
    }
    if (const std::size_t times = name.rfind('x'); times != std::string_view::npos) {
        const std::optional<dtype> lane = lane_from_name(name.substr(0, times));
        const std::optional<unsigned> lanes = number_from(name.substr(times + 1), 65535);
        if (lane && lanes) {
            return {lane->code(), lane->bits(), static_cast<std::uint16_t>(*lanes)};
        }
    }
    throw argument_type_error("no element type is called \"" + std::string(name) + "\": take one of " +
                              names_of(all_dtypes()));
}

std::span<const dtype> all_dtypes() noexcept { return types; }

std::span<const dtype> arithmetic_dtypes() noexcept { return std::span(types).first<with_arithmetic>(); }

dtype from_dlpack_dtype(const dlpack_dtype& described) {
    const auto code = static_cast<dtype_code>(described.code);
    const unsigned fixed = fixed_bits(code);
    if (code > dtype_code::float4_e2m1fn || described.bits == 0 || described.lanes == 0 ||
        (fixed != 0 && described.bits != fixed)) {
        throw argument_type_error("the DLPack type with the code " + std::to_string(described.code) + ", " +
                                  std::to_string(described.bits) + " bits and " + std::to_string(described.lanes) +
                                  " lanes is unknown: convert the array to a type of DLPack 1.3 before the exchange");
    }
    return {code, described.bits, described.lanes};
}

void detail::refuse_size(dtype type) {
    throw argument_type_error("an element of " + name_of(type) + " has " + std::to_string(bits_of(type)) +
                              " bits, which are no whole bytes: take bits_of(type), or bytes_for(type, count)");
}

void detail::refuse_arithmetic(dtype type, const char* what) {
    throw argument_type_error(std::string(what) + " is not for elements of " + name_of(type) +
                              ", which can only be copied and moved; types with arithmetic are " +
                              names_of(arithmetic_dtypes()));
}

}  // namespace weir
