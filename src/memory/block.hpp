#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "backend/backend.hpp"
#include "frontier/point.hpp"
#include "memory/drop_notice.hpp"
#include "memory/quarantine.hpp"
#include "observe/observers.hpp"
#include "runtime/lifetime/resource.hpp"
#include "runtime/streams/stream_state.hpp"
#include "weir/detail/intrusive.hpp"

namespace weir::memory {

class lent_memory;
class pool;

/// The state of a block.
enum class place : std::uint8_t {
    owned,    ///< buffers own it
    binned,   ///< free, in the bins of one timeline
    indexed,  ///< free, in the index of all free blocks
    aside,    ///< on its way between these, or a block object that describes no memory at present
};

/// A chunk of a device's memory: the pool's, or lent by another owner (see lent_memory). While buffers own it, its history is that of
/// their accesses; from then on it is its *death frontier* (rule L1): what the next owner's first accesses must come after. The next
/// owner inherits it. So the usual ordering covers the reuse exactly where that is needed, and handing out memory waits for nothing.
///
/// Everything here except the base class `resource` belongs to the pool: guarded by its lock while the block is free, and constant while
/// it is owned. `lower` and `upper` are always guarded by the lock.
class block final : public runtime::resource, public detail::counted<block> {
public:
    block() = default;

    std::byte* address = nullptr;  ///< the device's address
    std::ptrdiff_t to_host = 0;    ///< add this to get the host's address of the same byte (backend::memory_chunk)
    std::size_t capacity = 0;      ///< bytes up to the neighbour; `size()` is what the owner asked for
    pool* home = nullptr;
    lent_memory* lent = nullptr;  ///< null: the memory is the pool's
    block* lower = nullptr;       ///< the neighbours by address within one chunk from the driver; null at its ends
    block* upper = nullptr;
    block* next = nullptr;  ///< in the list that the block is in
    block* previous = nullptr;
    std::uint64_t freed_at = 0;       ///< counts frees: a higher number was freed later
    frontiers::timeline_id line = 0;  ///< the timeline that it was last handed out for
    place where = place::aside;
    bool counts_as_pending = false;

    /// Notifications for its drop, for the resources that it came through. Usually null.
    std::unique_ptr<drop_notice> notices;

    /// Not null: a consumer that Weir does not know has the memory (lend_out). Guarded by `mutex` while the block is owned.
    std::unique_ptr<quarantined> quarantine;

    /// For `allocating_stream` only, a negative control of the tests: the stream whose tail is all that the block remembers.
    detail::owner<runtime::stream_state> forgets_all_but;

    /// Before the owner lets go, notifies the observers, which must see what each owner had done before.
    void drop_owner() const noexcept {
        if (observe::observers::any()) {
            tell_released();
        }
        counted::drop_owner();
    }

    [[nodiscard]] runtime::device_state& device() const noexcept;

    /// The source of the memory.
    [[nodiscard]] backend::memory_source& source() const noexcept;

    /// Gives the block back to its pool or its lender. Neither waits nor fails, on any thread (rule L1).
    void last_owner_gone() noexcept;

private:
    void tell_released() const noexcept;
};

/// A list of blocks, linked through them: allocates nothing. A block is in at most one list.
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
