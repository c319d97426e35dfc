#pragma once

#include <mutex>
#include <optional>
#include <vector>

#include "order/plan.hpp"
#include "runtime/stream_state.hpp"
#include "weir/detail/submission.hpp"
#include "weir/package.hpp"
#include "weir/stream.hpp"

namespace weir::runtime {

/// One operation, or one access of the host's, to memory that packages share (rules X6, X7): it starts after what each of
/// them has put into its current stream, and what they put there afterwards starts after it. See order/foreign.hpp.
///
/// In the order of use: `meet` and `enter` under no lock, since they run code of the packages; `lock`, `state`, `prepare`,
/// which may fail and change nothing, and `commit` under the locks; `publish` under none again.
class foreign_visit {
public:
    /// Adds those packages that do something in a conflicting way where `access` does. `for_check`: the program orders this
    /// access itself, and only an observer wants it to be safe nevertheless.
    void meet(const access_request& access, bool for_check);

    /// Asks each package for its current stream and takes the stream's end as the operation's entry, at once. The stream
    /// `on` that the operation itself runs on needs none; null for the host. May throw whatever packages throw.
    void enter(const stream_state* on, const source_location& where);

    /// Blocks the calling thread until the entries are over, and tells observers: for the host's accesses.
    void wait() const;
    /// Whether the packages' streams have nothing to do. Never blocks. Instead of `enter`.
    [[nodiscard]] bool idle(const source_location& where);

    /// Locks `on` and the packages' streams, by their numbers (rule O8).
    void lock(stream_state& on);
    void unlock() noexcept { locks_.clear(); }

    /// States the entries. `with_check`: those that only an observer wants, too.
    void state(order::plan& plan, bool with_check) const;
    /// The entries that accesses left to Weir come after. Throws std::bad_alloc.
    [[nodiscard]] std::vector<frontiers::point> entries() const;
    /// Makes room for the exits after the operation that is about to be `done`.
    void prepare(const order::mark& done, const order::watermarks& completed);
    /// Enqueues the exits, and tells observers, for whom they are operations of the packages' streams without accesses.
    void commit(const site& from) noexcept;
    void publish() noexcept;

    /// Whether a package without queues shares an operand: the call must not return before the operation is over.
    [[nodiscard]] bool must_block() const noexcept { return must_block_; }
    [[nodiscard]] bool empty() const noexcept { return packages_.empty(); }

private:
    struct met {
        std::shared_ptr<package> who;
        device_state* device;
        bool for_check;
    };
    /// A package's current stream.
    struct peer {
        stream current;
        bool for_check;
        order::mark entry;
        order::mark done;
        frontiers::point exit;
        order::clock after;  ///< what the stream is ordered after once it has waited for the exit
        bool waits = false;
    };
    [[nodiscard]] std::vector<peer> peers_now();

    std::vector<met> packages_;
    std::vector<peer> peers_;
    std::vector<std::unique_lock<backend::hot_mutex>> locks_;
    bool must_block_ = false;
};

}  // namespace weir::runtime
