// NumPy, which may or may not be installed: its arrays, as operands of ours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "bind.hpp"

#include "weir/array.hpp"
#include "weir/package.hpp"

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
/// The element type as NumPy has it. Throws missing_library: without NumPy, and without ml_dtypes for bfloat16 and other
/// types of that package; argument_type_error for a type that neither has.
[[nodiscard]] nanobind::object dtype_of(dtype type);
/// Whether the type is one that NumPy only has with ml_dtypes.
[[nodiscard]] bool is_of_ml_dtypes(dtype type) noexcept;
/// Reads elements that lie packed, and are not whole bytes, into one byte each, in whose lowest bits ml_dtypes has
/// them; and back.
void unpack(dtype type, const std::byte* from, std::size_t count, std::byte* to) noexcept;
[[nodiscard]] std::vector<std::byte> packed_bits(dtype type, std::span<const std::byte> from);
/// The element type of one of NumPy's. Throws argument_type_error for types that Weir does not have.
[[nodiscard]] dtype from_dtype(nanobind::handle type);

/// A copy of an array or a scalar of NumPy's, as it is now, made on `on`. Throws argument_type_error for its elements.
[[nodiscard]] array copied(nanobind::handle object, const stream& on, const source_location& where);
/// The same on the CPU, in internal memory, copied by the calling thread before this returns.
[[nodiscard]] array taken(nanobind::handle object, const source_location& where);
/// Copies the elements as they are now into `into`, which `taken` has made, once no operation uses it. Throws argument_error unless
/// shape and type are the same.
void take_again(nanobind::handle object, const array& into, const source_location& where);
/// The elements of a scalar or an array of one element of NumPy's, on the host.
[[nodiscard]] scalar number(nanobind::handle object);
/// Whether a class is NumPy's array, or derived from it without changing how its arrays hand over their memory.
[[nodiscard]] bool is_plain(nanobind::handle type) noexcept;
/// The memory of an array of such a class, as its buffer describes it, tied to `from`; with none, wrapped. Nothing where only DLPack can
/// say what it is, or why it cannot be shared: memory that is read-only, other element types, elements that are not aligned or not whole
/// strides apart. Needs the GIL. Throws as exchange::from_dlpack.
[[nodiscard]] std::optional<array> shared(nanobind::handle object, std::shared_ptr<package> from,
                                          const source_location& where);
/// Whether NumPy makes an array of numbers of the object, by its `__array__`. Needs the GIL.
[[nodiscard]] bool gets_elements(nanobind::handle object);
/// How the memory of an array of such a class can be shared.
enum class sharing : std::uint8_t {
    by_dlpack,
    by_integers,  ///< by its buffer, viewed as integers: a type of ml_dtypes, which neither protocol of NumPy's has
    none,  ///< only a copy: elements that are not aligned, or apart by strides that are not whole elements; types that Weir packs
};
/// Throws argument_type_error for element types that Weir has not.
[[nodiscard]] sharing sharing_of(nanobind::handle object);
/// The memory of an array that can be shared by_integers, tied to `from`; wrapped if it is `exclusive` and can be written.
[[nodiscard]] array shared_as_integers(nanobind::handle object, bool exclusive, std::shared_ptr<package> from,
                                       const source_location& where);
/// The memory of an array of NumPy's as one of the CPU, to be written, which keeps it. Nothing orders what NumPy does
/// with it. Throws argument_error if it cannot be written.
[[nodiscard]] array wrapped(nanobind::handle object, const source_location& where);

}  // namespace weir::python::numpy
