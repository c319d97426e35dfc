#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "order/mark.hpp"
#include "order/plan.hpp"
#include "weir/detail/footprint.hpp"

namespace weir::order {

/// Who made an access.
enum class accessor : std::uint8_t {
    weir,     ///< an operation
    package,  ///< a package that shares the memory, in work that Weir has not seen (rules X6, X7)
};

/// One access that later ones may have to be ordered after.
struct past_access {
    footprint where;
    mark when;
    access_mode mode = access_mode::read;
    bool former_owner = false;  ///< an access to the memory before its present owner got it: the death frontier (L1)
    accessor by = accessor::weir;
};

/// The pending accesses of one piece of memory: for each range the last write and the reads since.
///
/// An access is forgotten when a later one that is *ordered after it* covers it: a write covers reads and writes, a
/// read covers reads. A later access that is not ordered after it (rule O5, `manual`) leaves it in place, so that going
/// back to automatic ordering is safe at once. Accesses of a former owner are forgotten only once they are over: the
/// program may leave two accesses of its own unordered, but then neither may reach into the former owner's time (rule
/// L1). Beyond `bound` accesses, a new one merges conservatively with an earlier one of its timeline (rule O3).
class history {
public:
    /// The number of accesses kept exactly. Never more are kept than this and one for each timeline.
    static constexpr std::size_t bound = 64;

    /// Tells `into` what an access to `where` must come after: all that conflicts (`hazards`), or only what a former
    /// owner of the memory did (rule O5: reuse is never left to the program).
    void require(plan& into, const footprint& where, access_mode mode, bool hazards) const;

    /// Calls `visit(past_access, reason)` for each kept access that conflicts with one to `where`.
    template <class Visit>
    void conflicts(const footprint& where, access_mode mode, Visit&& visit) const {
        for (const past_access& past : accesses_) {
            if ((past.mode == access_mode::read && mode == access_mode::read) || !overlap(past.where, where)) {
                continue;
            }
            visit(past, why(past, mode));
        }
    }

    /// Makes room for `more` accesses, so that as many calls of `record` cannot fail. May throw std::bad_alloc.
    void reserve(std::size_t more) {
        const std::size_t needed = accesses_.size() + more;
        if (needed > accesses_.capacity()) {
            accesses_.reserve(std::max(needed, 2 * accesses_.capacity()));
        }
    }

    /// Adds an access made at `when`, where `when.known` is what its operation is ordered after, waits included.
    /// Forgets what it covers. Call `reserve` before.
    void record(const footprint& where, access_mode mode, const mark& when, const watermarks& completed,
                accessor by = accessor::weir) noexcept;

    /// Forgets what is complete.
    void prune(const watermarks& completed) noexcept;

    /// Turns all accesses into accesses of a former owner to the whole of `size` bytes, reduced to those that no other
    /// implies: the *death frontier* (rule L1). What is complete is dropped.
    void die(std::uint64_t size, const watermarks& completed) noexcept;

    /// Adds the death frontier of another piece of memory, which becomes part of this one.
    void merge_death(const history& other, std::uint64_t size, const watermarks& completed);

    [[nodiscard]] std::span<const past_access> accesses() const noexcept { return accesses_; }
    [[nodiscard]] bool empty() const noexcept { return accesses_.empty(); }
    void clear() noexcept { accesses_.clear(); }

private:
    static reason why(const past_access& past, access_mode mode) noexcept;
    [[nodiscard]] bool merge(const past_access& added) noexcept;

    std::vector<past_access> accesses_;
};

}  // namespace weir::order
