// The library's texts in Python's words.
#pragma once

#include <string>

namespace weir::python {

/// The library's messages and texts name types and calls of C++: this replaces them by Python's.
[[nodiscard]] std::string in_words_of_python(std::string text);

}  // namespace weir::python
