#pragma once

#include <cstdint>
#include <vector>

#include "check/program_order.hpp"
#include "weir/detail/footprint.hpp"
#include "weir/detail/site.hpp"

namespace weir::check {

/// One access of an operation.
struct past_access {
    order::footprint where;
    order::access_mode mode = order::access_mode::read;
    moment when;
    runtime::site from;
};

/// The accesses to one resource that later ones may race with. Never pruned by completion (rule O10). What a later access
/// covers is cut away if the program orders the two: whoever is ordered after the later one is ordered after both, and
/// whoever is not races with the later one.
class access_history {
public:
    /// Calls `visit(past_access)` for each access that conflicts with one to `where`.
    template <class Visit>
    void conflicts(const order::footprint& where, order::access_mode mode, Visit&& visit) const {
        for (const past_access& past : accesses_) {
            const bool both_read = past.mode == order::access_mode::read && mode == order::access_mode::read;
            if (!both_read && overlap(past.where, where)) {
                visit(past);
            }
        }
    }

    /// Adds an access that its stream makes now.
    void record(const past_access& access, const program_order& order);

private:
    std::vector<past_access> accesses_;  ///< in the order in which they were enqueued
};

}  // namespace weir::check
