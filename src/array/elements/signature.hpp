// The folder array/elements/ has element-wise kernels that a program gives as text: parsed signatures, the source that is
// compiled for the CPU and for CUDA devices, the system's C++ compiler, and the loop over arrays.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/dtype.hpp"

namespace weir::elements {

/// How a kernel uses a parameter.
enum class element_use : std::uint8_t {
    in,     ///< read
    out,    ///< written, and not read
    inout,  ///< read and written
};

/// One parameter of an element-wise kernel.
struct element_parameter {
    std::string name;
    std::string variable;       ///< "T": the type is that of the operand; empty: the type is fixed
    std::optional<dtype> type;  ///< set where it is fixed
    element_use use = element_use::in;
    bool is_raw = false;  ///< an input: the body sees the whole array, and indexes it
};

/// "inout float32 y", "T x".
[[nodiscard]] std::string to_string(const element_parameter& one);

/// What "float x, T a" (inputs) and "T y, inout T z" (outputs) declare. Throws argument_error, which quotes what is wrong and states
/// what is expected.
struct element_signature {
    element_signature(std::string_view inputs, std::string_view outputs);

    /// "float32 x, float32 a -> float32 y".
    [[nodiscard]] std::string to_string() const;

    std::vector<element_parameter> inputs;
    std::vector<element_parameter> outputs;
};

/// What "T value, int64 index" declares, without names that occur twice. Throws argument_error.
[[nodiscard]] std::vector<element_parameter> parsed_fields(std::string_view text);

/// Whether one of the parameters has this name.
[[nodiscard]] bool declares(const element_signature& signature, std::string_view name);

/// Whether `text`, a C++ program, contains this name outside of comments and string literals.
[[nodiscard]] bool mentions(std::string_view text, std::string_view name);

/// The largest number of parameters of a kernel.
inline constexpr std::size_t most_parameters = 12;

}  // namespace weir::elements
