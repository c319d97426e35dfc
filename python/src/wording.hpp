// The library's texts, as Python says them.
#pragma once

#include <string>

namespace weir::python {

/// The library's messages and texts name types and calls of C++: here they are Python's.
[[nodiscard]] std::string in_words_of_python(std::string text);

}  // namespace weir::python
