#include "backend/shared_loop.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <utility>

#include "backend/cpu/workers.hpp"
#include "weir/error.hpp"

namespace weir::backend {

namespace {

/// A loop whose parts several threads take, one after the other.
///
/// A busy worker may start on it long after the loop is over: it then finds no part left, and only releases its share of this
/// object. So the object outlives the call; the body does not have to.
class shared_parts {
public:
    shared_parts(std::size_t count, loop_part body, void* context) noexcept
        : count_(count), body_(body), context_(context) {}

    /// Runs parts until all have begun.
    void take_parts() noexcept {
        // Relaxed: parts are independent, and what they wrote is published by done_.
        for (std::size_t part = next_.fetch_add(1, std::memory_order_relaxed); part < count_;
             part = next_.fetch_add(1, std::memory_order_relaxed)) {
            if (!has_failed_.load(std::memory_order_relaxed)) {
                run(part);
            }
            // Pairs with the acquire in `wait`: the caller sees what the part wrote.
            if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 == count_) {
                done_.notify_all();
            }
        }
    }

    /// Waits until the parts that other threads have begun are done.
    void wait() noexcept {
        for (std::size_t done = done_.load(std::memory_order_acquire); done != count_;
             done = done_.load(std::memory_order_acquire)) {
            done_.wait(done, std::memory_order_acquire);
        }
    }

    /// Call once, after `wait`. Rethrows the exception of the first part that failed. It is the caller's then: a worker that comes late
    /// neither keeps nor destroys it.
    void rethrow() {
        if (failure_ != nullptr) {
            std::rethrow_exception(std::exchange(failure_, nullptr));
        }
    }

private:
    void run(std::size_t part) noexcept {
        try {
            body_(context_, part);
        } catch (...) {
            if (!has_failed_.exchange(true, std::memory_order_relaxed)) {
                failure_ = std::current_exception();  // read only after done_ has reached count_
            }
        }
    }

    const std::size_t count_;
    const loop_part body_;
    void* const context_;
    std::exception_ptr failure_;
    std::atomic<bool> has_failed_{false};
    alignas(64) std::atomic<std::size_t> next_{0};  ///< the first part that has not begun
    alignas(64) std::atomic<std::size_t> done_{0};
};

/// Has a worker take parts. Destroys itself afterwards.
class helper final : public cpu::runnable {
public:
    explicit helper(std::shared_ptr<shared_parts> of) noexcept : parts_(std::move(of)) {}

private:
    void run() noexcept override {
        const std::unique_ptr<helper> self(this);
        parts_->take_parts();
    }
    [[nodiscard]] bool has_work() noexcept override { return false; }

    std::shared_ptr<shared_parts> parts_;
};

/// Asks up to `helpers` workers to take parts; fewer where memory or threads run out.
void ask_workers(const std::shared_ptr<shared_parts>& parts, std::size_t helpers) noexcept {
    cpu::workers& all = cpu::workers::instance();
    try {
        all.start();
        for (std::size_t i = 0; i < helpers; ++i) {
            all.schedule(*std::make_unique<helper>(parts).release());
        }
    } catch (const device_error&) {    // NOLINT(bugprone-empty-catch): the calling thread takes the other parts
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): see above
    }
    cpu::workers::offer();  // a worker keeps back what it schedules; this offers it to other workers at once
}

}  // namespace

std::size_t loop_threads() noexcept { return cpu::workers::instance().count(); }

void share_loop(std::size_t count, loop_part body, void* context) {
    const std::size_t helpers = std::min(count, loop_threads()) - std::min<std::size_t>(count, 1);
    std::shared_ptr<shared_parts> parts;
    if (helpers > 0) {
        try {
            parts = std::make_shared<shared_parts>(count, body, context);
        } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): then the calling thread takes all parts
        }
    }
    if (parts == nullptr) {
        for (std::size_t part = 0; part < count; ++part) {
            body(context, part);
        }
        return;
    }
    ask_workers(parts, helpers);
    parts->take_parts();
    parts->wait();
    parts->rethrow();
}

}  // namespace weir::backend
