// Explains what an array, a token or an event waits for, and which library does the phases of a plan. Layer: array.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weir/export.hpp"

namespace weir {

class array;
class buffer;
class event;
class token;

/// The protocols by which packages exchange arrays.
enum class exchange_protocol : std::uint8_t {
    none,
    dlpack,                ///< DLPack's capsules
    dlpack_table,          ///< DLPack's C exchange table
    cuda_array_interface,  ///< the CUDA Array Interface
    arrow_device,          ///< Arrow's C device data interface
    arrow,                 ///< Arrow's C data interface
    elements,              ///< the elements one by one, or copied from the buffer protocol
    buffer,                ///< Python's buffer protocol
};

/// How an array was exchanged.
struct exchange_record {
    exchange_protocol by = exchange_protocol::none;  ///< the protocol; none: there was no exchange
    bool went_out = false;                           ///< to another package; otherwise it came from one
    bool copied = false;                             ///< the memory is a copy that was made for the exchange
    bool host_blocked = false;                       ///< the calling thread waited for work on the array
};

/// Records, with the memory, its last exchange, for explain(). Never blocks.
WEIR_EXPORT void note_exchange(const buffer& memory, const exchange_record& how) noexcept;

/// The record that note_exchange made.
[[nodiscard]] WEIR_EXPORT exchange_record last_exchange(const buffer& memory) noexcept;

/// Whether an access to the array's elements is pending for which a writer (`writes`) or a reader would have to wait. Never blocks.
[[nodiscard]] WEIR_EXPORT bool has_pending(const array& what, bool writes);

/// The result of explain(), for one moment. A value.
struct WEIR_EXPORT explanation {
    std::string subject;    ///< the array, the token or the event, as its to_string returns it; or the plan
    std::string protocol;   ///< the protocol of an array's last exchange with another package; "none" if there was none
    bool went_out = false;  ///< whether it went to the other package; otherwise it came from it
    bool copied = false;    ///< whether that needed a copy
    bool host_blocked = false;  ///< whether the host waited for that, or since for a package without queues
    /// Device-side waits of pending operations for what is not complete: one line each.
    std::vector<std::string> waits;
    std::vector<std::string> pending;  ///< operations that are not complete: one line each, the earliest first
    /// Of a plan of a library call: which library does each phase, where, and whether the call blocks: one line each.
    std::vector<std::string> phases{};
    /// Packages that share the array's memory now, and what they may do and how operations are ordered with it: one line each. None after an
    /// exclusive import, and once a consumer has let go.
    std::vector<std::string> shared_with{};

    /// The explanation as a text of some lines.
    [[nodiscard]] std::string to_string() const;
};

/// The pending accesses to an array's elements, with their labels, source lines and streams, and what each of them waits for on other
/// streams (rule V2). Describes the present moment; does not block on devices. Throws std::bad_alloc.
[[nodiscard]] WEIR_EXPORT explanation explain(const array& what);

/// The same of a token: the pending operations that declare it.
[[nodiscard]] WEIR_EXPORT explanation explain(const token& what);

/// What holds up the moment that an event holds: its operation, what that waits for on which stream, and so on, to the operation that
/// holds up all others. Empty if the moment is complete. Describes the present moment; never blocks. Throws std::bad_alloc.
[[nodiscard]] WEIR_EXPORT explanation explain(const event& what);

}  // namespace weir
