#pragma once

#include <span>

#include "backend/backend.hpp"
#include "runtime/streams/stream_state.hpp"
#include "runtime/submission/operation_checks.hpp"

namespace weir::runtime {

/// Passes one operation on to its stream: on the fast path into the driver's stream if nothing stands in between, else through the
/// queue. Order of use: the constructor, which may throw and changes nothing, and `enqueue`, both under the stream's lock; `finish`
/// under no lock.
class handover {
public:
    /// Reserves room for the operation that is to be the stream's next one. `may_go_straight`: whether the fast path is allowed, because
    /// nothing else must happen in between. Throws std::bad_alloc, and as expect_runnable.
    handover(const stream_state& stream, const detail::operation& work, std::span<const order::wait> waits,
             bool may_use_fast_path = true)
        : is_fast_(may_use_fast_path && stream.fast != nullptr &&
                   stream.fast->claim(stream.sequence.tail() + 1, work, waits)) {
        if (!is_fast_) [[unlikely]] {
            expect_runnable(stream, work);
            stream.queue->reserve(waits.size(), work.work);
        }
    }

    void enqueue(const stream_state& stream, order::epoch at, const detail::operation& work,
                 std::span<const order::wait> waits) const noexcept {
        if (!is_fast_) [[unlikely]] {
            enqueue_in_queue(*stream.queue, at, work, waits);
        }
    }

    void finish(const stream_state& stream, order::epoch at, const detail::operation& work) const {
        if (is_fast_) [[likely]] {
            stream.fast->carry_out(at, work);
        } else {
            stream.queue->flush({stream.timeline(), at});
        }
    }

private:
    [[gnu::noinline]] static void enqueue_in_queue(backend::queue& queue, order::epoch at,
                                                   const detail::operation& work,
                                                   std::span<const order::wait> waits) noexcept {
        for (const order::wait& issued : waits) {
            queue.wait(issued.target.at);
        }
        queue.submit(at, work);
    }

    bool is_fast_;
};

}  // namespace weir::runtime
