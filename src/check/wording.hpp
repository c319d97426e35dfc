#pragma once

#include <string>

#include "weir/check.hpp"

namespace weir::check {

/// C++ that orders the second access after the first: a record, and a wait of the second's stream or of the host.
[[nodiscard]] std::string mend_of(const race_access& first, const race_access& second);

/// A race as a paragraph: what happened where, why it matters, what to add.
[[nodiscard]] std::string text_of(const race& one);

}  // namespace weir::check
