// How an operation enters a stream: the fast path of nearly all operations, and the choice between it and the slow path
// (slow_path.hpp). Both use the same operands, locks, modes, checks and handover.
//
// After a call of the driver, none of this code is in the processor's first-level caches, and fetching a line of code then costs more
// than executing it. So the cold branches are kept out of line (detail/rare.hpp).
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "backend/fork_gate.hpp"
#include "backend/timeline.hpp"
#include "observe/slow_path_reasons.hpp"
#include "order/short_plan.hpp"
#include "runtime/devices/device_state.hpp"
#include "runtime/diagnostics/nvtx.hpp"
#include "runtime/lifetime/resource.hpp"
#include "runtime/streams/stream_state.hpp"
#include "runtime/submission/handover.hpp"
#include "runtime/submission/modes.hpp"
#include "runtime/submission/operands.hpp"
#include "runtime/submission/operation_checks.hpp"
#include "runtime/submission/ordering.hpp"
#include "runtime/submission/slow_path.hpp"
#include "runtime/submission/verify_access.hpp"
#include "weir/detail/label_scope.hpp"
#include "weir/detail/passkey.hpp"
#include "weir/detail/rare.hpp"
#include "weir/detail/submission.hpp"

namespace weir::runtime {

namespace {

constexpr std::size_t most_operands = operands<>::few;

/// Adds the operands. Returns false if the fast path does not support the operation: it names memory twice, or none.
template <std::size_t Count>
[[gnu::always_inline]] inline bool take(operands<Count>& resources, const stream_state& stream, const submission& what,
                                        std::span<const access_request, Count> accesses) {
    const device_state* const own = stream.memory_space();
    for (const access_request& access : accesses) {
        resource* const target = access.target;
        if (target == nullptr) [[unlikely]] {
            detail::cold_path();
            return false;
        }
        target->fetch_ahead();
        const device_state* const theirs = target->memory_of();
        if (theirs != own && theirs != nullptr) [[unlikely]] {
            detail::cold_path();
            expect_reachable(stream, what, *target);
        }
        if (!resources.add(target)) [[unlikely]] {
            detail::cold_path();
            return false;
        }
    }
    return true;
}

/// Finds what the operation must wait for, with the stream's short plan. Sets a bit in `covering` for each access that replaces
/// everything in its resource's history. Returns false if the short plan does not support the operation, or the memory has other users
/// than streams. All locks are held; nothing is changed except that room is reserved. Throws std::bad_alloc.
template <std::size_t Count>
[[gnu::always_inline]] inline bool find_needs(stream_state& stream, std::span<const access_request, Count> accesses,
                                              std::uint32_t& covering) {
    order::short_plan& plan = stream.needs;
    plan.begin(stream.timeline(), stream.sequence.known());
    const auto& completed = backend::timeline_table::instance();
    std::uint32_t bit = 1;
    for (const access_request& access : accesses) {
        resource& target = *access.target;
        bool covers = false;
        const auto is_planned = [&] {
            if constexpr (Count == 1) {
                return target.history.require_alone(plan, access.where, access.mode, covers, completed);
            } else {
                return target.history.require(plan, access.where, access.mode, covers);
            }
        };
        if (target.has_others() || !is_planned()) [[unlikely]] {
            detail::cold_path();
            return false;
        }
        if (covers) [[likely]] {
            covering |= bit;
        } else {
            target.history.reserve(1);
        }
        bit <<= 1;
    }
    return Count == 1 || plan.resolve(completed);
}

/// Records the access in its resource's history; `end` is the operation's end.
[[gnu::always_inline]] inline void record(const access_request& access, bool is_covering, order::mark&& end) noexcept {
    order::history& past = access.target->history;
    if (is_covering) [[likely]] {
        past.record_covering(access.where, std::move(end));
    } else {
        past.record(access.where, access.mode, std::move(end), backend::timeline_table::instance(),
                    order::accessor::weir, true);
    }
}

/// Whether the operation needs the slow path because of what the call names.
[[gnu::always_inline]] inline bool is_unusual(const submission& what) noexcept {
    return !what.after.empty() || what.accesses.size() > most_operands;
}

/// Whether the operation, its stream or the process may need the slow path.
[[gnu::always_inline]] inline bool is_special(const stream_state& stream, const submission& what) noexcept {
    return observe::slow_path_reasons::is_needed() || is_unusual(what) || stream.has_company();
}

/// Whether the fast path supports a special operation: it is special only because threads have labels, or because other code puts work
/// into its stream as well. Throws state_error if that code is capturing the stream.
[[gnu::noinline]] bool is_for_fast_path(const stream_state& stream, const submission& what) {
    if (observe::slow_path_reasons::is_needed_besides_labels() || is_unusual(what)) {
        return false;
    }
    if (stream.has_company()) {
        if (stream.ordered_as() != backend::implicit_order::none) {
            return false;
        }
        stream.expect_no_capture();
    }
    return true;
}

[[gnu::cold, gnu::noinline]] completion submit_in_range(stream_state& stream, const submission& what) {
    const nvtx_range range(what.from.label);
    return verify_access::is_on() ? verify_access::submit(stream, what) : submit_on_slow_path(stream, what);
}

/// The result of the stream's short plan. All locks are held.
struct found_plan {
    std::span<const order::wait> waits;
    std::uint32_t covering = 0;  ///< a bit for each access that replaces everything in its history
};

/// Plans the operation with the stream's short plan. Returns nothing if the operation must take the slow path; then nothing has
/// changed. All locks are held. Throws std::bad_alloc, state_error.
template <std::size_t Count>
[[gnu::always_inline]] inline std::optional<found_plan> make_plan(stream_state& stream,
                                                                  std::span<const access_request, Count> accesses) {
    if (stream.closed.load(std::memory_order_acquire)) [[unlikely]] {
        detail::cold_path();
        stream.expect_open();
    }
    found_plan found;
    if (!find_needs(stream, accesses, found.covering)) [[unlikely]] {
        detail::cold_path();
        return std::nullopt;
    }
    found.waits = stream.needs.waits();
    stream.reserve_pending(accesses.size(), found.waits.size());
    if (!found.waits.empty()) [[likely]] {
        // With no waits, it does not matter whether Weir or the program orders the accesses.
        if (any_ordering_was_set.load(std::memory_order_relaxed) && !modes(stream).are_all_automatic(accesses)) {
            return std::nullopt;
        }
        stream.needs.prepare(stream.sequence.is_sole());
    }
    return found;
}

/// Records the operation in its stream and in the histories. Returns its epoch and, in `known`, its clock. All locks are held. Cannot
/// fail: `make_plan` and `handover` have reserved room.
template <std::size_t Count>
[[gnu::always_inline]] inline order::epoch commit(stream_state& stream, const submission& what,
                                                  std::span<const access_request, Count> accesses,
                                                  const found_plan& plan, order::clock& known) noexcept {
    const std::span<const order::wait> waits = plan.waits;
    const order::epoch at = waits.empty() ? stream.sequence.reserve_next() : stream.sequence.reserve(stream.needs);
    detail::all_shares clocks(stream.sequence.known(), accesses.size() + 1, !waits.empty());
    if constexpr (Count == 1) {
        record(accesses.front(), plan.covering != 0, {{stream.timeline(), at}, clocks.take()});
        stream.pending.add_one(at, what, accesses.front(), waits);
    } else {
        std::uint32_t covering = plan.covering;
        pending_operations::addition noted = stream.pending.begin(at, what);
        for (const access_request& access : accesses) {
            record(access, (covering & 1) != 0, {{stream.timeline(), at}, clocks.take()});
            noted.add(access);
            covering >>= 1;
        }
        noted.end(waits, {});
    }
    known = clocks.take();
    return at;
}

/// Prefetches what the operation will need. After a call of the driver, little of it is in the first-level cache, nor in the second
/// if another program uses a part of the core; and one pointer leads to the next, with locks in between, past which a processor does
/// not speculate.
[[gnu::always_inline]] inline void fetch_ahead(const stream_state& stream) noexcept {
    if (stream.fast != nullptr) {
        stream.fast->fetch_ahead();
    }
}

/// Fast path of an operation with `Count` accesses. Falls back to the slow path if the fast path does not support it.
template <std::size_t Count>
[[gnu::always_inline]] inline completion submit_on_fast_path(stream_state& stream, const submission& what) {
    const std::span<const access_request, Count> accesses(what.accesses);
    fetch_ahead(stream);
    operands<Count> resources(accesses.size());
    if (!take(resources, stream, what, accesses)) [[unlikely]] {
        detail::cold_path();
        return submit_in_range(stream, what);
    }
    const backend::fork_gate::section whole;  // one section for all locks
    operand_locks held(resources.all(), &stream);
    stream.pending.fetch_ahead(accesses.size());
    const std::optional<found_plan> plan = make_plan(stream, accesses);
    if (!plan) [[unlikely]] {
        detail::cold_path();
        held.unlock();
        return submit_on_slow_path(stream, what);
    }
    const handover way(stream, what, plan->waits);
    order::clock known;
    const order::epoch at = commit(stream, what, accesses, *plan, known);
    way.enqueue(stream, at, what, plan->waits);
    held.unlock();
    way.finish(stream, at, what);
    return {detail::key, stream.timeline(), at, std::move(known)};
}

[[gnu::hot, gnu::noinline]] completion submit_with_several(stream_state& stream, const submission& what) {
    return submit_on_fast_path<std::dynamic_extent>(stream, what);
}

/// Enqueues the operation under the label of the calling thread.
[[gnu::cold, gnu::noinline]] completion submit_labelled(stream_state& stream, const submission& what,
                                                        const char* label) {
    const site from{label, what.from.where};
    submission named(what.accesses, what.after, what.work, from, what.kind);
    named.timed = what.timed;
    named.sides = what.sides;
    return is_for_fast_path(stream, named) ? submit_with_several(stream, named) : submit_in_range(stream, named);
}

}  // namespace

[[gnu::hot]] completion submit(stream_state& stream, const submission& what) {
    if (is_special(stream, what)) [[unlikely]] {
        detail::cold_path();
        if (const char* const label = detail::label_scope::current(); label != nullptr) {
            return submit_labelled(stream, what, label);
        }
        if (!is_for_fast_path(stream, what)) {
            return submit_in_range(stream, what);
        }
    }
    if (what.accesses.size() == 1) {  // the common case, which needs no loop over the accesses
        return submit_on_fast_path<1>(stream, what);
    }
    return submit_with_several(stream, what);
}

}  // namespace weir::runtime
