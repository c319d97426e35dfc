// Arguments of kernels that are known when the program runs.
#pragma once

#include "bind.hpp"

#include <cstddef>
#include <string>

#include "weir/kernel.hpp"

namespace weir::python {

/// Room for one argument, as the kernel gets it.
struct argument_slot {
    alignas(16) std::byte bytes[16];
};

/// How messages name a parameter: `argument 2 of the kernel axpy is "float32 a"`.
[[nodiscard]] std::string described(const kernel& of, const detail::declared_parameter& as, std::size_t position);

/// Stores a number as the parameter's type. Throws argument_type_error, argument_error (out of range).
void store_number(nanobind::handle number, const kernel& of, const detail::declared_parameter& as, std::size_t position,
                  argument_slot& to);

/// The array that is passed for a parameter, which may be wrapped in In, Out or InOut as the signature says. Throws
/// argument_type_error (no array, other elements), argument_error (another use, elements that do not lie in C order).
[[nodiscard]] const array& array_argument(nanobind::handle argument, const kernel& of,
                                          const detail::declared_parameter& as, std::size_t position);

}  // namespace weir::python
