#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "order/plan.hpp"
#include "runtime/streams/stream_state.hpp"
#include "weir/detail/package_order.hpp"
#include "weir/detail/submission.hpp"
#include "weir/package.hpp"
#include "weir/stream.hpp"

namespace weir::runtime {

/// One operation, or one access of the host's, to memory that packages share (rules X6, X7). It starts after everything that each
/// package has put into its current stream, and what the package puts there afterwards starts after it. See order/foreign.hpp.
/// A package whose accesses are all known needs no such thing (package_order).
///
/// Order of use: `meet` and `enter` under no lock, because they run code of the packages; `lock`; under the locks `state`, `prepare`,
/// which may fail and change nothing, and `commit`; `publish` under no lock again. It lives until the operation is in its stream.
class foreign_visit {
    using package_order = detail::package_order;

public:
    foreign_visit() = default;
    /// Of an operation that enters or leaves only. `enter` then asks for no entries, or `prepare` for no exits.
    explicit foreign_visit(package_sides sides) noexcept : sides_(sides) {}

    /// Throws argument_error if a package that shares the memory forbids the write that `access` is. In every ordering mode.
    static void expect_allowed(const access_request& access);

    /// Adds the packages whose accesses conflict with `access`. `for_check`: the program orders this access itself, and only an observer
    /// wants it to be safe nevertheless.
    void meet(const access_request& access, bool for_check);

    /// Asks each package for its current stream and records the stream's end as an entry of the operation, at once. The stream `on` that
    /// the operation runs on needs no entry; `on` is null for the host. Where all accesses of a package are known, the operation is ordered
    /// by these instead, or the host waits. May throw whatever packages throw.
    void enter(stream_state* on, const source_location& where);

    /// Blocks the calling thread until the entries are complete, and notifies observers: for accesses of the host's.
    void wait() const;
    /// Whether the packages' streams are idle, or have nothing that conflicts. Never blocks. Used instead of `enter`.
    [[nodiscard]] bool idle(const source_location& where);

    /// Locks `on` and the packages' streams, in the order of their numbers (rule O8).
    void lock(stream_state& on);
    void unlock() noexcept { locks_.clear(); }

    /// Adds the entries to the plan. `with_check`: including entries that only an observer wants.
    void state(order::plan& plan, bool with_check) const;
    /// The entries that accesses ordered by Weir come after. Throws std::bad_alloc.
    [[nodiscard]] std::vector<frontiers::point> entries() const;
    /// Reserves room for the exits behind the operation whose end will be `done`.
    void prepare(const order::mark& done, const order::watermarks& completed);
    /// Enqueues the exits, and notifies observers; to them, exits are operations of the packages' streams without accesses.
    void commit(const site& from) noexcept;
    void publish() noexcept;

    /// Whether a package without queues shares an operand: the call must not return before the operation is complete.
    [[nodiscard]] bool must_block() const noexcept { return must_block_ && sides_ != package_sides::entry; }
    [[nodiscard]] bool empty() const noexcept { return packages_.empty(); }

private:
    struct met {
        std::shared_ptr<package> with;
        device_state* device;
        bool for_check;
        package_order* order;                         ///< null: its current stream counts
        std::vector<detail::shared_access> accesses;  ///< for `order`
    };
    /// A package's current stream.
    struct peer {
        stream current;
        bool for_check;
        order::mark entry;
        order::mark done;
        frontiers::point exit;
        order::clock after;  ///< what the stream is ordered after once it has waited for `done`
        bool waits = false;
    };
    [[nodiscard]] std::vector<peer> peers_now();
    /// Has the operation ordered by its accesses. False: it has to be ordered with the package's current stream.
    [[nodiscard]] bool begin(package_order& by, std::span<const detail::shared_access> accesses, stream_state& on);

    std::vector<met> packages_;
    std::vector<peer> peers_;
    std::vector<std::unique_ptr<package_order::operation>> begun_;  ///< ends after `locks_`
    std::vector<std::unique_lock<backend::hot_mutex>> locks_;
    bool must_block_ = false;
    package_sides sides_ = package_sides::both;
};

}  // namespace weir::runtime
