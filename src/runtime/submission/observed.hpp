#pragma once

#include <cstdint>

#include "observe/observer.hpp"
#include "runtime/lifetime/package_ties.hpp"
#include "runtime/lifetime/resource.hpp"
#include "weir/access.hpp"
#include "weir/detail/footprint.hpp"
#include "weir/ordering.hpp"

namespace weir::runtime {

[[nodiscard]] inline observe::sharing sharing_of(const package_tie& one) noexcept {
    return one.exported ? observe::sharing::lent : observe::sharing::imported;
}

/// What observers are to see of an access. Under the resource's lock. `in_every_mode`: Weir orders it whatever the program has chosen.
[[nodiscard]] inline observe::observed_access observed(const resource& of, const order::footprint& where,
                                                       access_mode mode, ordering_mode ordering,
                                                       bool in_every_mode = false) {
    observe::observed_access seen{of.id(),
                                  of.size(),
                                  where,
                                  mode,
                                  ordering,
                                  of.is_internal() || in_every_mode,
                                  observe::certainty::definite,
                                  of.token_name()};
    if (const package_tie* const tie = of.packages().with_memory()) {
        seen.shared = sharing_of(*tie);
        seen.address = tie->address;
    }
    return seen;
}

}  // namespace weir::runtime
