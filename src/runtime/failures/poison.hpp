#pragma once

#include <cstdint>
#include <set>

#include "runtime/failures/failure.hpp"
#include "runtime/lifetime/liveness_token.hpp"
#include "weir/detail/footprint.hpp"

namespace weir::runtime {

/// Which bytes of which resources are not valid, because the operation that was to write them failed or did not run (rule
/// K4). Keyed by a resource's number, not stored in the resource: enqueued operations may still read memory that was dropped.
///
/// As long as anything is poisoned, `backend::queue_events::has_pending_failures`. Every function may be called under any lock.
class poison {
public:
    /// Must be called before anything can fail. Throws std::bad_alloc.
    static void arm();

    /// `where` is not valid because of `why`, whatever it was before.
    static void add(const liveness_token& of, std::uint64_t resource, const order::footprint& where,
                    const failure_ptr& why) noexcept;
    /// `where` was overwritten with valid data.
    static void heal(std::uint64_t resource, const order::footprint& where) noexcept;

    /// Why a byte of `where` is not valid; null if all are.
    [[nodiscard]] static failure_ptr find(std::uint64_t resource, const order::footprint& where) noexcept;

    /// The poisoned resources that have no owner any more: only operations that are enqueued already can read them. Throws
    /// std::bad_alloc.
    using numbers = std::set<std::uint64_t>;
    [[nodiscard]] static numbers without_owner();
    /// Drops the entries: no operation can read these resources any more.
    static void forget(const numbers& resources) noexcept;
};

}  // namespace weir::runtime
