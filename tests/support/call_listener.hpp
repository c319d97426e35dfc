// Counts what a library call enqueues, and how often the host waits in it.
#pragma once

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "frontier/point.hpp"
#include "observe/observers.hpp"
#include "weir/source_location.hpp"

namespace weir::test {

/// Observes the operations that the thread which made it enqueues, and the waits of that thread, while it lives.
class call_listener final : public observe::observer {
public:
    call_listener() { observe::observers::add(*this); }
    ~call_listener() override { observe::observers::remove(*this); }
    call_listener(const call_listener&) = delete;
    call_listener& operator=(const call_listener&) = delete;

    void operation(const observe::observed_operation& one) override {
        if (std::this_thread::get_id() != thread_) {
            return;
        }
        last_ = {one.stream->timeline, one.epoch};
        devices_.emplace_back(one.stream->device);
        enqueued_.fetch_add(1, std::memory_order_release);
        enqueued_.notify_all();
    }
    void host_waited(frontiers::point target, const source_location&) override {
        if (std::this_thread::get_id() != thread_) {
            return;
        }
        ++waits_;
        waited_for_last_ = waited_for_last_ || target == last_;
    }

    /// Blocks until `count` operations were enqueued.
    void wait_for_operations(int count) const {
        for (int seen = enqueued_.load(std::memory_order_acquire); seen < count;
             seen = enqueued_.load(std::memory_order_acquire)) {
            enqueued_.wait(seen);
        }
    }
    [[nodiscard]] int waits() const { return waits_; }
    [[nodiscard]] bool waited_for_last() const { return waited_for_last_; }
    [[nodiscard]] const std::vector<std::string>& devices() const { return devices_; }

private:
    const std::thread::id thread_ = std::this_thread::get_id();
    std::atomic<int> enqueued_{0};
    int waits_ = 0;
    bool waited_for_last_ = false;
    frontiers::point last_;
    std::vector<std::string> devices_;
};

/// How often the host waits in `call`.
template <class Call>
int waits_of(Call&& call) {
    const call_listener heard;
    call();
    return heard.waits();
}

}  // namespace weir::test
