// Arrays, as Python knows them.
#pragma once

#include "bind.hpp"

#include <optional>
#include <span>
#include <vector>

#include "events.hpp"
#include "weir/array.hpp"
#include "weir/completion.hpp"
#include "weir/scalar.hpp"
#include "weir/stream.hpp"

namespace weir::python {

/// weir.Array and its operators.
void bind_arrays(nanobind::module_& m);
/// Functions that make arrays: weir.empty and others.
void bind_creation(nanobind::module_& m);
/// weir.copy and weir.fill.
void bind_transfers(nanobind::module_& m);

/// weir.from_dlpack and weir.asarray.
void bind_importing(nanobind::module_& m);

/// The meaning of `copy=`: copy, never copy, or (None) copy only where it is necessary. Throws argument_type_error.
[[nodiscard]] std::optional<bool> copy_wanted(nanobind::handle copy);

/// The functions that weir.borrow calls.
void bind_borrowing(nanobind::module_& m);

/// Parts of bind_arrays, each in a file of its own.
void bind_exporting(nanobind::class_<array>& cls);
void bind_arrow(nanobind::class_<array>& cls);
void bind_exchange_table(nanobind::class_<array>& cls);
void bind_foreign_use(nanobind::module_& m, nanobind::class_<array>& cls);
void bind_indexing(nanobind::class_<array>& cls);
void bind_reductions(nanobind::class_<array>& cls);
void bind_host_access(nanobind::class_<array>& cls);
void bind_values(nanobind::module_& m, nanobind::class_<array>& cls);

/// The buffer protocol of weir.Array.
[[nodiscard]] PyType_Slot* buffer_slots() noexcept;

/// Integers from one of them, or from a tuple or a list of them: for `what` ("shape", "axis"). Throws argument_type_error,
/// argument_error.
[[nodiscard]] std::vector<std::int64_t> integers_from(nanobind::handle argument, const char* what);
/// A shape, as integers_from reads it.
[[nodiscard]] shape shape_from(nanobind::handle argument);

/// The element type that NumPy gives these numbers of Python's together. Throws argument_error if no integer type holds all.
[[nodiscard]] dtype common_type(std::span<const scalar> numbers);

/// A new array with the elements of anything: an array of Weir's or of NumPy's, a number, nested lists, memory with the
/// buffer protocol. Of the element type given, else of its own.
[[nodiscard]] array made_from(nanobind::handle source, std::optional<dtype> type, const stream& on,
                              const source_location& where);

/// A copy of an array that shares memory with a package, of the element type given, else of its own. Of memory of the host the elements are
/// those at the call: it blocks until they are copied, since Weir may take the package at its word that they do not change.
[[nodiscard]] array copied_from_package(const array& theirs, std::optional<dtype> type, const stream& on,
                                        const source_location& where);

/// `dst[...] = src`: whatever `made_from` takes, and numbers, broadcast and converted as weir::copy does. On `on`, else on
/// the stream that `stream_between` names.
completion assign(array& dst, nanobind::handle src, const std::optional<stream>& on, const source_location& where);

/// The current stream of that of two devices that is not the CPU.
[[nodiscard]] stream stream_between(const device& to, const device& from);

}  // namespace weir::python
