#include "runtime/submission/slow_path.hpp"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "backend/timeline.hpp"
#include "frontier/point.hpp"
#include "observe/deferred_reports.hpp"
#include "observe/observers.hpp"
#include "order/wait_counts.hpp"
#include "runtime/devices/device_state.hpp"
#include "runtime/failures/failures.hpp"
#include "runtime/host/fork.hpp"
#include "runtime/host/host.hpp"
#include "runtime/lifetime/resource.hpp"
#include "runtime/streams/stream_state.hpp"
#include "runtime/submission/foreign_visit.hpp"
#include "runtime/submission/handover.hpp"
#include "runtime/submission/host_copies.hpp"
#include "runtime/submission/lazy.hpp"
#include "runtime/submission/modes.hpp"
#include "runtime/submission/observed.hpp"
#include "runtime/submission/operands.hpp"
#include "runtime/submission/operation_checks.hpp"
#include "weir/access.hpp"
#include "weir/detail/fork_section.hpp"
#include "weir/detail/submission.hpp"
#include "weir/ordering.hpp"

namespace weir::runtime {

namespace {

/// Collects the packages that share operands.
void meet_packages(lazy<foreign_visit>& visit, const submission& what, const modes& mode, bool safety) {
    for (const access_request& access : what.accesses) {
        if (access.target == nullptr || !access.target->packages().any()) {
            continue;
        }
        foreign_visit::expect_allowed(access);
        const bool own = mode.of(access) == ordering_mode::automatic;
        if (own || safety) {
            if (!visit) {
                visit.make(what.sides);
            }
            visit->meet(access, !own);
        }
    }
}

/// A bit for each of the operation's first accesses that Weir orders. Found once, because the program may change the mode meanwhile:
/// an access must not replace records in the history that it was not ordered after.
using automatic_ones = std::uint64_t;

/// Adds everything that the operation must come after to `plan`, and calls `with(access)` for each operand. `safety`: hazards count
/// whether Weir or the program orders the access.
template <class With>
[[gnu::always_inline]] inline automatic_ones state_needs(order::plan& plan, const submission& what,
                                                         const lazy<foreign_visit>& visit, const modes& mode,
                                                         bool safety, With&& with) {
    if (visit) {
        visit->state(plan, safety);
    }
    automatic_ones automatic = 0;
    automatic_ones bit = 1;  // becomes 0 after the first 64 accesses
    for (const access_request& access : what.accesses) {
        if (access.target != nullptr) {
            const bool is_automatic = mode.of(access) == ordering_mode::automatic;
            automatic |= is_automatic ? bit : 0;
            access.target->history.require(plan, access.where, access.mode, safety || is_automatic);
            with(access);
        }
        bit <<= 1;
    }
    for (const completion& one : what.after) {
        plan.need({{one.timeline(detail::key), one.epoch(detail::key)}, one.known(detail::key).get()},
                  order::reason::dependency);
    }
    plan.resolve();
    return automatic;
}

/// What observers are to see of one operation. Constructed before anything has changed, because it allocates.
class observation {
    using point = frontiers::point;

public:
    observation(stream_state& stream, const submission& what, const lazy<foreign_visit>& visit, const order::plan& plan,
                const modes& mode, automatic_ones automatic, bool safety)
        : elisions_(plan.elisions()), entries_(visit ? visit->entries() : std::vector<point>()) {
        after_.reserve(what.after.size());
        for (const completion& one : what.after) {
            after_.push_back({one.timeline(detail::key), one.epoch(detail::key)});
        }
        automatic_ones bit = 1;
        for (const access_request& access : what.accesses) {
            if (access.target != nullptr) {
                const ordering_mode asked = bit == 0 ? mode.of(access) : ordering_mode::manual;
                add(observed(*access.target, access.where, access.mode,
                             (automatic & bit) != 0 ? ordering_mode::automatic : asked, access.in_every_mode));
            }
            bit <<= 1;
        }
        // The waits that the program's own ordering modes require, without those that are only for safety.
        order::plan own = stream.sequence.next(backend::timeline_table::instance());
        if (safety) {
            static_cast<void>(state_needs(own, what, visit, mode, false, [](const access_request&) {}));
        }
        for (const order::wait& issued : plan.waits()) {
            const point target = issued.target.at;
            const bool wanted = !safety || std::any_of(own.waits().begin(), own.waits().end(), [&](const auto& one) {
                return order::covers(one.target, target);
            });
            waits_.push_back({target, issued.why, !wanted});
        }
    }

    void notify(const stream_state& stream, frontiers::epoch at, const submission& what) const noexcept {
        const observe::observed_operation seen{&stream.info(), at,     what.from, what.kind, accesses_,
                                               after_,         waits_, elisions_, entries_};
        observe::observers::notify([&](observe::observer& one) { one.operation(seen); });
    }

private:
    /// Adds one access for each range: an operation that names the same elements twice (`x * x`) accesses them once. If it writes them
    /// at all, the access is a write, as for `inout`.
    void add(const observe::observed_access& one) {
        const auto same = std::find_if(accesses_.begin(), accesses_.end(), [&](const observe::observed_access& other) {
            return other.resource == one.resource && other.where == one.where && other.ordering == one.ordering;
        });
        if (same == accesses_.end()) {
            accesses_.push_back(one);
        } else if (one.mode == order::access_mode::write) {
            same->mode = one.mode;
        }
    }

    std::vector<observe::observed_access> accesses_;
    std::vector<point> after_;
    std::vector<observe::observed_wait> waits_;
    std::span<const order::elision> elisions_;
    std::vector<point> entries_;
};

/// Whether there are observers, and whether hazards count even for accesses that the program orders.
struct observer_wishes {
    bool any = observe::observers::any();
    bool want_safety = any && observe::observers::want_safety();
};

/// For explain(): the call waits for the operation, since a package without queues shares operands.
void note_host_blocked(const submission& what) noexcept {
    for (const access_request& access : what.accesses) {
        if (access.target != nullptr && access.target->packages().any()) {
            access.target->note_host_blocked();
        }
    }
}

/// Plans and enqueues any operation. All locks are held, including those of the streams of packages that `visit` has collected.
[[gnu::hot]] completion submit_planned(stream_state& stream, const submission& what, const observer_wishes& by,
                                       lazy<foreign_visit>& visit, operand_locks<std::dynamic_extent>& held) {
    const auto [observed, safety] = by;
    const order::watermarks& completed = backend::timeline_table::instance();
    const modes mode(stream);
    // Everything that can fail comes first and changes nothing.
    order::plan plan = stream.sequence.next(completed, observed);
    bool seen_by_host = false;
    const automatic_ones automatic = state_needs(plan, what, visit, mode, safety, [&](const access_request& access) {
        access.target->history.reserve(what.accesses.size());
        seen_by_host = seen_by_host || access.target->views().conflict_with(access.where, access.mode);
    });
    stream.expect_not_behind_itself(plan.waits());
    stream.reserve_pending(what.accesses.size(), plan.waits().size() + what.after.size());
    for (const completion& one : what.after) {
        failures::expect_dependent({one.timeline(detail::key), one.epoch(detail::key)});
    }
    order::clock after = plan.waits().empty() && !visit ? nullptr : plan.clock_after();
    if (visit) {
        visit->prepare({{stream.timeline(), stream.sequence.tail() + 1}, after}, completed);
    }
    lazy<observation> observation;
    if (observed) {
        observation.make(stream, what, visit, plan, mode, automatic, safety);
    }
    const backend::operation work{what.work, what.from, what.kind, observed && observe::observers::want_times()};
    const handover way(stream, work, plan.waits(), !visit);

    // Nothing from here on can fail.
    stream.needs.counts.issued += plan.waits().size();
    stream.needs.counts.elided += plan.elided();
    order::mark end = plan.waits().empty() ? stream.sequence.reserve() : stream.sequence.reserve(std::move(after));
    {
        pending_operations::addition noted = stream.pending.begin(end.at.at, what);
        detail::shares clocks(end.known, what.accesses.size());
        automatic_ones bit = 1;
        for (const access_request& access : what.accesses) {
            if (access.target != nullptr) {
                const bool hazards = safety || (automatic & bit) != 0;
                access.target->history.record(access.where, access.mode, {end.at, clocks.take()}, completed,
                                              order::accessor::weir, hazards);
                noted.add(access);
            }
            bit <<= 1;
        }
        noted.end(plan.waits(), what.after);
    }
    if (observation) {
        observation->notify(stream, end.at.at, what);
    }
    way.enqueue(stream, end.at.at, work, plan.waits());
    if (visit) {
        visit->commit(what.from);
        visit->unlock();
    }
    held.unlock();
    way.finish(stream, end.at.at, work);
    if (visit) {
        visit->publish();
    }

    const bool awaited_for_package = visit && visit->must_block();
    if (awaited_for_package) {
        note_host_blocked(what);
    }
    if (seen_by_host || awaited_for_package) {
        host_wait_or_end(end.at, what.from.where);
    }
    if (observed) {
        observe::deferred_reports::settle();
    }
    return {detail::key, end.at.timeline, end.at.at, std::move(end.known)};
}

/// Whether the host is copying what the access is to change. The resource's lock is held.
[[nodiscard]] bool is_copied(const access_request& access) noexcept {
    return access.target->views().copy_conflicts_with(access.where, access.mode);
}

/// Whether the host is copying what any access of the operation is to change. All locks are held.
[[nodiscard]] bool is_being_copied(const submission& what) noexcept {
    return std::any_of(what.accesses.begin(), what.accesses.end(),
                       [](const access_request& access) { return access.target != nullptr && is_copied(access); });
}

/// Blocks while the host is copying. Must be called under no lock.
[[gnu::cold, gnu::noinline]] void wait_for_copies(const submission& what) {
    host_copies::wait_while([&] {
        return std::any_of(what.accesses.begin(), what.accesses.end(), [](const access_request& access) {
            if (access.target == nullptr) {
                return false;
            }
            const std::lock_guard lock(access.target->mutex);
            return is_copied(access);
        });
    });
}

/// Packages share operands: asks them for their current streams first. Returns nothing if the host is copying an operand.
[[gnu::noinline]] std::optional<completion> submit_among_packages(stream_state& stream, const submission& what,
                                                                  const observer_wishes& by, operands<>& resources) {
    lazy<foreign_visit> visit;
    meet_packages(visit, what, modes(stream), by.want_safety);
    if (visit) {
        visit->enter(&stream, what.from.where);
    }
    stream.make_ready(what.from.where);
    const detail::fork_section whole;  // one section for all locks
    operand_locks held(resources.all(), visit ? nullptr : &stream);
    if (visit) {
        visit->lock(stream);
    }
    stream.expect_open();
    if (is_being_copied(what)) {
        return std::nullopt;
    }
    return submit_planned(stream, what, by, visit, held);
}

/// The same if no package shares operands.
std::optional<completion> submit_among_streams(stream_state& stream, const submission& what, const observer_wishes& by,
                                               operands<>& resources) {
    stream.make_ready(what.from.where);
    const detail::fork_section whole;  // one section for all locks
    operand_locks held(resources.all(), &stream);
    stream.expect_open();
    if (is_being_copied(what)) {
        return std::nullopt;
    }
    lazy<foreign_visit> none;
    return submit_planned(stream, what, by, none, held);
}

}  // namespace

completion submit_on_slow_path(stream_state& stream, const submission& what) {
    fork_guard::expect_usable();
    expect_runnable(stream, what);
    operands<> resources(what.accesses.size());
    bool is_shared = false;  // with packages
    for (const access_request& access : what.accesses) {
        if (access.target == nullptr) {
            continue;
        }
        const device_state* const memory = access.target->memory_of();
        if (memory != stream.memory_space() && memory != nullptr) {
            expect_reachable(stream, what, *access.target);
        }
        resources.add(access.target);
        is_shared = is_shared || access.target->packages().any();
    }
    const observer_wishes by;
    const auto submit = is_shared ? submit_among_packages : submit_among_streams;
    for (;;) {
        if (std::optional<completion> done = submit(stream, what, by, resources)) {
            return *std::move(done);
        }
        wait_for_copies(what);
    }
}

}  // namespace weir::runtime
