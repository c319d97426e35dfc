#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "frontier/point.hpp"
#include "runtime/reaper.hpp"
#include "weir/buffer.hpp"

namespace weir::memory {

class block;
class pool;

/// A consumer that Weir does not know uses the memory from now on, on streams that it does not tell (rule L5): that the
/// buffer is dropped proves nothing about the consumer's work. The memory comes back once everything is over that is in the
/// contexts which can reach it; until that is known, it is in quarantine. Idempotent. Throws std::bad_alloc.
void lend_out(const buffer& what);

/// The consumer's last use is in the buffer's history by now: the quarantine is not needed. Idempotent.
void take_back(const buffer& what);

/// Memory that was lent out, from the drop of its last owner on:
///
///     last owner gone --> reaper --> may captures run? --no--> an event of each context --over--> back to whom it belongs
///                           ^                | perhaps, or the driver has no such events
///                           |                v
///                           +--safe_point-- held
///
/// Made when the memory is lent out, so that a drop cannot fail.
class quarantined final : public runtime::retired {
public:
    explicit quarantined(block& of);
    ~quarantined() override = default;

    /// The last owner is gone. Neither waits nor fails, on any thread.
    void enter() noexcept;

    /// Blocks until memory of the pool has come back whose end is known to come; false if there is none.
    static bool await_one(const pool& of);

    /// A moment at which no capture runs: what was dropped before gets an end. `may_block`: also from drivers that have to
    /// wait for it.
    static void release_held(bool may_block) noexcept;

private:
    [[nodiscard]] std::optional<frontiers::point> pending() noexcept override;
    void release() noexcept override;
    [[nodiscard]] bool find_end() noexcept;
    [[nodiscard]] bool take_ends() noexcept;
    void leave() noexcept;

    block* block_;
    const pool* of_;             ///< null: the memory is lent by others. The block may be gone before this is
    std::uint64_t dropped_ = 0;  ///< how many were dropped before: a number that no other drop has
    bool has_end_ = false;
    std::vector<frontiers::point> ends_;
    // In the list of those that are held, or of those whose end is to come.
    quarantined* next_ = nullptr;
    quarantined* previous_ = nullptr;
    friend struct quarantine_list;
};

}  // namespace weir::memory
