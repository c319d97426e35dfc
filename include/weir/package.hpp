// Other libraries that share memory with Weir. Layer: runtime.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include "weir/device.hpp"
#include "weir/export.hpp"
#include "weir/stream.hpp"

namespace weir {

namespace detail {
class package_order;
}

/// Another array library in this process, as far as Weir needs to know it: the stream that it works on now. Derive from it, with one object
/// for each library, to share memory with that library (sharing.hpp).
class WEIR_EXPORT package {
public:
    package() = default;
    package(const package&) = delete;
    package& operator=(const package&) = delete;
    virtual ~package();

    /// Its name, for messages and traces. Constant, and valid as long as the object.
    [[nodiscard]] virtual std::string_view name() const noexcept = 0;

    /// The stream into which the package would put the calling thread's next work on `of`. It may be another stream at each call (rule
    /// S7), so Weir asks for each operation on shared memory, on the thread that enqueues the operation and under no lock. None if the
    /// package has no queues there and its work is complete when its calls return, as NumPy's is (rule X6).
    [[nodiscard]] virtual std::optional<stream> current_stream(device of) = 0;

    /// Not null while what the package does is seen and kept in order by its accesses: then operations on shared memory take part in that
    /// order, and the package's current stream does not matter to them, unless a part of what it does is not seen. Lives as long as the
    /// package. Never blocks. Any thread, under any lock.
    [[nodiscard]] virtual detail::package_order* order() noexcept;
};

/// What a package may do with memory that it shares.
enum class package_use : std::uint8_t {
    reads,   ///< it only reads, as the consumer of an immutable import does: reads by Weir need no order with it
    writes,  ///< it may read and write
};

namespace detail {

/// What a package may do with an array of this type: only read a const one.
template <class Array>
inline constexpr package_use use_of =
    std::is_const_v<std::remove_reference_t<Array>> ? package_use::reads : package_use::writes;

}  // namespace detail

}  // namespace weir
