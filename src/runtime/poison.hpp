#pragma once

#include <cstdint>
#include <set>

#include "runtime/failure.hpp"
#include "runtime/life.hpp"
#include "weir/detail/footprint.hpp"

namespace weir::runtime {

/// Which bytes of which resources are not valid, since the operation that was to write them failed or did not run (rule
/// K4). By a resource's number, not in the resource: operations that are enqueued may still read what was dropped.
///
/// As long as anything is poisoned, `backend::queue_events::in_trouble`. Every function is safe to call under any lock.
class poison {
public:
    /// Before anything can fail. Throws std::bad_alloc.
    static void arm();

    /// `where` is not valid because of `why`, whatever it was before.
    static void add(const life& of, std::uint64_t resource, const order::footprint& where,
                    const failure_ptr& why) noexcept;
    /// `where` was written anew.
    static void heal(std::uint64_t resource, const order::footprint& where) noexcept;

    /// Why a byte of `where` is not valid; null if all are.
    [[nodiscard]] static failure_ptr find(std::uint64_t resource, const order::footprint& where) noexcept;

    /// The poisoned resources that have no owner any more: only operations that are enqueued can be concerned. Throws
    /// std::bad_alloc.
    using numbers = std::set<std::uint64_t>;
    [[nodiscard]] static numbers without_owner();
    /// No operation is concerned any more.
    static void forget(const numbers& resources) noexcept;
};

}  // namespace weir::runtime
