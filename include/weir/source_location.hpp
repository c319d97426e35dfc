// Where in the user's program a call stands. Layer: base.
#pragma once

#include <cstdint>

namespace weir {

/// A place in the program that uses Weir. The same as std::source_location, which Clang 14 does not have.
///
/// Holds pointers to string literals; copies are cheap and never dangle.
struct source_location {
    const char* file = "";      ///< the source file, as the compiler was given it
    const char* function = "";  ///< the function's name
    std::uint32_t line = 0;     ///< from 1; 0 if nothing is known

    /// The place of the call in whose default argument this stands.
    static constexpr source_location current(const char* file = __builtin_FILE(),
                                             const char* function = __builtin_FUNCTION(),
                                             std::uint32_t line = __builtin_LINE()) noexcept {
        return {file, function, line};
    }
};

}  // namespace weir
