#pragma once

#include <optional>

#include "weir/ordering.hpp"

namespace weir::order {

/// Rule O5: the innermost mode that is set wins, in the order array, stream, scope (of the calling thread), process.
[[nodiscard]] constexpr ordering_mode effective_mode(std::optional<ordering_mode> array,
                                                     std::optional<ordering_mode> stream,
                                                     std::optional<ordering_mode> scope,
                                                     ordering_mode process) noexcept {
    if (array) {
        return *array;
    }
    if (stream) {
        return *stream;
    }
    return scope ? *scope : process;
}

}  // namespace weir::order
