// The way of nearly all operations into a stream. What it does not serve goes at length (submit_at_length.hpp).
//
// A driver's call leaves nothing of this in the processor's first caches, and there each line of code counts, more than what it
// does: so what is rare says so, and lies apart (detail::rare).
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>

#include "backend/fork_gate.hpp"
#include "backend/timeline.hpp"
#include "order/mode.hpp"
#include "order/short_plan.hpp"
#include "runtime/attention.hpp"
#include "runtime/device_state.hpp"
#include "runtime/nvtx.hpp"
#include "runtime/ordering.hpp"
#include "runtime/resource.hpp"
#include "runtime/stream_state.hpp"
#include "runtime/submit_at_length.hpp"
#include "weir/detail/rare.hpp"
#include "weir/detail/submission.hpp"

namespace weir::runtime {

namespace {

constexpr std::size_t most_operands = 8;

/// Whether the operation is a copy between the memory of its stream's device and that of another, `theirs`. Throws state_error
/// where that cannot be used.
[[gnu::noinline]] bool is_copy_across(const stream_state& stream, const submission& what, const device_state& theirs) {
    const auto is_own = [&](const access_request& access) {
        return access.target != nullptr && access.target->memory_of() == stream.memory_space();
    };
    if (what.kind != work_kind::copy || std::none_of(what.accesses.begin(), what.accesses.end(), is_own)) {
        return false;
    }
    theirs.expect_usable();
    return true;
}

/// The operands of an operation and its stream: a list, then the locks of all, taken one by one in the order of their
/// addresses, the stream's last (rule O8).
template <std::size_t Count>
class operands {
public:
    /// Whether that is all there is to them: few, each named once, in memory that the operation may use.
    [[nodiscard, gnu::always_inline]] bool take(const stream_state& stream, const submission& what,
                                                std::span<const access_request, Count> accesses) {
        const device_state* const own = stream.memory_space();
        for (const access_request& access : accesses) {
            resource* const target = access.target;
            if (target == nullptr) [[unlikely]] {
                detail::rare();
                return false;
            }
            target->fetch_ahead();
            const device_state* const theirs = target->memory_of();
            if (theirs != own && theirs != nullptr) [[unlikely]] {
                detail::rare();
                if (!is_copy_across(stream, what, *theirs)) {
                    return false;
                }
            }
            if (!add(target)) [[unlikely]] {
                detail::rare();
                return false;
            }
        }
        return true;
    }

    /// Within a fork_section.
    [[gnu::always_inline]] void lock(stream_state& stream) noexcept {
        for (std::size_t i = 0; i < count(); ++i) {
            list_[i]->mutex.within_section().lock();
        }
        stream.mutex.within_section().lock();
    }
    [[gnu::always_inline]] void unlock(stream_state& stream) noexcept {
        stream.mutex.within_section().unlock();
        for (std::size_t i = count(); i > 0; --i) {
            list_[i - 1]->mutex.within_section().unlock();
        }
    }

private:
    static constexpr bool is_fixed = Count != std::dynamic_extent;
    [[nodiscard]] std::size_t count() const noexcept { return is_fixed ? Count : count_; }

    /// At its place; false if it is there.
    [[gnu::always_inline]] bool add(resource* target) noexcept {
        std::size_t place = count_;
        for (; place != 0 && !std::less<>()(list_[place - 1], target); --place) {
            if (list_[place - 1] == target) {
                return false;
            }
            list_[place] = list_[place - 1];
        }
        list_[place] = target;
        ++count_;
        return true;
    }

    std::size_t count_ = 0;
    std::array<resource*, is_fixed ? Count : most_operands> list_;  // filled as far as it is used
};

/// The locks, while they are held.
template <std::size_t Count>
class locked {
public:
    [[gnu::always_inline]] locked(operands<Count>& resources, stream_state& stream) noexcept
        : resources_(&resources), stream_(&stream) {
        resources.lock(stream);
    }
    [[gnu::always_inline]] ~locked() { resources_->unlock(*stream_); }
    locked(const locked&) = delete;
    locked& operator=(const locked&) = delete;

private:
    operands<Count>* resources_;
    stream_state* stream_;
};

/// Whether Weir orders all accesses, where somebody has set a mode.
[[gnu::cold, gnu::noinline]] bool all_automatic(const stream_state& stream, std::span<const access_request> accesses) {
    const auto is_set = [](const access_request& access) { return access.target->has_ordering(); };
    return !stream.has_ordering() && std::none_of(accesses.begin(), accesses.end(), is_set) &&
           order::effective_mode(std::nullopt, std::nullopt, scope_ordering(), process_ordering()) ==
               ordering_mode::automatic;
}

/// Has the stream's short plan find what the operation needs, and says which of its accesses make everything forgotten that was
/// kept, a bit for each; nothing if the plan cannot tell, or somebody else uses the memory, too. All locks are held; nothing has
/// changed but room that was made. Throws std::bad_alloc.
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
        const auto is_told = [&] {
            if constexpr (Count == 1) {
                return target.history.require_alone(plan, access.where, access.mode, covers, completed);
            } else {
                return target.history.require(plan, access.where, access.mode, covers);
            }
        };
        if (target.has_others() || !is_told()) [[unlikely]] {
            detail::rare();
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

/// States that the operation whose end is `end` has made the access.
[[gnu::always_inline]] inline void record(const access_request& access, bool is_covering, order::mark&& end) noexcept {
    order::history& past = access.target->history;
    if (is_covering) [[likely]] {
        past.record_covering(access.where, std::move(end));
    } else {
        past.record(access.where, access.mode, std::move(end), backend::timeline_table::instance(),
                    order::accessor::weir, true);
    }
}

/// Puts the operation into a queue that has no straight way for it, as far as that may be done under locks.
[[gnu::noinline]] void enqueue(backend::queue& queue, order::epoch at, const backend::operation& work,
                               std::span<const order::wait> waits) noexcept {
    for (const order::wait& issued : waits) {
        queue.wait(issued.target.at);
    }
    queue.submit(at, work);
}

/// Whether anything is to be said or done about the operation besides, whatever its stream.
[[gnu::always_inline]] inline bool is_unusual(const submission& what) noexcept {
    return attention::is_needed() || !what.after.empty() || what.accesses.size() > most_operands;
}

/// The same where its stream is what asks for it, too.
[[gnu::always_inline]] inline bool is_special(const stream_state& stream, const submission& what) noexcept {
    return is_unusual(what) || stream.has_company();
}

/// Whether the operation is special only since others put work into its stream, too. Throws state_error if these capture it just then.
[[gnu::noinline]] bool is_only_among_others(const stream_state& stream, const submission& what) {
    if (is_unusual(what) || stream.ordered_as() != backend::implicit_order::none) {
        return false;
    }
    stream.expect_no_capture();
    return true;
}

/// Whether the stream's device runs what the operation is. What goes straight into a stream is for its device.
[[gnu::noinline]] bool is_runnable(const stream_state& stream, const submission& what) noexcept {
    const bool is_host_code = what.work.type != nullptr && what.work.type->nature == detail::task_nature::work;
    return !is_host_code || what.kind != work_kind::device || stream.device().driver().runs_host_code();
}

[[gnu::cold, gnu::noinline]] completion submit_in_range(stream_state& stream, const submission& what) {
    const nvtx_range range(what.from.label);
    return submit_at_length(stream, what);
}

/// Gives the operation its place, and the queue what is not straight. Its epoch and its clock; 0 if it must go at length: then
/// nothing has happened. All locks are held. Throws std::bad_alloc, state_error.
template <std::size_t Count>
[[gnu::always_inline]] inline order::epoch enter(stream_state& stream, const submission& what,
                                                 std::span<const access_request, Count> accesses, order::clock& known,
                                                 bool& is_straight) {
    if (stream.closed.load(std::memory_order_acquire)) [[unlikely]] {
        detail::rare();
        stream.expect_open();
    }
    std::uint32_t covering = 0;
    if (!find_needs(stream, accesses, covering)) [[unlikely]] {
        detail::rare();
        return 0;
    }
    order::short_plan& plan = stream.needs;
    const std::span<const order::wait> waits = plan.waits();
    // What can fail comes first and changes nothing.
    stream.reserve_pending(accesses.size(), waits.size());
    if (!waits.empty()) [[likely]] {
        // Where there is nothing to wait for it does not matter who orders it.
        if (any_ordering_was_set.load(std::memory_order_relaxed) && !all_automatic(stream, accesses)) {
            return 0;
        }
        plan.prepare(stream.sequence.is_sole());
    }
    is_straight = stream.straight != nullptr && stream.straight->claim(stream.sequence.tail() + 1, what, waits);
    if (!is_straight) [[unlikely]] {
        if (!is_runnable(stream, what)) {
            return 0;
        }
        stream.queue->reserve(waits.size(), what.work);
    }
    // What follows cannot fail.
    const order::epoch at = waits.empty() ? stream.sequence.reserve_next() : stream.sequence.reserve(plan);
    detail::all_shares clocks(stream.sequence.known(), accesses.size() + 1, !waits.empty());
    if constexpr (Count == 1) {
        record(accesses.front(), covering != 0, {{stream.timeline(), at}, clocks.take()});
        stream.pending.add_one(at, what, accesses.front(), waits);
    } else {
        pending_operations::addition noted = stream.pending.begin(at, what);
        for (const access_request& access : accesses) {
            record(access, (covering & 1) != 0, {{stream.timeline(), at}, clocks.take()});
            noted.add(access);
            covering >>= 1;
        }
        noted.end(waits, {});
    }
    known = clocks.take();
    if (!is_straight) [[unlikely]] {
        enqueue(*stream.queue, at, what, waits);
    }
    return at;
}

/// Has the processor fetch what the operation will need. After a call of the driver little of it is in the first caches, nor in the
/// second where another program has a part of the core; and one pointer leads to the next, with locks in between, past which a
/// processor does not look.
[[gnu::always_inline]] inline void fetch_ahead(const stream_state& stream) noexcept {
    if (stream.straight != nullptr) {
        stream.straight->fetch_ahead();
    }
}

/// The operation has so many accesses.
template <std::size_t Count>
[[gnu::always_inline]] inline completion submit_shortly(stream_state& stream, const submission& what) {
    const std::span<const access_request, Count> accesses(what.accesses);
    fetch_ahead(stream);
    operands<Count> resources;
    if (!resources.take(stream, what, accesses)) [[unlikely]] {
        detail::rare();
        return submit_in_range(stream, what);
    }
    const backend::fork_gate::section whole;  // one for all locks
    order::epoch at = 0;
    order::clock known;
    bool is_straight = false;
    {
        const locked<Count> held(resources, stream);
        stream.pending.fetch_ahead(accesses.size());
        at = enter(stream, what, accesses, known, is_straight);
    }
    if (at == 0) [[unlikely]] {
        detail::rare();
        return submit_at_length(stream, what);
    }
    if (is_straight) [[likely]] {
        stream.straight->carry_out(at, what);
    } else {
        stream.queue->flush({stream.timeline(), at});
    }
    return {stream.timeline(), at, std::move(known)};
}

[[gnu::hot, gnu::noinline]] completion submit_with_several(stream_state& stream, const submission& what) {
    return submit_shortly<std::dynamic_extent>(stream, what);
}

}  // namespace

[[gnu::hot]] completion submit(stream_state& stream, const submission& what) {
    if (is_special(stream, what)) [[unlikely]] {
        detail::rare();
        if (!is_only_among_others(stream, what)) {
            return submit_in_range(stream, what);
        }
    }
    if (what.accesses.size() == 1) {  // the common case, where there is nothing to go through
        return submit_shortly<1>(stream, what);
    }
    return submit_with_several(stream, what);
}

}  // namespace weir::runtime
