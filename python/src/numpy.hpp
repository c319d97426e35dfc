// NumPy, which may be there or not: its arrays, as operands of ours.
#pragma once

#include "bind.hpp"

#include "weir/array.hpp"

namespace weir::python::numpy {

/// Whether it is one of NumPy's arrays.
[[nodiscard]] bool is_array(nanobind::handle object) noexcept;
/// Whether it is one of NumPy's scalars, such as numpy.float32(2).
[[nodiscard]] bool is_scalar(nanobind::handle object) noexcept;
/// Whether it is one of NumPy's element types: a numpy.dtype, or a class of its scalars.
[[nodiscard]] bool is_dtype(nanobind::handle object) noexcept;

/// The module, imported if need be; nothing where it is not installed.
[[nodiscard]] nanobind::object find();
/// The same. Throws missing_library, which says what for.
[[nodiscard]] nanobind::object import(const char* what_for);
/// The element type as NumPy has it. Throws missing_library: without NumPy, and for bfloat16 without ml_dtypes.
[[nodiscard]] nanobind::object dtype_of(dtype type);
/// The element type of one of NumPy's. Throws argument_type_error for those that Weir has not.
[[nodiscard]] dtype from_dtype(nanobind::handle type);

/// A copy of an array or a scalar of NumPy's, as it is now, made on `on`. Throws argument_type_error for its elements.
[[nodiscard]] array copied(nanobind::handle object, const stream& on, const source_location& where);
/// The same on the CPU, copied by the calling thread before this returns, so that there is nothing to order.
[[nodiscard]] array taken(nanobind::handle object, const source_location& where);
/// The elements of a scalar or an array of one element of NumPy's, on the host.
[[nodiscard]] scalar number(nanobind::handle object);
/// The memory of an array of NumPy's as one of the CPU, to be written, which keeps it. Nothing orders what NumPy does
/// with it. Throws argument_error if it cannot be written.
[[nodiscard]] array wrapped(nanobind::handle object, const source_location& where);

}  // namespace weir::python::numpy
