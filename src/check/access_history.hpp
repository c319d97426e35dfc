#pragma once

#include <cstdint>
#include <vector>

#include "check/program_order.hpp"
#include "weir/detail/footprint.hpp"
#include "weir/detail/site.hpp"

namespace weir::check {

/// One access of an operation.
struct past_access {
    std::uint64_t resource = 0;
    order::footprint where;
    order::access_mode mode = order::access_mode::read;
    moment when;
    runtime::site from;
    bool left_to_weir = false;                                  ///< Weir orders it, and options let that count
    observe::certainty touches = observe::certainty::definite;  ///< `possible` if it may touch less than `where`, too
};

/// The part of a footprint in memory at `base` that lies in [address, address + bytes), relative to that; empty if there is none. If a shape
/// is cut in two, the whole range counts, and `is_cut` becomes true.
[[nodiscard]] order::footprint part_within(const order::footprint& where, std::uint64_t base, std::uint64_t address,
                                           std::uint64_t bytes, bool& is_cut);
/// The same of an access, which is then a possible one if its shape is cut.
[[nodiscard]] past_access moved(const past_access& access, std::uint64_t base, std::uint64_t address,
                                std::uint64_t bytes);

/// The accesses to one resource that later ones may race with. Never pruned by completion (rule O10). Parts that a later access covers
/// are cut away if the program orders the two: what is ordered after the later access is ordered after both, and what is not races with
/// the later access.
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
    [[nodiscard]] const std::vector<past_access>& all() const noexcept { return accesses_; }

    /// Of the accesses for which `is_before(past_access)` is true, cuts away what an access to `where` replaces. An access that may not
    /// happen does not replace a definite one: a later race with the definite one is definite.
    template <class IsBefore>
    void replace(const order::footprint& where, order::access_mode mode, observe::certainty touches,
                 IsBefore&& is_before) {
        std::vector<past_access> rests;
        for (past_access& past : accesses_) {
            const bool same_kind = mode == order::access_mode::write || past.mode == order::access_mode::read;
            const bool is_as_certain = touches == observe::certainty::definite || past.touches == touches;
            if (same_kind && is_as_certain && overlap(where, past.where) && is_before(past)) {
                cut(past, where, rests);
            }
        }
        drop_empty();
        accesses_.insert(accesses_.end(), rests.begin(), rests.end());
    }

    void add(past_access access) {
        if (!access.where.empty()) {
            accesses_.push_back(std::move(access));
        }
    }

    void clear() noexcept { accesses_.clear(); }

private:
    /// Leaves of `past` the part outside `where`; if there are two parts, the second goes to `rests`.
    static void cut(past_access& past, const order::footprint& where, std::vector<past_access>& rests);
    void drop_empty();

    std::vector<past_access> accesses_;  ///< in the order in which they were enqueued
};

}  // namespace weir::check
