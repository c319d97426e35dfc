// Launches whose arguments are known at run time only, as bindings make them. Layer: array.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/completion.hpp"
#include "weir/detail/site.hpp"
#include "weir/detail/submission.hpp"
#include "weir/dtype.hpp"
#include "weir/export.hpp"
#include "weir/kernel.hpp"
#include "weir/kernel_argument.hpp"
#include "weir/scalar.hpp"
#include "weir/stream.hpp"

namespace weir::detail {

/// The destination of a launch, besides its stream.
struct launch_site {
    std::span<const completion> after;
    runtime::site site;
    std::span<const runtime::access_request> besides =
        {};  ///< what the kernel uses besides its arguments: tokens, other memory
};

/// kernel::launch. Makes all checks first; then calls `submit`, which is runtime::submit or calls it: a binding releases its own lock
/// there. Throws as kernel::launch does.
WEIR_EXPORT completion launch_arguments(const kernel& what, const stream_ref& on, const launch_config& config,
                                        std::span<const kernel_argument> arguments, const launch_site& at,
                                        completion (*submit)(runtime::stream_state&, const runtime::submission&));

/// The same for a kernel whose parameters have 8 bytes each, or less: `words` are their values, lowest bytes first, which are copied.
/// Reads and writes `accesses`; what the words say of them is not checked. Throws argument_error (a stream of another device, a shape
/// that the device has not), and as `submit` does.
WEIR_EXPORT completion launch_words(const kernel& what, const stream_ref& on, const launch_config& config,
                                    std::span<const std::uint64_t> words,
                                    std::span<const runtime::access_request> accesses, const launch_site& at,
                                    completion (*submit)(runtime::stream_state&, const runtime::submission&));

/// One parameter that a signature declares.
struct declared_parameter {
    std::string name;
    std::optional<dtype> type;  ///< of the number, or of the elements; empty: any elements ("in void* x")
    std::optional<kernel_argument::use> array;  ///< how an array is used; empty: it is a number
};
/// Reads a signature as kernel::with_signature does. Throws argument_error.
[[nodiscard]] WEIR_EXPORT std::vector<declared_parameter> read_signature(std::string_view text);

/// Whether a number can be a parameter's value.
enum class fit : std::uint8_t {
    fits,
    other_kind,    ///< a real number for integers, a complex one for real numbers
    out_of_range,  ///< the parameter's type does not have it
};
/// The conversion that kernel::launch makes of numbers: stores `number` as a value of `type`, if it fits. `to` has 16 bytes.
[[nodiscard]] WEIR_EXPORT fit store_argument(dtype type, const scalar& number, std::byte* to);

/// Whether this parameter is a structure by value ("struct point p"). Never blocks.
[[nodiscard]] WEIR_EXPORT bool takes_structure(const kernel& what, std::size_t position) noexcept;

/// Whether checked_shape calls no driver: launches of the kernel may already request so much shared memory. Never blocks.
[[nodiscard]] WEIR_EXPORT bool allows_shared_bytes(const kernel& what, std::size_t bytes) noexcept;

/// @{
/// Throw what kernel::launch throws, for an argument from which a binding cannot make a kernel_argument. `got` says what was given. The
/// message names the kernel, the parameter and what to pass.
WEIR_EXPORT void expect_argument_count(const kernel& what, std::size_t count);
[[noreturn]] WEIR_EXPORT void refuse_argument(const kernel& what, std::size_t position, const std::string& got);
[[noreturn]] WEIR_EXPORT void refuse_argument_range(const kernel& what, std::size_t position, const std::string& got);
/// @}

}  // namespace weir::detail
