#include "weir/detail/internal_memory.hpp"

#include <utility>

#include "runtime/lifetime/resource.hpp"
#include "weir/detail/passkey.hpp"

namespace weir::detail {

buffer internal(buffer made) noexcept {
    if (runtime::resource* const memory = made.resource(detail::key)) {
        memory->set_internal();
    }
    return made;
}

array internal(array made) noexcept {
    static_cast<void>(internal(made.buffer()));
    return made;
}

}  // namespace weir::detail
