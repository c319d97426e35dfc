#include "weir/native_queue.hpp"

#include <atomic>
#include <mutex>
#include <utility>

#include "weir/detail/mutex.hpp"

namespace weir {

namespace {

std::uint64_t next_queue_id() noexcept {
    static std::atomic<std::uint64_t> next{1};
    return next.fetch_add(1, std::memory_order_relaxed);
}

/// Blocks the thread of a queue until a pause ends.
class pause_end {
public:
    void come() noexcept {
        // Notifies under the lock: once the lock is free, the queue's thread may continue and destroy this object.
        const std::lock_guard lock(mutex_);
        is_over_ = true;
        over_.notify_one();
    }
    void await() {
        std::unique_lock lock(mutex_);
        over_.wait(lock, [&] { return is_over_; });
    }

private:
    detail::mutex mutex_;
    detail::condition_variable over_;
    bool is_over_ = false;
};

}  // namespace

native_queue::native_queue() : id_(next_queue_id()) {}

native_queue::~native_queue() = default;

void native_queue::pause(std::function<void(std::function<void()> resume)> begin) {
    submit([begin = std::move(begin)] {
        pause_end end;
        begin([&end] { end.come(); });
        end.await();
    });
}

}  // namespace weir
