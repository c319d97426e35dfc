#pragma once

#include <cstddef>
#include <string>

#include "array/kernel_signature.hpp"
#include "weir/dtype.hpp"
#include "weir/kernel.hpp"

/// Messages about the arguments of a launch: the same for types known when the program is compiled, for types known at run
/// time, and in Python.
namespace weir::kernels {

/// "in", "out" or "inout"; empty for a value.
[[nodiscard]] const char* name_of(parameter_use use) noexcept;
/// `argument 3 of the kernel axpy is "float32 a", and got `.
[[nodiscard]] std::string start_of_message(const kernel& what, std::size_t position, const parameter& as);

/// Throws argument_error: the kernel has `has` parameters.
[[noreturn]] void refuse_count(const kernel& what, std::size_t given, std::size_t has);
/// Throws argument_type_error: `got` cannot be the argument.
[[noreturn]] void refuse_type(const kernel& what, std::size_t position, const parameter& as, const std::string& got);
/// Throws argument_error: a structure of `got` bytes where the parameter has `has`.
[[noreturn]] void refuse_size(const kernel& what, std::size_t position, const parameter& as, std::size_t got,
                              std::size_t has);
/// Throws argument_error: an array that is declared for another use.
[[noreturn]] void refuse_use(const kernel& what, std::size_t position, const parameter& as, parameter_use got);
/// Throws argument_error: the number `got` does not fit the parameter's type.
[[noreturn]] void refuse_range(const kernel& what, std::size_t position, const parameter& as, const std::string& got);

}  // namespace weir::kernels
