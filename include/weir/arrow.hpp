// Arrow: columns of numbers, by its C data interface and its C device data interface. Layer: exchange.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "weir/array.hpp"
#include "weir/dtype.hpp"
#include "weir/export.hpp"
#include "weir/package.hpp"
#include "weir/source_location.hpp"

namespace weir::exchange {

/// The C structures of Arrow, with the layout of its specification.
namespace arrow {

/// The type of the elements (ArrowSchema). `release` is null once it was released or moved away.
struct schema {
    const char* format = nullptr;             ///< the type in Arrow's notation: "f" for float32
    const char* name = nullptr;               ///< the name of the column, in UTF-8; may be null
    const char* metadata = nullptr;           ///< keys and values in Arrow's binary encoding; may be null
    std::int64_t flags = 0;                   ///< a bitmask of Arrow's flags: 2 if elements may be null
    std::int64_t n_children = 0;              ///< the number of children; 0 for numbers
    schema** children = nullptr;              ///< the types of a nested type's children
    schema* dictionary = nullptr;             ///< the type of a dictionary's values; null if there is no dictionary
    void (*release)(schema* self) = nullptr;  ///< ends the use of `self`, and sets this pointer to null
    void* private_data = nullptr;             ///< for the producer alone
};

/// The elements (ArrowArray). Lengths and offsets count elements.
struct array {
    std::int64_t length = 0;         ///< the number of elements, without those before `offset`
    std::int64_t null_count = 0;     ///< how many elements are null; -1: not counted
    std::int64_t offset = 0;         ///< the number of elements in the buffers before the first one
    std::int64_t n_buffers = 0;      ///< the number of buffers; 2 for numbers
    std::int64_t n_children = 0;     ///< the number of children; 0 for numbers
    const void** buffers = nullptr;  ///< for numbers: the validity bitmap (null: no element is null), the elements
    array** children = nullptr;      ///< the columns of a nested type
    array* dictionary = nullptr;     ///< a dictionary's values; null if there is no dictionary
    /// Ends the use of `self`, and sets this pointer to null. Null: the array was released or moved away.
    void (*release)(array* self) = nullptr;
    void* private_data = nullptr;  ///< for the producer alone
};

/// The elements on a device (ArrowDeviceArray). The numbers of device kinds are DLPack's. `sync_event` points to an event (on CUDA: a
/// cudaEvent_t*) that is complete once the elements are valid; null: they are valid already. The producer owns it, until `release`.
struct device_array {
    arrow::array array;                    ///< the column, whose buffers are memory of the device
    std::int64_t device_id = -1;           ///< the number among the devices of the kind; -1 for the CPU
    std::int32_t device_type = 1;          ///< the kind of the device, a dlpack::device_type
    void* sync_event = nullptr;            ///< points to the event after which the elements are valid, or null
    std::int64_t reserved[3] = {0, 0, 0};  ///< must be 0
};

}  // namespace arrow

/// A structure that this program owns until it passes it on.
template <class Structure>
class arrow_owner {
public:
    arrow_owner() = default;
    /// Takes over `from`, as Arrow moves structures: `from` then counts as released.
    explicit arrow_owner(Structure& from) noexcept : held_(from) { release_of(from) = nullptr; }
    /// @{
    /// Takes over the structure of `other`, which then holds none. The assignment releases the structure that this object held.
    arrow_owner(arrow_owner&& other) noexcept : arrow_owner(other.held_) {}
    arrow_owner& operator=(arrow_owner&& other) noexcept {
        arrow_owner old(std::move(*this));
        held_ = other.held_;
        release_of(other.held_) = nullptr;
        return *this;
    }
    /// @}
    /// Releases the structure, unless it was passed on.
    ~arrow_owner() {
        if (release_of(held_) != nullptr) {
            if constexpr (requires { held_.array; }) {
                held_.array.release(&held_.array);
            } else {
                held_.release(&held_);
            }
        }
    }

    /// @{
    /// The structure; its `release` is null if this object holds none.
    [[nodiscard]] const Structure& operator*() const noexcept { return held_; }
    [[nodiscard]] const Structure* operator->() const noexcept { return &held_; }
    /// @}
    /// Whether it holds a structure.
    [[nodiscard]] explicit operator bool() const noexcept { return release_of(held_) != nullptr; }
    /// Passes the structure on: fills in a consumer's structure.
    void move_to(Structure& to) noexcept {
        to = held_;
        release_of(held_) = nullptr;
    }

private:
    template <class Any>
    static auto& release_of(Any& of) noexcept {
        if constexpr (requires { of.array; }) {
            return of.array.release;
        } else {
            return of.release;
        }
    }
    Structure held_;
};
using arrow_schema = arrow_owner<arrow::schema>;
using arrow_array = arrow_owner<arrow::device_array>;

/// The schema of a column of numbers without nulls. Throws exchange_error for element types that Arrow does not have, or has with another
/// layout: bool (a bit each in Arrow), complex numbers, bfloat16 and smaller types. Arrow's C data interface; rule X4.
[[nodiscard]] WEIR_EXPORT arrow_schema to_arrow_schema(dtype type);

/// A one-dimensional array in C order as an Arrow column with the same memory. On a CUDA device it does not block: `sync_event` is
/// complete when pending writes are (null if none are pending), and lives until the release. On other devices it blocks until pending
/// writes are complete. Until the release, the memory is a live export to `consumers`, which only read (rules X4, X7). The release may
/// happen on any thread and takes no lock; a thread of Weir's then lets go of the memory. Throws exchange_error: another number of
/// dimensions, elements that do not lie in C order, element types as for to_arrow_schema; std::bad_alloc, device_error.
[[nodiscard]] WEIR_EXPORT arrow_array to_arrow(const weir::array& x,
                                               std::vector<std::shared_ptr<package>> consumers = {},
                                               source_location where = source_location::current());

/// The array that an Arrow producer passes in: the same memory from `offset` on, for reading only, because Arrow's columns never change.
/// Memory that to_arrow has exported, and that a consumer hands on in a column of its own, is an array of the same buffer.
/// What Weir enqueues on it starts after `sync_event`; the wait is device-side. A column of bool, whose elements are bits, is copied, and
/// only on the CPU. Does not block. Takes `column`: it is released exactly once, after the last access made through Weir is complete,
/// or at once if this throws. `from` is the producer, for messages; null: an unnamed producer. Throws exchange_error: nulls, element
/// types without a dtype, nested and dictionary types, released columns, invalid counts and sizes, a device that Weir does not know.
/// Arrow's C device data interface; rule X4.
[[nodiscard]] WEIR_EXPORT weir::array from_arrow(arrow_array column, const arrow::schema& type,
                                                 std::shared_ptr<package> from = nullptr,
                                                 source_location where = source_location::current());

/// Whether from_arrow copies columns with this schema.
[[nodiscard]] WEIR_EXPORT bool arrow_needs_copy(const arrow::schema& type) noexcept;

}  // namespace weir::exchange
