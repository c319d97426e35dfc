// The way of nearly all operations into a stream. What it does not serve goes at length (submit_at_length.hpp).
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>

#include "backend/timeline.hpp"
#include "order/mode.hpp"
#include "order/short_plan.hpp"
#include "runtime/device_state.hpp"
#include "runtime/fork.hpp"
#include "runtime/nvtx.hpp"
#include "runtime/observer.hpp"
#include "runtime/ordering.hpp"
#include "runtime/resource.hpp"
#include "runtime/stream_state.hpp"
#include "runtime/submit_at_length.hpp"
#include "weir/detail/fork_section.hpp"
#include "weir/detail/submission.hpp"

namespace weir::runtime {

namespace {

/// The operands of an operation and its stream: a list, then the locks of all, taken one by one in the order of their
/// addresses, the stream's last (rule O8).
class operands {
public:
    static constexpr std::size_t most = 8;

    /// Whether that is all there is to them: few, each named once, in memory of the stream's own device, and no package shares any.
    [[nodiscard, gnu::always_inline]] bool take(const stream_state& stream,
                                                std::span<const access_request> accesses) noexcept {
        const device_state* const own = stream.memory_space();
        for (const access_request& access : accesses) {
            resource* const target = access.target;
            if (target == nullptr || (target->memory_of() != own && target->memory_of() != nullptr) ||
                target->packages.any() || !add(target)) [[unlikely]] {
                return false;
            }
        }
        return true;
    }

    /// Within a fork_section.
    [[gnu::always_inline]] void lock(stream_state& stream) noexcept {
        for (std::size_t i = 0; i < count_; ++i) {
            list_[i]->mutex.within_section().lock();
        }
        stream.mutex.within_section().lock();
    }
    [[gnu::always_inline]] void unlock(stream_state& stream) noexcept {
        stream.mutex.within_section().unlock();
        for (std::size_t i = count_; i > 0; --i) {
            list_[i - 1]->mutex.within_section().unlock();
        }
    }

private:
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
    std::array<resource*, most> list_;  // filled as far as it is used
};

/// The locks, while they are held.
class locked {
public:
    [[gnu::always_inline]] locked(operands& resources, stream_state& stream) noexcept
        : resources_(&resources), stream_(&stream) {
        resources.lock(stream);
    }
    [[gnu::always_inline]] ~locked() { resources_->unlock(*stream_); }
    locked(const locked&) = delete;
    locked& operator=(const locked&) = delete;

private:
    operands* resources_;
    stream_state* stream_;
};

/// Whether Weir orders the stream's accesses to what says nothing itself.
[[gnu::cold, gnu::noinline]] bool is_automatic(const stream_state& stream) {
    return order::effective_mode(std::nullopt, stream.ordering(), scope_ordering(), process_ordering()) ==
           ordering_mode::automatic;
}

/// Has the stream's short plan find what the operation needs, and says which of its accesses make everything forgotten that was
/// kept, a bit for each; nothing if the plan cannot tell. All locks are held; nothing has changed but room that was made. Throws
/// std::bad_alloc.
[[gnu::always_inline]] inline bool find_needs(stream_state& stream, std::span<const access_request> accesses,
                                              std::uint32_t& covering) {
    order::short_plan& plan = stream.needs;
    plan.begin(stream.timeline(), stream.sequence.known());
    std::uint32_t with_mode = 0;
    std::uint32_t bit = 1;
    for (const access_request& access : accesses) {
        resource& target = *access.target;
        with_mode |= target.has_ordering() ? 1U : 0U;
        bool covers = false;
        if (!target.views.none() || !target.history.require(plan, access.where, access.mode, covers)) [[unlikely]] {
            return false;
        }
        if (covers) [[likely]] {
            covering |= bit;
        } else {
            target.history.reserve(1);
        }
        bit <<= 1;
    }
    if (!plan.resolve(backend::timeline_table::instance())) [[unlikely]] {
        return false;
    }
    // Where there is nothing to wait for it does not matter who orders it.
    return plan.waits().empty() || (with_mode == 0 && !stream.has_ordering() &&
                                    (!any_ordering_was_set.load(std::memory_order_relaxed) || is_automatic(stream)));
}

/// States that the operation at `end`, whose clock `clocks` shares out, has made its accesses.
[[gnu::always_inline]] inline void record(std::span<const access_request> accesses, std::uint32_t covering,
                                          order::point end, detail::shares<order::shared_frontier>& clocks) noexcept {
    for (const access_request& access : accesses) {
        order::history& past = access.target->history;
        if ((covering & 1) != 0) [[likely]] {
            past.record_covering(access.where, {end, clocks.take()});
        } else {
            past.record(access.where, access.mode, {end, clocks.take()}, backend::timeline_table::instance(),
                        order::accessor::weir, true);
        }
        covering >>= 1;
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

/// Whether anything is to be said or done about the operation besides.
[[gnu::always_inline]] inline bool is_special(const stream_state& stream, const submission& what) noexcept {
    const bool is_host_code = what.work.type != nullptr && what.work.type->nature == detail::task_nature::work;
    return nvtx_range::may_be_on() || !fork_guard::is_usable() || observers::any() || !what.after.empty() ||
           what.accesses.size() > operands::most || stream.ordered_as() != backend::implicit_order::none ||
           (is_host_code && what.kind == work_kind::device && !stream.device().driver().runs_host_code());
}

[[gnu::cold, gnu::noinline]] completion submit_in_range(stream_state& stream, const submission& what) {
    const nvtx_range range(what.from.label);
    return submit_at_length(stream, what);
}

}  // namespace

[[gnu::hot]] completion submit(stream_state& stream, const submission& what) {
    operands resources;
    if (is_special(stream, what) || !resources.take(stream, what.accesses)) [[unlikely]] {
        return submit_in_range(stream, what);
    }
    const backend::operation work{what.work, what.from, what.kind, false};
    const detail::fork_section whole;  // one for all locks
    order::epoch at = 0;
    order::clock known;
    bool is_straight = false;
    {
        const locked held(resources, stream);
        if (stream.closed.load(std::memory_order_acquire)) [[unlikely]] {
            stream.expect_open();
        }
        stream.pending.fetch();
        std::uint32_t covering = 0;
        if (find_needs(stream, what.accesses, covering)) [[likely]] {
            const std::span<const order::wait> waits = stream.needs.waits();
            // What can fail comes first and changes nothing.
            stream.reserve_pending(what.accesses.size(), waits.size());
            order::clock after = waits.empty() || stream.sequence.is_sole() ? nullptr : stream.needs.clock_after();
            is_straight = stream.straight != nullptr && stream.straight->claim(stream.sequence.tail() + 1, work, waits);
            if (!is_straight) {
                stream.queue->reserve(waits.size(), what.work);
            }
            // What follows cannot fail.
            at = waits.empty() ? stream.sequence.reserve_next()
                               : stream.sequence.reserve(stream.needs, std::move(after));
            detail::shares clocks(stream.sequence.known(), what.accesses.size() + 1, !waits.empty());
            record(what.accesses, covering, {stream.timeline(), at}, clocks);
            known = clocks.take();
            stream.pending.add(at, what, waits, {});
            if (!is_straight) {
                enqueue(*stream.queue, at, work, waits);
            }
        }
    }
    if (at == 0) [[unlikely]] {
        return submit_at_length(stream, what);
    }
    if (is_straight) {
        stream.straight->carry_out(at, work);
    } else {
        stream.queue->flush({stream.timeline(), at});
    }
    return {stream.timeline(), at, std::move(known)};
}

}  // namespace weir::runtime
