// A device of the tests' own, outside the library: the example of docs/architecture.md, "A new device". Threads of its own run what its
// queues hold, and its memory is separate: the host copies from and to it, and never touches it. It has no capabilities.
// A program that is linked with this file runs the conformance suite on this device alone.
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <thread>

#include "backend/backend.hpp"
#include "backend/fifo.hpp"
#include "backend/recorded_queue.hpp"
#include "backend/task_threads.hpp"
#include "backend/timeline.hpp"
#include "runtime/devices/registered_devices.hpp"
#include "support/devices.hpp"
#include "weir/detail/fork_section.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/error.hpp"

namespace weir::test {

namespace {

class thread_queue;

/// The threads of one device, and the queues that have something to run. Lives for ever, as the threads do.
class device_threads {
public:
    void start();
    void schedule(thread_queue& one) noexcept;

private:
    void work() noexcept;

    static constexpr int most = 4;
    detail::mutex mutex_;  ///< guards what follows; a leaf in the lock order
    detail::condition_variable wake_;
    backend::fifo<thread_queue> ready_;
    int started_ = 0;
};

/// One queue. While it waits for another stream, it is in no list and uses no thread: the timeline calls `reached`.
class thread_queue final : public backend::recorded_queue, private backend::blocking_work, private backend::waiter {
public:
    thread_queue(device_threads& by, backend::timeline& line, backend::queue_events& events)
        : recorded_queue(line, events), by_(&by) {}
    ~thread_queue() override = default;

    /// Runs operations until the queue waits, is empty, or its next operation may block. `this` may be gone then.
    void advance() noexcept {
        for (;;) {
            switch (look(*this)) {
                case ahead::waiting:
                    return;
                case ahead::nothing:
                    if (rest()) {
                        return;
                    }
                    break;
                case ahead::work:
                    if (kind_ahead() == runtime::work_kind::host_task &&
                        backend::task_threads::instance().schedule(*this)) {
                        return;
                    }
                    execute();
                    break;
            }
        }
    }

    thread_queue* next = nullptr;  ///< used by fifo

private:
    void schedule() noexcept override { by_->schedule(*this); }
    void reached() noexcept override { schedule(); }
    void run_blocking() noexcept override {
        execute();
        schedule();
    }

    device_threads* by_;
};

void device_threads::start() {
    const std::lock_guard lock(mutex_);
    try {
        for (; started_ < most; ++started_) {
            std::thread([this] { work(); }).detach();
        }
    } catch (const std::system_error& why) {
        throw device_error(std::string("a device of the tests cannot start its threads: ") + why.what());
    }
}

void device_threads::schedule(thread_queue& one) noexcept {
    const std::lock_guard lock(mutex_);
    ready_.push(one);
    wake_.notify_one();
}

void device_threads::work() noexcept {
    const detail::fork_section awake;  // except while it sleeps
    for (;;) {
        std::unique_lock lock(mutex_);
        wake_.sleep(lock, [&] { return !ready_.empty(); });
        thread_queue* const one = ready_.pop();
        lock.unlock();
        one->advance();
    }
}

class thread_driver final : public backend::driver {
public:
    explicit thread_driver(int number) : name_("thread:" + std::to_string(number)) {}
    ~thread_driver() override = default;

    [[nodiscard]] std::string_view name() const noexcept override { return name_; }
    [[nodiscard]] std::unique_ptr<backend::queue> make_queue(backend::timeline& line, backend::queue_events& events,
                                                             const backend::queue_options& /*how*/) override {
        threads_.start();
        return std::make_unique<thread_queue>(threads_, line, events);
    }

    [[nodiscard]] backend::memory_chunk allocate(std::size_t bytes) noexcept override {
        // Adds first and compares then, so that two threads cannot both get the last bytes.
        if (used_.fetch_add(bytes) + bytes <= total_memory()) {
            if (void* const made = ::operator new(bytes, alignment, std::nothrow)) {
                return {static_cast<std::byte*>(made), 0};
            }
        }
        used_ -= bytes;
        return {};
    }
    void deallocate(backend::memory_chunk memory, std::size_t bytes) noexcept override {
        ::operator delete(memory.address, alignment);
        used_ -= bytes;
    }
    [[nodiscard]] std::size_t total_memory() const noexcept override { return std::size_t{1} << 30; }
    [[nodiscard]] bool host_reaches_memory() const noexcept override { return false; }
    void fetch(std::byte* host, const std::byte* device, std::size_t bytes) override {
        std::memcpy(host, device, bytes);
    }
    void store(std::byte* device, const std::byte* host, std::size_t bytes) override {
        std::memcpy(device, host, bytes);
    }

private:
    static constexpr std::align_val_t alignment{256};

    std::string name_;
    device_threads threads_;
    std::atomic<std::size_t> used_{0};
};

std::unique_ptr<backend::driver> make_driver(int number) { return std::make_unique<thread_driver>(number); }

}  // namespace

void register_own_device() {
    [[maybe_unused]] static const bool once = [] {
        runtime::register_kind({"thread", 2, &make_driver});
        return true;
    }();
}

}  // namespace weir::test
