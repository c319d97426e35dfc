#include "backend/cpu/inline_queue.hpp"

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "backend/task_threads.hpp"
#include "weir/detail/fork_section.hpp"
#include "weir/detail/interruption.hpp"

namespace weir::backend::cpu {

/// Operations that a thread of the program has to run before its outermost call returns.
class inline_thread {
public:
    static inline_thread& current() {
        thread_local inline_thread one;
        return one;
    }

    /// Makes room for one more entry in each list, so that nothing below allocates. Throws std::bad_alloc.
    void reserve() {
        wanted_.reserve(wanted_.size() + 1);
        queues_.reserve(queues_.size() + 1);
    }

    void flush(inline_queue& queue, point upto) noexcept {
        if (queue.unclaimed_.exchange(false, std::memory_order_acq_rel)) {
            queue.runner_.store(this, std::memory_order_relaxed);
            queues_.push_back(&queue);
        }
        const bool mine = queue.runner_.load(std::memory_order_relaxed) == this;
        wanted_.push_back({mine ? &queue : nullptr, upto});
        if (!is_running_) {
            is_running_ = true;
            run_all();
            is_running_ = false;
        }
    }

    /// Waits for what an operation comes after. False if the wait is ended: then the caller must return.
    [[nodiscard]] bool wait(point target) noexcept {
        if (timeline_table::instance().host_wait_or_end(target)) {
            return true;
        }
        try {
            leaving_ = std::make_unique<left_over>(target);
            task_threads::instance().keep_one();
            return false;
        } catch (...) {
            leaving_.reset();  // no other thread can be started
        }
        const detail::interruptible none(nullptr);
        timeline_table::instance().host_wait(target);
        return true;
    }

private:
    struct wanted {
        inline_queue* queue;  ///< null: another thread runs it
        point upto;
    };

    /// The work that a thread leaves to another one when its wait is ended.
    struct left_over final : blocking_work {
        explicit left_over(point target) noexcept : first(target) {}
        void run_blocking() noexcept override {
            const std::unique_ptr<left_over> self(this);
            current().take_over(*this);
        }
        point first;  ///< waited for before everything else
        std::vector<wanted> wants;
        std::vector<inline_queue*> queues;
    };

    void take_over(left_over& from) noexcept {
        wanted_.swap(from.wants);
        queues_.swap(from.queues);
        for (inline_queue* const each : queues_) {
            each->runner_.store(this, std::memory_order_relaxed);
        }
        is_running_ = true;
        timeline_table::instance().host_wait(from.first);
        run_all();
        is_running_ = false;
    }

    /// Leaves everything that is left to another thread. No thread runs the queues until that one does.
    void leave() noexcept {
        if (queues_.empty()) {  // there are only waits for what other threads run
            wanted_.clear();
            leaving_.reset();
            return;
        }
        for (inline_queue* const each : queues_) {
            each->runner_.store(nullptr, std::memory_order_relaxed);
        }
        leaving_->wants.swap(wanted_);
        leaving_->queues.swap(queues_);
        task_threads::instance().schedule_surely(*leaving_.release());
    }

    /// Runs operations in the order in which they were enqueued, so that an operation that waits comes after what it waits for. Then runs
    /// what other threads have put into the same queues meanwhile, since they wait for that.
    void run_all() noexcept {
        for (std::size_t next = 0;;) {
            if (next < wanted_.size()) {
                if (!satisfy(wanted_[next])) {
                    wanted_.erase(wanted_.begin(), wanted_.begin() + static_cast<std::ptrdiff_t>(next));
                    leave();
                    return;
                }
                ++next;
                continue;
            }
            wanted_.clear();
            next = 0;
            if (queues_.empty()) {
                return;
            }
            inline_queue* const queue = queues_.back();
            queues_.pop_back();
            const inline_queue::outcome found = queue->run_one_or_rest();
            if (found != inline_queue::outcome::rests) {
                queues_.push_back(queue);
            }
            if (found == inline_queue::outcome::ended) {
                leave();
                return;
            }
        }
    }

    /// False if a wait was ended.
    [[nodiscard]] bool satisfy(wanted one) noexcept {
        if (one.queue == nullptr) {
            return wait(one.upto);
        }
        while (one.queue->line().completed() < one.upto.at) {
            switch (one.queue->run_one()) {
                case inline_queue::outcome::ran:
                    break;
                case inline_queue::outcome::rests:
                    return true;
                case inline_queue::outcome::ended:
                    return false;
            }
        }
        return true;
    }

    std::vector<wanted> wanted_;
    std::vector<inline_queue*> queues_;  ///< queues that this thread runs, and keeps until they rest
    std::unique_ptr<left_over> leaving_;
    bool is_running_ = false;
};

void inline_queue::reserve(std::size_t waits, const detail::task_ref& work) {
    inline_thread::current().reserve();
    recorded_queue::reserve(waits, work);
}

void inline_queue::flush(point upto) noexcept {
    const detail::fork_section whole;  // no fork may come between: only this thread has the queue
    inline_thread::current().flush(*this, upto);
}

inline_queue::outcome inline_queue::run_one() noexcept {
    switch (look_past([](point target) { return inline_thread::current().wait(target); })) {
        case ahead::nothing:
            return outcome::rests;
        case ahead::waiting:
            return outcome::ended;
        case ahead::work:
            break;
    }
    const detail::interruptible none(nullptr);  // the caller cannot end waits within the operation
    execute();
    return outcome::ran;
}

inline_queue::outcome inline_queue::run_one_or_rest() noexcept {
    const outcome found = run_one();
    if (found != outcome::rests) {
        return found;
    }
    runner_.store(nullptr, std::memory_order_relaxed);
    if (rest()) {
        return outcome::rests;
    }
    runner_.store(&inline_thread::current(), std::memory_order_relaxed);
    return outcome::ran;
}

}  // namespace weir::backend::cpu
