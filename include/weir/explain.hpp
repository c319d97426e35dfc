// Tells what an array or an event waits for. Layer: array.
#pragma once

#include <string>
#include <vector>

#include "weir/export.hpp"

namespace weir {

class array;
class event;

/// What explain() says, at one moment. A value.
struct WEIR_EXPORT explanation {
    std::string subject;               ///< the array or the event, as its to_string says
    std::string protocol;              ///< by which an array came from another package; "none" if it is Weir's own
    bool copied = false;               ///< whether that took a copy
    bool host_blocked = false;         ///< whether the host had to wait for that
    std::vector<std::string> waits;    ///< device-side waits of what is pending, for what is not over: one line each
    std::vector<std::string> pending;  ///< operations that are not over: one line each, the earliest first

    /// For people, some lines.
    [[nodiscard]] std::string to_string() const;
};

/// The pending accesses to an array's elements, with their labels, source lines and streams, and what each of them waits for on
/// other streams (rule V2). Looks at this moment, blocks on no device. Throws std::bad_alloc.
[[nodiscard]] WEIR_EXPORT explanation explain(const array& what);

/// What holds up the moment that an event holds: the operation that it stands for, what that waits for on which stream, and so on
/// down to what holds up all of it. Nothing if the moment is over. Looks at this moment, never blocks. Throws std::bad_alloc.
[[nodiscard]] WEIR_EXPORT explanation explain(const event& what);

}  // namespace weir
