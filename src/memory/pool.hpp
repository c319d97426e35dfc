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
/// A block that comes back goes, with its death frontier, into the bins of the timeline on which that frontier lies, where
/// the next request of that stream finds it at once. Everything else goes through the index of all free blocks:
///
///     drop --> history::die --> on one timeline? --yes--> its bins --take_recent--> the same stream
///                                    |                       | too many, or somebody else needs memory
///                                    +--no--> index <--------+ --take--> any stream
///
/// Any thread may call. One lock, after those of buffers and streams; nothing is locked under it but, for a moment, a leaf
/// of the backend's (watermarks::has_own_end). No memory is asked of the driver under it.
class pool {
public:
    /// Pieces from the driver are as large as all before them together, within these bounds; larger if one request is.
    static constexpr std::size_t smallest_piece = std::size_t{2} << 20;
    static constexpr std::size_t largest_piece = std::size_t{64} << 20;
    /// So large the pool may become at least rather than have a stream wait for another: so many bytes, or so many hundredths
    /// of the device, whichever is more.
    static constexpr std::size_t least_floor = std::size_t{64} << 20;
    static constexpr std::size_t floor_percent = 3;

    /// Serves the device whose memory this is. Unit tests of the pool have no `device`.
    pool(backend::memory_source& source, const order::watermarks& completed, runtime::device_state* device = nullptr);
    /// Gives everything back to the driver. Nobody may own a block or use its memory any more. Only tests do this: the
    /// pools of devices live for ever.
    ~pool();
    pool(const pool&) = delete;
    pool& operator=(const pool&) = delete;

    /// Memory that `line` used last: the common case, at the price of a lock. Null if there is none of that size.
    [[nodiscard]] block* take_recent(std::size_t bytes, frontiers::timeline_id line) noexcept;

    /// What came of asking for memory.
    struct answer {
        block* taken = nullptr;
        /// If nothing was: what to wait for before asking again. Nothing either: there is no memory left.
        std::optional<frontiers::point> wait_for;
        std::uint64_t quarantine_ends = 0;  ///< what that was then, if nothing was taken
        bool driver_refused = false;        ///< whether the driver had none; else the limit is in the way
    };

    /// Memory for `who`, from where it costs least, in the order of rule L1:
    /// 1. free, and ordered before `who` or complete; 2. new from the driver, up to 1.25 times the peak of live and pending
    /// bytes, or up to the floor; 3. free, but `who` will have to wait on the device, for nothing but the last uses; 4. new
    /// from the driver up to the limit; 5. free, but `who` will have to wait for what came after the last uses, too
    /// (statistics::over_waited); 6. nothing, but something is pending: the caller waits on the host and asks again. Memory
    /// that another thread is getting from the driver or giving back to it is not gone: the call waits for that thread before
    /// it says that there is none. `not_awaited`: points that the caller does not wait for, nor for later ones of their
    /// timelines. Throws std::bad_alloc; nothing is lost then.
    [[nodiscard]] answer take(std::size_t bytes, const requester& who,
                              std::span<const frontiers::point> not_awaited = {});

    /// Takes a block back whose last owner is gone. Neither waits nor fails.
    void put(block& b) noexcept;

    /// @{
    /// The same for a block that others may use, at first and at last (rule L5). In between it is neither live nor free.
    void enter_quarantine(block& b) noexcept;
    void leave_quarantine(block& b) noexcept;
    /// @}
    /// How many blocks have left. More than an answer says if there may be memory since.
    [[nodiscard]] std::uint64_t quarantine_ends() noexcept;

    /// Gives complete cached memory back to the driver, as far as its pieces are free from end to end. Never waits.
    void trim() noexcept;
    /// The same; blocks until the driver can give it to others, also what other threads are giving back.
    void give_back() noexcept;

    [[nodiscard]] statistics stats() noexcept;
    /// The most bytes the pool may have from the driver. What is beyond a lower limit already goes back as it is freed
    /// and trimmed.
    void set_limit(std::size_t bytes) noexcept;

    /// The message of out_of_memory: who wanted how much, and where the memory is.
    [[nodiscard]] std::string explain_shortage(std::size_t bytes);

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
    [[nodiscard]] block* find_or_grow(lock& held, std::size_t size, const requester& who);
    [[nodiscard]] block* find_pending(std::size_t size, const requester& who, ends which);
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

    backend::hot_mutex mutex_;                 ///< guards all that follows
    std::vector<std::unique_ptr<bins>> bins_;  ///< by timeline; null for those that never asked for memory
    std::size_t live_ = 0;
    std::size_t pending_ = 0;  ///< an upper bound: what becomes complete leaves it when somebody looks
    std::size_t quarantined_ = 0;
    std::uint64_t quarantine_ends_ = 0;
    std::size_t reserved_ = 0;    ///< had from the driver, or being asked for
    std::uint64_t refusals_ = 0;  ///< how often the driver had none
    int driver_calls_ = 0;        ///< by threads that have opened the lock for them
    std::atomic<std::uint32_t> driver_answers_{
        0};  ///< so many of these calls are over; who needs one waits for the next
    std::size_t peak_ = 0;
    std::uint64_t over_waited_ = 0;
    std::size_t limit_;  ///< what was asked for; the device may have less
    std::uint64_t frees_ = 0;
    free_index index_;
    block_list spares_;  ///< descriptions without memory
};

}  // namespace weir::memory
