// DLPack's C exchange table: arrays passed by function pointers, on the stream that the producer works on. Layer: exchange.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "weir/array.hpp"
#include "weir/detail/passkey.hpp"
#include "weir/dlpack.hpp"
#include "weir/export.hpp"
#include "weir/package.hpp"
#include "weir/source_location.hpp"
#include "weir/stream.hpp"

namespace weir::exchange {

namespace dlpack {

/// The header of every version of the table (DLPackExchangeAPIHeader): its version, and an older table of the same producer, or null.
struct exchange_table_header {
    dlpack::version version;                          ///< the version that this table follows
    const exchange_table_header* previous = nullptr;  ///< the header of an older table; null: there is none
};

/// The table (DLPackExchangeAPI, DLPack 1.3). Each function returns 0 if it succeeded. No function synchronizes a stream of a device: the
/// caller launches on the stream that `current_work_stream` returns.
struct exchange_table {
    exchange_table_header header;  ///< the version, and older tables
    /// Makes a new tensor of the prototype's shape, type and device. On failure calls `set_error(context, kind, message)`. Does not need
    /// the GIL.
    int (*allocate)(tensor* prototype, managed_tensor_versioned** made, void* context,
                    void (*set_error)(void* context, const char* kind, const char* message)) = nullptr;
    /// Makes the tensor of a Python object; the caller owns the tensor. On failure returns -1, with a Python exception set.
    int (*from_object)(void* object, managed_tensor_versioned** made) = nullptr;
    /// Makes a Python object of the producer's from a tensor, and takes the tensor. On failure returns -1, with a Python exception set.
    int (*to_object)(managed_tensor_versioned* from, void** made) = nullptr;
    /// The same as `from_object`; the tensor is valid until control returns to the producer. May be null.
    int (*borrow)(void* object, tensor* made) = nullptr;
    /// The stream that the producer works on in this thread; null on the CPU.
    int (*current_work_stream)(device_type type, std::int32_t id, void** stream) = nullptr;
};

}  // namespace dlpack

/// The newest table of a chain whose layout this header describes (major version 1); null if there is none. Of other tables it reads only
/// the headers.
[[nodiscard]] WEIR_EXPORT const dlpack::exchange_table* readable_table(
    const dlpack::exchange_table_header* newest) noexcept;

/// The function `to_dlpack` below, with what the consumers may do as an argument.
[[nodiscard]] WEIR_EXPORT dlpack_tensor to_dlpack(weir::detail::passkey /*key*/, const stream& on, const array& x,
                                                  package_use use, std::vector<std::shared_ptr<package>> others,
                                                  source_location where);

/// As `to_dlpack`, for a consumer that works on the *work stream* `on`. `on` waits, on the device, for conflicting operations. Until the
/// deleter is called, the array is a live export to that stream, to each stream that `announce_work_stream` names later, and to `others`.
/// So a consumer that asks for the work stream before each of its launches, as DLPack's table requires, is ordered with all operations of
/// Weir on all streams. Does not block. Throws as `to_dlpack` and `hand_over` do. Rules X1, X7; scenario A18.
template <array_argument X>
[[nodiscard]] dlpack_tensor to_dlpack(const stream& on, X&& x, std::vector<std::shared_ptr<package>> others,
                                      source_location where = source_location::current()) {
    return to_dlpack(weir::detail::key, on, x, weir::detail::use_of<X>, std::move(others), where);
}

/// To be called when a consumer was given `on` as the work stream. Each array of that device that was exported to a work stream, and that
/// its consumer still has, is handed over to `on` as well, unless it was before. Does not block. Throws as `hand_over` does.
WEIR_EXPORT void announce_work_stream(const stream& on, source_location where = source_location::current());

/// The array from which to_dlpack made a tensor, if its consumer has not changed the tensor's fields; nothing for other tensors. Does not
/// take the tensor.
[[nodiscard]] WEIR_EXPORT std::optional<array> exported_array(const dlpack::managed_tensor_versioned& of);
/// The same of a tensor that `without_version` made.
[[nodiscard]] WEIR_EXPORT std::optional<array> exported_array(const dlpack::managed_tensor& of);

}  // namespace weir::exchange
