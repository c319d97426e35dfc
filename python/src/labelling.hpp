// weir.label, and `label=` of the calls that enqueue.
#pragma once

#include "bind.hpp"

#include <optional>

#include "weir/detail/label_scope.hpp"

namespace weir::python {

/// The argument `label=` of a call: while it lives, what the calling thread enqueues has this label. Nothing for None. Needs the GIL.
class labelled {
public:
    /// Throws argument_type_error, argument_error.
    explicit labelled(nb::handle label) {
        if (!label.is_none()) {
            begin(label);
        }
    }

private:
    void begin(nb::handle label);

    std::optional<weir::detail::label_scope> scope_;
};

/// The label of what the calling thread enqueues now, in its Python context; null if it has none. Needs the GIL.
[[nodiscard]] const char* current_label();

void bind_labelling(nb::module_& m);

}  // namespace weir::python
