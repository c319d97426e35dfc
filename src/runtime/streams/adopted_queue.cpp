#include "runtime/streams/adopted_queue.hpp"

#include <cstddef>
#include <utility>

#include "observe/acting.hpp"
#include "weir/detail/interruption.hpp"

namespace weir::runtime {

/// One operation, from `reserve` until it is complete.
class adopted_queue::item {
public:
    item(adopted_queue& of, std::size_t waits, const detail::task_ref& work);
    item(const item&) = delete;
    item& operator=(const item&) = delete;
    ~item() {
        if (has_work()) {
            type_->destroy(storage_.get());
        }
    }

    void take(backend::epoch at, const backend::operation& what) noexcept {
        at_ = at;
        from_ = what.from;
        type_ = what.work.type;
        timed_ = what.timed;
        if (what.work.type != nullptr) {
            what.work.type->move(what.work.object, storage_.get());
        }
    }

    [[nodiscard]] backend::epoch at() const noexcept { return at_; }
    [[nodiscard]] const site& from() const noexcept { return from_; }
    [[nodiscard]] bool has_work() const noexcept { return type_ != nullptr; }

    /// Runs the work, then completes the epoch. Destroys this.
    void run() noexcept {
        using clock = std::chrono::steady_clock;
        const bool timed = timed_ && has_work();
        const auto start = timed ? clock::now() : clock::time_point();
        if (backend::run_work(*of_->events_, at_, from_, type_, storage_.get()) && timed) {
            of_->events_->executed(at_, start, clock::now());
        }
        end().account();
    }
    /// Completes the epoch. Destroys this.
    adopted_queue& end() noexcept {
        adopted_queue& of = *of_;
        const backend::epoch at = at_;
        delete this;  // before the epoch completes: once the operation is complete, what it owned must be destroyed
        backend::timeline_table::instance().at(of.line_).complete(at);
        return of;
    }

    std::unique_ptr<pause> before;  ///< null if there are no waits, or once the native queue has them
    std::unique_ptr<item> next;     ///< used by adopted_queue alone

private:
    adopted_queue* of_;
    backend::epoch at_ = 0;
    site from_;
    const detail::task_type* type_ = nullptr;
    bool timed_ = false;
    std::unique_ptr<std::max_align_t[]> storage_;
};

/// A pause of the native queue until points of other streams are complete: waits for one after the other.
class adopted_queue::pause final : public backend::waiter {
public:
    explicit pause(std::size_t count) { targets_.reserve(count); }
    ~pause() = default;
    pause(const pause&) = delete;
    pause& operator=(const pause&) = delete;

    void add(backend::point target) noexcept { targets_.push_back(target); }  // the constructor has reserved the room
    [[nodiscard]] const std::vector<backend::point>& targets() const noexcept { return targets_; }

    /// The native queue has reached the pause. Once all targets are complete, completes `then`, if not null, and resumes the queue.
    /// Destroys this.
    void begin(std::function<void()> resume, item* then) noexcept {
        resume_ = std::move(resume);
        then_ = then;
        reached();
    }
    void reached() noexcept override {
        while (awaited_ < targets_.size()) {
            const backend::point target = targets_[awaited_++];
            if (backend::timeline_table::instance().at(target.timeline).wait(*this, target.at)) {
                return;  // from here on another thread may use or destroy this
            }
        }
        const std::function<void()> resume = std::move(resume_);
        item* const then = then_;
        delete this;
        // `then` must complete before anything behind it in the queue runs.
        adopted_queue* const of = then == nullptr ? nullptr : &then->end();
        resume();
        if (of != nullptr) {
            of->account();
        }
    }

private:
    std::vector<backend::point> targets_;
    std::size_t awaited_ = 0;
    std::function<void()> resume_;
    item* then_ = nullptr;
};

adopted_queue::item::item(adopted_queue& of, std::size_t waits, const detail::task_ref& work) : of_(&of) {
    if (waits != 0) {
        before = std::make_unique<pause>(waits);
    }
    if (work.type != nullptr) {
        storage_ = std::make_unique<std::max_align_t[]>(work.type->size / sizeof(std::max_align_t) + 1);
    }
}

adopted_queue::adopted_queue(native_queue& native, frontiers::timeline_id line, backend::queue_events& events) noexcept
    : native_(&native), line_(line), events_(&events) {}

adopted_queue::~adopted_queue() = default;

void adopted_queue::reserve(std::size_t waits, const detail::task_ref& work) {
    reserved_ = std::make_unique<item>(*this, waits, work);
}

void adopted_queue::wait(backend::point target) noexcept { reserved_->before->add(target); }

void adopted_queue::submit(backend::epoch at, const backend::operation& what) noexcept {
    reserved_->take(at, what);
    if (pending_.fetch_add(1, std::memory_order_acq_rel) == 0) {
        events_->busy();
    }
    const std::lock_guard lock(list_mutex_);
    item* const added = reserved_.get();
    (last_ == nullptr ? first_ : last_->next) = std::move(reserved_);
    last_ = added;
}

void adopted_queue::flush(backend::point /*upto*/) noexcept {
    passing_lock passing_on(passing_on_);
    if (is_waiting_ && observe::acting_for::current().at != 0) {
        return;
    }
    waited_.wait(passing_on, [&] { return !is_waiting_; });
    for (;;) {
        std::unique_ptr<item> one;
        {
            const std::lock_guard lock(list_mutex_);
            if (!first_) {
                return;
            }
            one = std::move(first_);
            first_ = std::move(one->next);
            if (!first_) {
                last_ = nullptr;
            }
        }
        pass_on(std::move(one), passing_on);
    }
}

void adopted_queue::pass_on(std::unique_ptr<item> one, passing_lock& passing_on) noexcept {
    // An object that the native queue takes destroys itself, perhaps before the call returns.
    item* const passed = one.release();
    pause* const before = passed->before.release();
    bool is_paused = false;
    try {
        if (before != nullptr) {
            item* const then = passed->has_work() ? nullptr : passed;
            native_->pause([before, then](std::function<void()> resume) { before->begin(std::move(resume), then); });
            is_paused = true;
            if (then != nullptr) {
                return;
            }
        }
        native_->submit([passed] { passed->run(); });
    } catch (...) {
        if (!is_paused) {
            passed->before.reset(before);
        }
        give_up(std::unique_ptr<item>(passed), std::current_exception(), passing_on);
    }
}

/// The native queue has refused `one` in whole or in part, and has nothing that comes after it. An operation that waits for its
/// epoch must not wait for ever, and later operations must still come after what `one` was to wait for: so the calling thread waits.
void adopted_queue::give_up(std::unique_ptr<item> one, std::exception_ptr why, passing_lock& passing_on) noexcept {
    is_waiting_ = true;
    const weir::detail::interruptible none(nullptr);
    passing_on.unlock();  // what the thread waits for may run code of the user's, which enqueues into this queue
    const backend::timeline_table& lines = backend::timeline_table::instance();
    const bool is_wait = one->before && !one->has_work();
    if (one->before) {
        for (const backend::point& target : one->before->targets()) {
            lines.host_wait(target);
        }
    }
    lines.host_wait({line_, one->at() - 1});
    passing_on.lock();
    is_waiting_ = false;
    waited_.notify_all();
    if (!is_wait) {
        events_->failed(one->at(), one->from(), std::move(why));
    }
    one.release()->end().account();
}

void adopted_queue::account() noexcept {
    backend::queue_events* const events = events_;
    if (pending_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        events->idle();
    }
}

}  // namespace weir::runtime
