// Events that an event loop waits for.
#pragma once

#include "bind.hpp"

namespace weir::python {

void bind_asyncio(nanobind::module_& m);

}  // namespace weir::python
