// A queue of another library that needs no memory for its entries: only Weir can fail for lack of memory.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <thread>
#include <utility>

#include "weir/native_queue.hpp"

namespace weir::test {

/// An in-order queue of the CPU, run by a thread of its own. Its size is fixed: an entry too many ends the program.
class frugal_queue final : public native_queue {
public:
    ~frugal_queue() override {
        put({});
        thread_.join();
    }

    [[nodiscard]] weir::device device() const noexcept override { return cpu(); }
    void submit(std::function<void()> task) override { put({std::move(task), {}}); }
    void pause(std::function<void(std::function<void()>)> begin) override { put({{}, std::move(begin)}); }
    [[nodiscard]] bool idle() const noexcept override { return put_ == over_; }

private:
    struct entry {
        std::function<void()> task;
        std::function<void(std::function<void()>)> pause;
    };

    void put(entry what) {
        if (put_ - over_ == entries_.size()) {
            std::abort();
        }
        entries_[put_ % entries_.size()] = std::move(what);
        ++put_;
        put_.notify_one();
    }
    void work() {
        for (std::size_t next = 0;; ++next) {
            put_.wait(next);
            const entry now = std::exchange(entries_[next % entries_.size()], {});
            if (now.pause) {
                has_resumed_ = false;
                now.pause([this] {
                    has_resumed_ = true;
                    has_resumed_.notify_one();
                });
                has_resumed_.wait(false);
            } else if (now.task) {
                now.task();
            } else {
                return;
            }
            over_ = next + 1;
        }
    }

    std::array<entry, 64> entries_;
    std::atomic<std::size_t> put_{0};
    std::atomic<std::size_t> over_{0};
    std::atomic<bool> has_resumed_{false};
    std::thread thread_{[this] { work(); }};
};

}  // namespace weir::test
