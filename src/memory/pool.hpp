#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "backend/hot_mutex.hpp"
#include "frontier/point.hpp"
#include "memory/bins.hpp"
#include "memory/block.hpp"
#include "memory/free_index.hpp"
#include "weir/memory.hpp"

namespace weir::memory {

/// The memory of one device (rules L1, L6). Knows streams only as timelines and clocks, and never waits for them.
///
/// A block that comes back goes, with its death frontier, into the bins of the timeline on which that frontier lies, where the next
/// request of that stream finds it at once. Everything else goes through the index of all free blocks:
///
///     drop --> history::die --> on one timeline? --yes--> its bins --take_recent--> the same stream
///                                    |                       | too many, or another stream needs memory
///                                    +--no--> index <--------+ --take--> any stream
///
/// Any thread may call. One lock, in the lock order after those of buffers and streams; nothing is locked under it but, briefly, a leaf
/// of the backend's (watermarks::has_own_end). The driver is never asked for memory under it.
class pool {
public:
    /// A chunk from the driver is as large as all before it together, within these bounds; larger if one request is.
    static constexpr std::size_t smallest_chunk = std::size_t{2} << 20;
    static constexpr std::size_t largest_chunk = std::size_t{64} << 20;
    /// Below this size the pool grows rather than let a stream wait for another: so many bytes, or so many hundredths of the device's
    /// memory, whichever is more.
    static constexpr std::size_t least_floor = std::size_t{64} << 20;
    static constexpr std::size_t floor_percent = 3;

    /// The pool of the device whose memory this is. Unit tests of the pool pass no `device`.
    pool(backend::memory_source& source, const order::watermarks& completed, runtime::device_state* device = nullptr);
    /// Gives everything back to the driver. Nothing may own a block or use its memory any more. Only tests destroy a pool: the pools of
    /// devices live for ever.
    ~pool();
    pool(const pool&) = delete;
    pool& operator=(const pool&) = delete;

    /// Memory that `line` used last: the common case, which costs one lock. Null if there is none of that size.
    [[nodiscard]] block* take_recent(std::size_t bytes, frontiers::timeline_id line) noexcept;

    /// The result of a request for memory.
    struct answer {
        block* taken = nullptr;
        /// If nothing was taken: what to wait for before asking again. If this is empty, too, there is no memory left.
        std::optional<frontiers::point> wait_for;
        std::uint64_t quarantine_ends = 0;  ///< if nothing was taken: `quarantine_ends` at that moment
        bool driver_refused = false;        ///< whether the driver had no memory; else the limit was reached
    };

    /// Memory for the stream `user`, from where it costs least, in the order of rule L1:
    /// 1. free, and ordered before `user` or complete;
    /// 2. new from the driver, up to 1.25 times the peak of live and pending bytes, or up to the floor;
    /// 3. free, but `user` must wait on the device, for nothing but the last uses;
    /// 4. new from the driver, up to the limit;
    /// 5. free, but `user` must wait for later work than the last uses, too (statistics::over_waited);
    /// 6. nothing, but something is pending: the caller waits on the host and asks again.
    /// Memory that another thread is getting from the driver or giving back to it is not lost: the call waits for that thread before it
    /// reports that there is none. `not_awaited`: points that the caller does not wait for, nor for later ones of their timelines. Throws
    /// std::bad_alloc; nothing is lost then.
    [[nodiscard]] answer take(std::size_t bytes, const requester& user,
                              std::span<const frontiers::point> not_awaited = {});

    /// Takes back a block whose last owner is gone. Neither waits nor fails.
    void put(block& b) noexcept;

    /// @{
    /// The same for a block that unknown consumers may still use, at the begin and at the end of its quarantine (rule L5). In between it is
    /// neither live nor free.
    void enter_quarantine(block& b) noexcept;
    void leave_quarantine(block& b) noexcept;
    /// @}
    /// @{
    /// The same for memory of other owners on the pool's device (rule L5). The pool counts its bytes, and has nothing else to do with it.
    void enter_quarantine_of_others(std::size_t bytes) noexcept;
    void leave_quarantine_of_others(std::size_t bytes) noexcept;
    /// @}
    /// Whether `bytes` more of other owners' memory fit below the limit, beside what is in quarantine of it. Always if that is nothing.
    [[nodiscard]] bool has_room_for_others(std::size_t bytes) noexcept;
    /// The number of blocks that have left quarantine. If it is larger than in an answer, there may be memory since.
    [[nodiscard]] std::uint64_t quarantine_ends() noexcept;

    /// Gives complete cached memory back to the driver, as far as whole chunks are free. Never waits.
    void trim() noexcept;
    /// The same; blocks until the driver can give the memory to others, including memory that other threads are giving back.
    void give_back() noexcept;

    [[nodiscard]] statistics stats() noexcept;
    /// Sets the most bytes that the pool may have from the driver. If it has more already, memory goes back as it is freed and trimmed.
    void set_limit(std::size_t bytes) noexcept;

    /// The message of out_of_memory: how much was requested, and where the memory is.
    [[nodiscard]] std::string explain_shortage(std::size_t bytes);
    /// The same for an import of `bytes` bytes of another owner's memory, for which there is no room.
    [[nodiscard]] std::string explain_refused_import(std::size_t bytes);

    [[nodiscard]] const order::watermarks& completed() const noexcept { return *completed_; }
    [[nodiscard]] runtime::device_state& device() const noexcept { return *device_; }
    [[nodiscard]] backend::memory_source& source() const noexcept { return *source_; }

private:
    using lock = std::unique_lock<backend::hot_mutex>;

    std::unique_ptr<block> spare();
    void make_bins(frontiers::timeline_id line);
    inline void take_back(block& b) noexcept;
    [[nodiscard]] bool bin(block& b, frontiers::timeline_id line) noexcept;
    void hand_over(block& b, frontiers::timeline_id line) noexcept;
    class driver_call;
    void await_driver(lock& held) noexcept;
    [[nodiscard]] block* find_or_grow(lock& held, std::size_t size, const requester& user);
    [[nodiscard]] block* find_pending(std::size_t size, const requester& user, ends which);
    [[nodiscard]] block* carve(block* found, std::size_t size);
    void cut(block& b, std::size_t size, block& rest) noexcept;
    [[nodiscard]] block* grow(lock& held, std::size_t size, std::size_t ceiling, std::size_t largest);
    [[nodiscard]] std::size_t total() const noexcept;
    [[nodiscard]] std::size_t limit() const noexcept;
    [[nodiscard]] std::size_t preferred_ceiling(std::size_t size) const noexcept;
    void gather(merging how) noexcept;
    void reclaim(lock& held) noexcept;

    backend::memory_source* source_;
    const order::watermarks* completed_;
    runtime::device_state* device_;
    runtime::memory_reach reach_;  ///< of all blocks

    backend::hot_mutex mutex_;                 ///< guards all that follows
    std::vector<std::unique_ptr<bins>> bins_;  ///< by timeline; null for timelines that never asked for memory
    std::size_t live_ = 0;
    /// An upper bound: blocks that have become complete are subtracted only when they are checked.
    std::size_t pending_ = 0;
    std::size_t quarantined_ = 0;
    std::size_t quarantined_of_others_ = 0;
    std::uint64_t quarantine_ends_ = 0;
    std::size_t reserved_ = 0;    ///< had from the driver, or being requested
    std::uint64_t refusals_ = 0;  ///< how often the driver had no memory
    int driver_calls_ = 0;        ///< calls of the driver in progress, by threads that have released the lock for them
    /// Number of finished calls of the driver; a thread that waits for one waits for a change.
    std::atomic<std::uint32_t> driver_answers_{0};
    std::size_t peak_ = 0;
    std::uint64_t over_waited_ = 0;
    std::size_t limit_;  ///< the limit that was set; the device may have less
    std::uint64_t frees_ = 0;
    free_index index_;
    block_list spares_;  ///< block objects that describe no memory
};

}  // namespace weir::memory
