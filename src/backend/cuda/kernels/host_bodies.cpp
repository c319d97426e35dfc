#include "backend/cuda/kernels/host_bodies.hpp"

#include <atomic>
#include <new>
#include <thread>
#include <utility>

#include "backend/task_threads.hpp"

namespace weir::backend::cuda {

/// One body at a time, and the two words through which stream and host notify each other. They only grow, so that a call can be
/// reused while the driver still polls for the former value.
struct host_bodies::call final : blocking_work {
    struct words {
        std::atomic<std::uint64_t> reached{0};
        std::atomic<std::uint64_t> done{0};
    };
    host_bodies* of = nullptr;
    words* seen = nullptr;  ///< the words, as the host addresses them
    device_pointer reached = 0;
    device_pointer done = 0;
    std::uint64_t number = 0;
    void (*body)(void*) noexcept = nullptr;
    void* with = nullptr;

    void run_blocking() noexcept override {
        body(with);
        seen->done.store(number, std::memory_order_release);
        const std::lock_guard lock(of->mutex_);
        of->free_.emplace_back(this);  // capacity was reserved before
    }
};

host_bodies::host_bodies(const context& of) : of_(&of) {
    task_threads::instance().keep_one();
    std::thread([this] { work(); }).detach();
}

std::unique_ptr<host_bodies::call> host_bodies::make_call() {
    auto made = std::make_unique<call>();
    made->of = this;
    void* memory = nullptr;
    of_->expect(of_->api().host_alloc(&memory, sizeof(call::words), host_alloc_portable | host_alloc_mapped),
                "cuMemHostAlloc");
    made->seen = ::new (memory) call::words;
    device_pointer there = 0;
    of_->expect(of_->api().host_device_pointer(&there, memory, 0), "cuMemHostGetDevicePointer");
    made->reached = there + offsetof(call::words, reached);
    made->done = there + offsetof(call::words, done);
    return made;
}

void host_bodies::put(stream_handle stream, void (*body)(void*) noexcept, void* with) {
    std::unique_ptr<call> one;
    {
        const std::lock_guard lock(mutex_);
        if (!free_.empty()) {
            one = std::move(free_.back());
            free_.pop_back();
        }
    }
    if (!one) {
        one = make_call();
    }
    one->body = body;
    one->with = with;
    ++one->number;
    {
        const std::lock_guard lock(mutex_);
        free_.reserve(free_.size() + fresh_.size() + 64);
        fresh_.reserve(fresh_.size() + 1);
    }
    const driver_api& api = of_->api();
    of_->expect(api.stream_write_value(stream, one->reached, one->number, 0), "cuStreamWriteValue64");
    of_->expect(api.stream_wait_value(stream, one->done, one->number, wait_value_greater_or_equal),
                "cuStreamWaitValue64");
    const std::lock_guard lock(mutex_);
    fresh_.push_back(one.release());
    changed_.notify_one();
}

void host_bodies::work() noexcept {
    std::vector<call*> waiting;
    for (;;) {
        {
            std::unique_lock lock(mutex_);
            if (waiting.empty()) {
                changed_.sleep(lock, [&] { return !fresh_.empty(); });
            }
            waiting.insert(waiting.end(), fresh_.begin(), fresh_.end());
            fresh_.clear();
        }
        std::erase_if(waiting, [](call* one) {
            if (one->seen->reached.load(std::memory_order_acquire) < one->number) {
                return false;
            }
            task_threads::instance().schedule_surely(*one);
            return true;
        });
        std::this_thread::yield();
    }
}

}  // namespace weir::backend::cuda
