#include "backend/cpu/inline_queue.hpp"

#include <vector>

#include "weir/detail/fork_section.hpp"

namespace weir::backend::cpu {

/// What one thread of the program has to run before its outermost call returns.
class inline_thread {
public:
    static inline_thread& current() {
        thread_local inline_thread one;
        return one;
    }

    /// Makes room for one more of each, so that nothing below allocates. Throws std::bad_alloc.
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

private:
    struct wanted {
        inline_queue* queue;  ///< null: another thread runs it
        point upto;
    };

    /// In the order in which it was enqueued, so that what waits comes after what it waits for; then what other threads
    /// have put into the same queues meanwhile, for which they wait.
    void run_all() noexcept {
        for (std::size_t next = 0;;) {
            if (next < wanted_.size()) {
                const wanted one = wanted_[next++];
                if (one.queue == nullptr) {
                    timeline_table::instance().host_wait(one.upto);
                } else {
                    one.queue->run_until(one.upto.at);
                }
                continue;
            }
            wanted_.clear();
            next = 0;
            if (queues_.empty()) {
                return;
            }
            inline_queue* const queue = queues_.back();
            queues_.pop_back();
            if (!queue->run_one_or_rest()) {
                queues_.push_back(queue);
            }
        }
    }

    std::vector<wanted> wanted_;
    std::vector<inline_queue*> queues_;  ///< that this thread runs, and keeps until they rest
    bool is_running_ = false;
};

void inline_queue::reserve(std::size_t waits, const detail::task_ref& work) {
    inline_thread::current().reserve();
    recorded_queue::reserve(waits, work);
}

void inline_queue::flush(point upto) noexcept {
    const detail::fork_section whole;  // who has the queue in hands is the only one who has
    inline_thread::current().flush(*this, upto);
}

/// Whether there is work at the front, once the waits before it are over.
bool inline_queue::look_and_wait() noexcept {
    const ahead found = look_past([](point target) {
        timeline_table::instance().host_wait(target);
        return true;
    });
    return found == ahead::work;
}

void inline_queue::run_until(epoch upto) noexcept {
    while (line().completed() < upto && look_and_wait()) {
        execute();
    }
}

bool inline_queue::run_one_or_rest() noexcept {
    if (look_and_wait()) {
        execute();
        return false;
    }
    runner_.store(nullptr, std::memory_order_relaxed);
    if (rest()) {
        return true;
    }
    runner_.store(&inline_thread::current(), std::memory_order_relaxed);
    return false;
}

}  // namespace weir::backend::cpu
