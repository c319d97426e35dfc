// Which line of the Python program a call stands on.
#pragma once

#include <span>
#include <string_view>

#include "weir/source_location.hpp"

namespace weir::python {

/// The line of the Python program that called, outside of the package itself. Needs the GIL, never fails: a line that cannot
/// be found is line 0.
[[nodiscard]] source_location here() noexcept;

/// From now on, lines of files below this folder are not the program's either: a call is attributed to what called them. Needs the GIL.
void leave_out(std::string_view folder);

/// While one lives, `here` remembers the whole stack of each place that it finds. Each different stack is kept once, for ever.
class stack_keeping {
public:
    stack_keeping() noexcept;
    ~stack_keeping();
    stack_keeping(const stack_keeping&) = delete;
    stack_keeping& operator=(const stack_keeping&) = delete;
};

/// The stack of a place that `here` has found meanwhile, the innermost call first; empty if that is not known. Any thread.
[[nodiscard]] std::span<const source_location> kept_stack(const source_location& where);

/// The same text at an address that stays, as labels and locations need it. Each different text is kept once, for ever.
[[nodiscard]] const char* interned(std::string_view text);

}  // namespace weir::python
