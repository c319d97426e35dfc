// The straight way of an operation into the driver's stream, past the records of what is held.
#include <algorithm>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <utility>

#include "backend/acting.hpp"
#include "backend/cuda/context.hpp"
#include "backend/cuda/queue.hpp"
#include "backend/cuda/submissions.hpp"
#include "backend/native.hpp"
#include "order/plan.hpp"
#include "weir/detail/site.hpp"
#include "weir/detail/task.hpp"

namespace weir::backend::cuda {

namespace {

/// Whether `target` is in a stream of the driver's, for somebody who is about to have a stream wait for it: lane::has_entered.
inline bool is_in_a_stream(point target, lane::awaited_end& known) noexcept {
    submissions::place* const here = submissions::find_place(target.timeline);
    if (here == nullptr) {
        return false;
    }
    const std::lock_guard lock(here->mutex.within_section());
    if (!here->of) {
        return false;
    }
    const std::shared_ptr<lane>& theirs = here->of->of();
    bool must_record = false;
    if (!theirs->has_entered(target.at, known, must_record)) {
        return false;
    }
    if (must_record) {
        known.of = theirs;
    }
    return true;
}

}  // namespace

[[gnu::hot]] bool submission::claim(epoch at, const operation& what, std::span<const order::wait> waits) noexcept {
    if (is_pending() || is_shared() || lane_->ordered_as() != implicit_order::none || waits.size() > most_straight ||
        is_for_the_host(what.kind, what.work.type)) {
        return false;
    }
    // Nobody else has the queue, nor can anybody get it but by what is submitted under this lock.
    const timeline_table& timelines = timeline_table::instance();
    for (std::size_t i = 0; i < waits.size(); ++i) {
        const point target = waits[i].target.at;
        straight_wait& one = straight_[i];
        one.is_over = timelines.at(target.timeline).completed() >= target.at;
        if (!one.is_over && !is_in_a_stream(target, one.end)) {
            std::for_each(straight_.begin(), straight_.begin() + i + 1, [](straight_wait& before) { before.end = {}; });
            return false;
        }
    }
    lane_->enters(at);
    claim_alone();
    return true;
}

[[gnu::hot]] void submission::carry_out(epoch at, const operation& what, std::span<const order::wait> waits) noexcept {
    for (std::size_t i = 0; i < waits.size(); ++i) {
        if (!straight_[i].is_over) {
            wait_straight(waits[i].target.at, straight_[i].end);
        }
    }
    const detail::task_type* const type = what.work.type;
    const bool is_plain = type != nullptr && type->nature == detail::task_nature::native && type->trivial &&
                          !what.timed && what.kind != runtime::work_kind::moment && bodies_ == nullptr;
    if (is_plain && !in_trouble() && !lane_->in().is_broken()) {
        put_straight(at, what);
    } else {
        const in_context here(lane_->in());
        has_entered(at, enter_stream(at, what));
    }
    if (!rest_alone()) {
        pass_on(false);
    }
}

/// What `enter_stream` and `has_entered` do for work that Weir itself puts into the stream, of which nothing is left to destroy.
[[gnu::hot]] inline void submission::put_straight(epoch at, const operation& what) noexcept {
    try {
        const acting_for self({number_, at});
        const submitting_to stream(lane_->stream());
        if (what.work.type->needs_context) {
            const in_context here(lane_->in());
            what.work.type->run(what.work.object);
        } else {
            what.work.type->run(what.work.object);
        }
        static_cast<queue_events&>(*this).succeeded(at);
    } catch (...) {
        failed(at, what.from, std::current_exception());
    }
    has_entered(at, entered::work);
}

/// `target` is in a stream of the driver's. Where the driver takes no wait, the calling thread waits: what is in such a stream gets
/// over without it.
[[gnu::hot]] void submission::wait_straight(point target, lane::awaited_end& end) noexcept {
    const device_context& in = lane_->in();
    try {
        end.wait_with([&](event_handle event) {
            passed_.push_back(target);
            const auto call = [&] { return in.api().stream_wait_event(lane_->stream(), event, 0); };
            in.expect(by_handle(in, call), "cuStreamWaitEvent");
        });
        return;
    } catch (...) {
        // No event can be had, or none can be waited for.
    }
    while (!timeline_table::instance().host_wait_or_end(target)) {
        std::this_thread::yield();  // ended, but the operation may not run before
    }
}

}  // namespace weir::backend::cuda
