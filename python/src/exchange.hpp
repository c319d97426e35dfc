// What both directions of the exchange need.
#pragma once

#include "bind.hpp"

#include <optional>
#include <string>

#include "weir/array.hpp"
#include "weir/device.hpp"
#include "weir/dlpack.hpp"
#include "weir/dtype.hpp"
#include "weir/exchange_table.hpp"
#include "weir/explain.hpp"
#include "weir/package.hpp"
#include "weir/source_location.hpp"
#include "weir/stream.hpp"

namespace weir::python {

/// @{
/// Names of DLPack's capsules, before and after a consumer has taken what is in them.
inline constexpr const char* plain_name = "dltensor";
inline constexpr const char* versioned_name = "dltensor_versioned";
inline constexpr const char* used_plain_name = "used_dltensor";
inline constexpr const char* used_versioned_name = "used_dltensor_versioned";
/// @}

/// Whether streams of a CUDA device order what is done to memory there.
[[nodiscard]] inline bool is_on_cuda(const exchange::dlpack::device& on) noexcept {
    return on.type == exchange::dlpack::device_type::cuda || on.type == exchange::dlpack::device_type::cuda_managed;
}

/// "(2, 0)".
[[nodiscard]] std::string text_of(const exchange::dlpack::device& one);

/// The attribute of an array's class, and the capsule in it: DLPack's C exchange table.
inline constexpr const char* table_attribute = "__dlpack_c_exchange_api__";
inline constexpr const char* table_name = "dlpack_exchange_api";

/// The header of the table of an object's class, of whatever version; null if there is none. Needs the GIL.
[[nodiscard]] const exchange::dlpack::exchange_table_header* table_header_of(nanobind::handle object);
/// The table of an object's class, of those versions that Weir reads; null if there is none. Needs the GIL.
[[nodiscard]] const exchange::dlpack::exchange_table* table_of(nanobind::handle object);

/// The array of Weir that is in a capsule of Weir's own, which is consumed by that; nothing for any other object. Needs the GIL.
[[nodiscard]] std::optional<array> own_array_in(nanobind::handle capsule);

/// A tensor that a producer handed over, whose deleter will be called with the GIL: Python code may run there. Needs the GIL.
[[nodiscard]] exchange::dlpack_tensor owned_by_python(exchange::dlpack::managed_tensor_versioned* of);

/// Whether a consumer of the array may write to it.
[[nodiscard]] bool may_write(const array& x);
/// Blocks until what conflicts with a consumer that reads, or writes, is over (rule O6). Notes `how` for explain() before it waits,
/// with whether it has to. Needs the GIL.
void await_for_host(const array& x, exchange_record how, const source_location& where);

/// Throws as asked_of_package says.
[[noreturn]] void refuse_for_package(nanobind::handle x, const char* protocol, const nanobind::python_error& raised);

/// Whether an object's class has Arrow's C data interface, or the one for devices. Needs the GIL.
[[nodiscard]] bool has_arrow(nanobind::handle object);
/// The array that it hands over by that. `copied`: as copy_wanted. Throws exchange_error, copy_error.
[[nodiscard]] array from_arrow_producer(nanobind::handle object, std::optional<bool> copied,
                                        const source_location& where);

/// Whether an object has the CUDA Array Interface. Needs the GIL.
[[nodiscard]] bool has_cuda_array_interface(nanobind::handle object);
/// The same memory, as an object's `__cuda_array_interface__` says it, versions 2 and 3 (rule X3). The interface has no owner:
/// the object is kept. Throws exchange_error.
[[nodiscard]] array from_interface(nanobind::handle object, bool exclusive, const source_location& where);
/// The stream that an object's `__cuda_array_interface__` names. Throws argument_type_error if it names none, exchange_error.
[[nodiscard]] stream stream_of_interface(nanobind::handle object);
/// What the producer did before comes before what Weir does (rule X6): it is in that stream, or what is elsewhere is known (package_order).
void enter_from(const array& x, package& by, const stream& theirs, const source_location& where);

/// A device as the array API names it: as `device_from` takes it, or as DLPack's (type, id); nothing for None.
[[nodiscard]] std::optional<device> wanted_device(nanobind::handle argument);

/// Calls `ask`, which runs code of the package of `x`. What that raises becomes the cause of an ExchangeError which says that the package
/// does not hand over `x` by `protocol`; exceptions that end programs, and Weir's own, pass. Needs the GIL.
template <class Ask>
auto asked_of_package(nanobind::handle x, const char* protocol, Ask&& ask) {
    try {
        return ask();
    } catch (const nanobind::python_error& raised) {
        refuse_for_package(x, protocol, raised);
    }
}

/// `x` if it is an array of Weir; an array that shares its memory, as a live import, if `x` has DLPack, Arrow, the CUDA Array Interface or,
/// unless `buffers` is false, the buffer protocol; else no object. Throws exchange_error, argument_error (memory that cannot be shared),
/// copy_error.
[[nodiscard]] nanobind::object shared_array(nanobind::handle x, const source_location& where, bool buffers = true);
/// The same for an operand that is only read: Arrow's columns of bool, too, which are copied.
[[nodiscard]] nanobind::object readable_array(nanobind::handle x, const source_location& where);
/// The same for what array() copies: without the buffer protocol. No object for what is no array of a package.
[[nodiscard]] nanobind::object array_of_package(nanobind::handle x, const source_location& where);
/// As shared_array; throws argument_type_error, which says what `what` is to be, where there is no object, and copy_error where `x` would
/// have to be copied.
[[nodiscard]] nanobind::object shared_array_for(const char* what, nanobind::handle x, const source_location& where);

/// What weir.asarray makes of an object, without further arguments. Throws as it does.
[[nodiscard]] nanobind::object as_array(nanobind::handle x, const source_location& where);

/// The text by which the array interfaces name an element type, "<f4"; empty for types that they have not.
[[nodiscard]] std::string interface_name_of(dtype type);

}  // namespace weir::python
