#pragma once

#include <string>
#include <string_view>

#include "check/event_history.hpp"
#include "observe/observer.hpp"
#include "weir/check.hpp"

namespace weir::check {

/// Code that orders the second access after the first: a record, and a wait of the second's stream or of the host. Each line is in the
/// language of the file that it is for: C++ or Python. `first_by`, `second_by`: the libraries whose streams the two accesses run on; empty for
/// Weir's.
[[nodiscard]] std::string mend_of(const race& one, std::string_view first_by = {}, std::string_view second_by = {});

/// Which record a wait took, and which it should have taken.
[[nodiscard]] std::string reason_of(const stale_wait& stale);

/// Why an operation that Weir orders races with one of a library that shares its memory.
[[nodiscard]] std::string reason_of_sharing(std::string_view library);

/// Which of the two accesses runs on a default stream, and what that means.
[[nodiscard]] std::string reason_of(const race& one, observe::default_kind first, observe::default_kind second);

/// What is missing, and why it matters, in one or two sentences.
[[nodiscard]] std::string summary_of(const race& one);

/// A race as a paragraph: what happened where, why it matters, what to add.
[[nodiscard]] std::string text_of(const race& one);

}  // namespace weir::check
