#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "backend/backend.hpp"
#include "frontier/point.hpp"
#include "memory/drop_notice.hpp"
#include "memory/quarantine.hpp"
#include "runtime/observer.hpp"
#include "runtime/resource.hpp"
#include "runtime/stream_state.hpp"
#include "weir/detail/intrusive.hpp"

namespace weir::memory {

class lent_memory;
class pool;

/// Where a block is.
enum class place : std::uint8_t {
    owned,    ///< buffers own it
    binned,   ///< free, in the bins of one timeline
    indexed,  ///< free, in the index of all free blocks
    aside,    ///< on its way between them, or a description that describes no memory at the moment
};

/// A piece of a device's memory: the pool's, or lent by somebody who owns it (see lent_memory). While buffers own it, its history is that of their accesses; from then on it is its
/// *death frontier* (rule L1): what the next owner's first accesses must come after. The next owner inherits it, so that
/// the ordinary machinery orders the reuse exactly where that is needed, and handing memory out waits for nothing.
///
/// Everything here but what `resource` says is the pool's, guarded by its lock while the block is free, and constant
/// while it is owned, but for `lower` and `upper`, which are always guarded by the lock.
class block final : public runtime::resource, public detail::counted<block> {
public:
    block() = default;

    std::byte* address = nullptr;  ///< the device's
    std::ptrdiff_t to_host = 0;    ///< from there to the host's address of the same byte (backend::memory_piece)
    std::size_t capacity = 0;      ///< bytes up to the neighbour; `size()` are those that the owner asked for
    pool* home = nullptr;
    lent_memory* lent = nullptr;  ///< null: the pool's
    block* lower = nullptr;       ///< the neighbours by address within one piece from the driver; null at its ends
    block* upper = nullptr;
    block* next = nullptr;  ///< in the list that the block is in
    block* previous = nullptr;
    std::uint64_t freed_at = 0;       ///< counts frees: tells old ones from new ones
    frontiers::timeline_id line = 0;  ///< the timeline it was handed out for last
    place where = place::aside;
    bool counts_as_pending = false;

    /// Who wants to know of its drop: the resources that it came through. Null as a rule.
    std::unique_ptr<drop_notice> notices;

    /// Not null: a consumer that nobody knows has the memory (lend_out). Guarded by `mutex` while it is owned.
    std::unique_ptr<quarantined> quarantine;

    /// Only for the control of the tests, `allocating_stream`: the stream whose tail is all that the block remembers.
    detail::owner<runtime::stream_state> forgets_all_but;

    /// Tells the observers, who must know in time what each owner had done before it let go.
    void drop_owner() const noexcept {
        if (runtime::observers::any()) {
            tell_released();
        }
        counted::drop_owner();
    }

    [[nodiscard]] runtime::device_state& device() const noexcept;

    /// Where the memory is from.
    [[nodiscard]] backend::memory_source& source() const noexcept;

    /// Gives the block back to whom it belongs. Neither waits nor fails, on any thread (rule L1).
    void last_owner_gone() noexcept;

private:
    void tell_released() const noexcept;
};

/// A list of blocks, linked through them: costs no allocation. A block is in one list at most.
class block_list {
public:
    [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
    [[nodiscard]] block* first() const noexcept { return first_; }
    [[nodiscard]] block* last() const noexcept { return last_; }

    void push_back(block& b) noexcept {
        b.previous = last_;
        b.next = nullptr;
        (last_ == nullptr ? first_ : last_->next) = &b;
        last_ = &b;
    }
    void remove(block& b) noexcept {
        (b.previous == nullptr ? first_ : b.previous->next) = b.next;
        (b.next == nullptr ? last_ : b.next->previous) = b.previous;
        b.next = nullptr;
        b.previous = nullptr;
    }
    block* pop_back() noexcept {
        block* const b = last_;
        if (b != nullptr) {
            remove(*b);
        }
        return b;
    }

private:
    block* first_ = nullptr;
    block* last_ = nullptr;
};

}  // namespace weir::memory
