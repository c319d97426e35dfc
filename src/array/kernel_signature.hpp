#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/dtype.hpp"

namespace weir::kernels {

/// How a kernel uses a parameter.
enum class parameter_use : std::uint8_t {
    value,      ///< no array: the argument itself is passed
    in,         ///< an array that is only read
    out,        ///< an array of which every element is written and none is read before
    inout,      ///< an array that is read and written
    structure,  ///< no array: a structure is passed, byte for byte
};

/// One parameter of a kernel.
struct parameter {
    std::string name;
    std::optional<dtype> type;  ///< type of the value or of the elements; empty: any ("in void* x"), or a structure
    parameter_use use = parameter_use::value;
    std::string structure = {};  ///< the name of a structure's type

    friend bool operator==(const parameter&, const parameter&) = default;
};

/// Whether the parameter is an array.
[[nodiscard]] constexpr bool is_array(const parameter& one) noexcept {
    return one.use != parameter_use::value && one.use != parameter_use::structure;
}

/// The parameters that a text like "in float* x, inout float* y, float a, int64 n" declares. Types have the names of C++
/// or of NumPy; "struct point p" is a structure by value; "*" marks arrays, each of which states how it is used; const and
/// __restrict__ are ignored. Throws argument_error, which quotes what is wrong and states what is expected.
[[nodiscard]] std::vector<parameter> parse_signature(std::string_view text);

/// The number type with this name in C++ ("unsigned long long", "std::complex<float>") or in NumPy ("uint64"); none if there is
/// no such type.
[[nodiscard]] std::optional<dtype> type_named(std::string_view name);

/// "inout float32* y".
[[nodiscard]] std::string to_string(const parameter& one);

}  // namespace weir::kernels
