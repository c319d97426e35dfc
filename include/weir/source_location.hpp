// The place of a call in the user's program. Layer: base.
#pragma once

#include <cstdint>

namespace weir {

/// A place in the program that uses Weir. The same as std::source_location, which Clang 14 does not have.
///
/// Holds pointers to string literals; copies are cheap and never dangle.
struct source_location {
    const char* file = "";      ///< the source file, as it was passed to the compiler
    const char* function = "";  ///< the function's name
    std::uint32_t line = 0;     ///< counted from 1; 0 if unknown

    /// As a default argument: the place of the call.
    static constexpr source_location current(const char* file = __builtin_FILE(),
                                             const char* function = __builtin_FUNCTION(),
                                             std::uint32_t line = __builtin_LINE()) noexcept {
        return {file, function, line};
    }
};

}  // namespace weir
