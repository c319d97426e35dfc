#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "frontier/point.hpp"
#include "runtime/lifetime/reaper.hpp"
#include "weir/buffer.hpp"

namespace weir::memory {

class block;
class pool;

/// From now on a consumer that Weir does not know uses the memory, on streams that Weir does not know (rule L5): a drop of the buffer
/// proves nothing about the consumer's work. The memory comes back once everything is complete that is in the contexts which can reach
/// it; until that is known, it is in quarantine. Idempotent. Throws std::bad_alloc.
void lend_out(const buffer& what);

/// Whether the memory would go into quarantine if it were dropped now.
[[nodiscard]] bool is_lent_out(const buffer& what) noexcept;

/// The consumer's last use is in the buffer's history now: the quarantine is not needed. Idempotent.
void take_back(const buffer& what);

/// Whose memory is in quarantine.
enum class memory_owner : std::uint8_t {
    pool,   ///< a pool's
    other,  ///< another library's, or a driver's pool
};

/// Memory that was lent out, from the drop of its last owner on:
///
///     last owner gone --> reaper --> may captures run? --no--> an event of each context --complete--> back to its pool or lender
///                           ^                | perhaps, or the driver has no such events
///                           |                v
///                           +--safe_point-- held
///
/// Constructed when the memory is lent out, so that a drop cannot fail.
class quarantined final : public runtime::retired {
public:
    explicit quarantined(block& of);
    ~quarantined() override = default;

    /// To be called when the last owner is gone. Neither waits nor fails, on any thread.
    void enter() noexcept;

    /// Blocks until memory that the pool counts as quarantined, and that has such an owner, has left quarantine; waits only for memory whose
    /// end is recorded. Returns false if there is none.
    static bool await_one(const pool& of, memory_owner owner);

    /// Asks the drivers whether the ends that were recorded last are complete. Neither waits nor fails; under no lock.
    static void look_at_ends() noexcept;

    /// To be called when no capture runs: records an end for all memory that was dropped before. `may_block`: waits for drivers that cannot
    /// record an end at once.
    static void release_held(bool may_block) noexcept;

private:
    [[nodiscard]] std::optional<frontiers::point> pending() noexcept override;
    void release() noexcept override;
    [[nodiscard]] bool find_end() noexcept;
    [[nodiscard]] bool take_ends() noexcept;
    void leave() noexcept;

    block* block_;
    pool* of_;                   ///< counts the memory as quarantined: the block's own, or that of the lender's device
    memory_owner owner_;         ///< the block, if it is a lender's, may be destroyed before this object
    std::uint64_t dropped_ = 0;  ///< number of drops before this one: no other drop has the same
    bool has_end_ = false;
    std::vector<frontiers::point> ends_;
    // Links in the list of held memory, or of memory whose end is recorded.
    quarantined* next_ = nullptr;
    quarantined* previous_ = nullptr;
    friend struct quarantine_list;
};

}  // namespace weir::memory
