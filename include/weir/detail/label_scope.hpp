// A name for everything that a thread enqueues. Layer: runtime.
#pragma once

#include "weir/export.hpp"

namespace weir::detail {

/// While it lives, operations that the calling thread enqueues have this label instead of their own in errors, reports, timelines and
/// profilers; the innermost object counts. For languages whose calls cannot pass a label along: C++ has `on(s).label("x")`. Any thread may
/// have one; it must end on the same thread, innermost first.
class WEIR_EXPORT label_scope {
public:
    /// `label` lives as long as the program.
    [[nodiscard]] explicit label_scope(const char* label) noexcept;
    ~label_scope();
    label_scope(const label_scope&) = delete;
    label_scope& operator=(const label_scope&) = delete;

    /// The calling thread's label; null if it has none.
    [[nodiscard]] static const char* current() noexcept;

private:
    const char* before_;
};

}  // namespace weir::detail
