// DLPack: exchange of arrays with other libraries in the process, by the C structures of its version 1.3. Layer: exchange.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "weir/array.hpp"
#include "weir/buffer.hpp"
#include "weir/detail/passkey.hpp"
#include "weir/export.hpp"
#include "weir/package.hpp"
#include "weir/source_location.hpp"
#include "weir/stream.hpp"

namespace weir::exchange {

/// The C structures of DLPack, with the layout of its binary interface (dlpack.h, version 1.3).
namespace dlpack {

/// The kinds of device that Weir exchanges (DLDeviceType).
enum class device_type : std::int32_t {
    cpu = 1,
    cuda = 2,
    cuda_host = 3,   ///< pinned memory of the host
    extension = 12,  ///< memory of a simulated device
    cuda_managed = 13,
};

/// A device: its kind, and its number within the kind (DLDevice).
struct device {
    device_type type = device_type::cpu;  ///< the kind
    std::int32_t id = 0;                  ///< the number within the kind, from 0; 0 for the CPU
};

/// An array without an owner (DLTensor). Strides count elements; a null pointer stands for C order.
struct tensor {
    void* data = nullptr;             ///< the device's address of the memory; may be null if there are no elements
    dlpack::device on;                ///< the device of the memory
    std::int32_t dimensions = 0;      ///< the number of dimensions
    dlpack_dtype type;                ///< the element type
    std::int64_t* shape = nullptr;    ///< the extents, one for each dimension; may be null if there are no dimensions
    std::int64_t* strides = nullptr;  ///< the strides, in elements, one for each dimension; null: C order
    std::uint64_t byte_offset = 0;    ///< the bytes from `data` to the element with all indices 0
};

/// An array with its owner, before version 1.0 (DLManagedTensor).
struct managed_tensor {
    tensor what;                                      ///< the array
    void* context = nullptr;                          ///< for the producer alone
    void (*deleter)(managed_tensor* self) = nullptr;  ///< ends the use of `self`; null: there is nothing to do
};

/// The version that a structure follows (DLPackVersion). Another major number means another layout.
struct version {
    std::uint32_t major = 1;  ///< changes with the layout
    std::uint32_t minor = 3;  ///< changes with additions, such as flags and types
};

/// An array with its owner (DLManagedTensorVersioned).
struct managed_tensor_versioned {
    dlpack::version version;  ///< the version that the producer follows
    void* context = nullptr;  ///< for the producer alone
    /// Ends the use of `self`; null: there is nothing to do.
    void (*deleter)(managed_tensor_versioned* self) = nullptr;
    std::uint64_t flags = 0;  ///< a bitmask of `read_only`, `is_copied` and `is_subbyte_type_padded`
    tensor what;              ///< the array
};

/// The consumer must not write.
inline constexpr std::uint64_t read_only = 1;
/// The producer made a copy for this exchange.
inline constexpr std::uint64_t is_copied = 2;
/// Elements smaller than a byte are padded to a byte each.
inline constexpr std::uint64_t is_subbyte_type_padded = 4;

}  // namespace dlpack

/// Calls the deleter of the structure.
struct deleter {
    /// Calls the deleter of `one`, if it has one.
    void operator()(dlpack::managed_tensor_versioned* one) const noexcept {
        if (one->deleter != nullptr) {
            one->deleter(one);
        }
    }
};
/// A structure that this program owns until it passes it on: `release()` gives it to a consumer.
using dlpack_tensor = std::unique_ptr<dlpack::managed_tensor_versioned, deleter>;

/// @{
/// The same for structures of before version 1.0.
struct unversioned_deleter {
    /// Calls the deleter of `one`, if it has one.
    void operator()(dlpack::managed_tensor* one) const noexcept {
        if (one->deleter != nullptr) {
            one->deleter(one);
        }
    }
};
using dlpack_tensor_unversioned = std::unique_ptr<dlpack::managed_tensor, unversioned_deleter>;
/// @}

/// The tensor for a consumer that reads structures of before version 1.0 only. Takes `tensor`. Throws exchange_error if it is read-only,
/// which such a structure cannot say; std::bad_alloc. DLPack 1.3, "DLManagedTensor".
[[nodiscard]] WEIR_EXPORT dlpack_tensor_unversioned without_version(dlpack_tensor tensor);

/// A tensor of before version 1.0, for `from_dlpack`. `flags`: what the structure cannot say, such as `dlpack::read_only` for memory of a
/// package whose arrays never change. Takes `tensor`: its deleter is called once, also if this throws. Throws std::bad_alloc.
[[nodiscard]] WEIR_EXPORT dlpack_tensor with_version(dlpack_tensor_unversioned tensor, std::uint64_t flags = 0);

/// The array as memory of a DLPack device: with the same memory if that device reaches it (rule X9), and nothing if the elements have to
/// be copied for it. Pinned memory is memory of the CPU, of each CUDA device, and of `cuda_host` with the number 0; managed memory is its
/// CUDA device's, the CPU's, and `cuda_managed` with the CUDA device's number. The CPU has the number 0. Opens a CUDA device: throws as
/// weir::cuda does.
[[nodiscard]] WEIR_EXPORT std::optional<array> view_on(const array& x, const dlpack::device& on);

/// @{
/// The functions `to_dlpack` below, with what the consumers may do as an argument.
[[nodiscard]] WEIR_EXPORT dlpack_tensor to_dlpack(weir::detail::passkey /*key*/, const array& x, package_use use,
                                                  std::vector<std::shared_ptr<package>> consumers,
                                                  const std::optional<dlpack::device>& as);
[[nodiscard]] WEIR_EXPORT dlpack_tensor to_dlpack(weir::detail::passkey /*key*/, const stream& to, const array& x,
                                                  package_use use, std::shared_ptr<package> its,
                                                  std::vector<std::shared_ptr<package>> others,
                                                  const std::optional<dlpack::device>& as, source_location where);
/// @}

/// The array as a DLPack structure with the same memory: `data` is the address of the first element, `byte_offset` is 0. Read-only if the
/// array is const, if elements share memory, or if the array is itself a read-only import. Does not block. With `consumers`, the memory is a live export to
/// these packages until the deleter is called (rule X7). Without them, Weir orders nothing by itself, and the program states the uses of
/// the memory (`weir::used_on`, `live_export`). The structure keeps the memory. Its deleter may be called on any thread and takes no
/// lock; a thread of Weir's then lets go of the memory. The structure names the device `as`, for which `view_on` must have an array; without
/// `as`, the array's own. Throws argument_error if strides are not multiples of the element's size, copy_error (`as` does not reach the
/// memory), std::bad_alloc. DLPack 1.3; rules L4, X1, X7, X9.
///
/// Memory of a CUDA device that is dropped while a consumer has it comes back as rule L5 says: a call of the deleter does not prove that
/// the consumer's work is complete.
template <array_argument X>
[[nodiscard]] dlpack_tensor to_dlpack(X&& x, std::vector<std::shared_ptr<package>> consumers = {},
                                      const std::optional<dlpack::device>& as = std::nullopt) {
    return to_dlpack(weir::detail::key, x, weir::detail::use_of<X>, std::move(consumers), as);
}

/// The same for a consumer that works on `to`: in addition `to` waits, on the device, for what conflicts, as `hand_over` says. `its` is the
/// package that works on `to` now. Of what other threads enqueue meanwhile nothing is missed: it either comes before that wait, or after
/// what the package puts into `to`. Does not block, unless rule O9 says so. Throws as `hand_over`, too. Rule X2.
template <array_argument X>
[[nodiscard]] dlpack_tensor to_dlpack(const stream& to, X&& x, std::shared_ptr<package> its,
                                      std::vector<std::shared_ptr<package>> others,
                                      const std::optional<dlpack::device>& as,
                                      source_location where = source_location::current()) {
    return to_dlpack(weir::detail::key, to, x, weir::detail::use_of<X>, std::move(its), std::move(others), as, where);
}

/// The array that a producer passes in, with the same memory; nothing is copied. With `from`, operations are ordered with that package's
/// current stream at each use, as import_live says (rule X6). Without it, the producer promises to let go of the memory. If the tensor
/// is read-only, an operation that declares a write to the array throws argument_error; that needs `from`. Takes `tensor`: its deleter is
/// called exactly once, after the last access made through Weir is complete (rule L4), or at once if this throws. Does not block, except
/// for memory of a CUDA device where other libraries' memory in quarantine and the tensor together exceed memory::limit: then blocks
/// until consumers are done with enough of it, as far as Weir can know (rule L5). Throws exchange_error: another major version, a device that
/// Weir does not know, an element type without a dtype, invalid sizes or strides; out_of_memory if too much stays in quarantine.
[[nodiscard]] WEIR_EXPORT array from_dlpack(dlpack_tensor tensor, std::shared_ptr<package> from = nullptr,
                                            source_location where = source_location::current());

/// The same for memory that any other owner keeps: what `what` and `flags` say of it is read before this returns, and not kept.
[[nodiscard]] WEIR_EXPORT array from_dlpack(weir::detail::passkey /*key*/, const dlpack::tensor& what,
                                            std::uint64_t flags, std::unique_ptr<weir::detail::lender> owner,
                                            std::shared_ptr<package> from,
                                            source_location where = source_location::current());

/// The number of the CUDA device to which an address belongs; 0 for a null pointer. Throws exchange_error for any other memory.
[[nodiscard]] WEIR_EXPORT int cuda_device_of(const void* address);

/// The packages use the memory from now on for as long as it lives, because they never say that they are done: conflicting operations
/// are ordered with their current streams, and dropped memory comes back as rule L5 says.
WEIR_EXPORT void share_for_good(weir::detail::passkey /*key*/, const array& x,
                                const std::vector<std::shared_ptr<package>>& with, package_use use);

/// Weir's device for a DLPack device: pinned memory belongs to the CPU, managed memory to the CUDA device, memory of an extension to a
/// simulated device. Nothing for a kind that Weir does not know, and for a negative number. Opens a CUDA device: throws as weir::cuda
/// does.
[[nodiscard]] WEIR_EXPORT std::optional<device> device_of(const dlpack::device& on);

/// The array's device as DLPack names it.
[[nodiscard]] WEIR_EXPORT dlpack::device dlpack_device_of(const array& x);

}  // namespace weir::exchange
