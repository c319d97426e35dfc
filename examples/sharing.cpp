// Sharing memory with a library that has a queue of its own: docs/sharing-memory.md.
#include <weir/weir.hpp>

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

// The other library's queue: it runs one task after the other.
class their_queue final : public weir::native_queue {
public:
    their_queue() : thread_([this] { work(); }) {}
    ~their_queue() override {
        submit({});
        thread_.join();
    }
    weir::device device() const noexcept override { return weir::cpu(); }
    void submit(std::function<void()> task) override {
        const std::lock_guard lock(mutex_);
        tasks_.push_back(std::move(task));
        changed_.notify_one();
    }
    bool idle() const noexcept override {
        const std::lock_guard lock(mutex_);
        return tasks_.empty();
    }

private:
    void work() {
        for (;;) {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [this] { return !tasks_.empty(); });
            const std::function<void()> task = tasks_.front();
            lock.unlock();
            if (!task) {
                return;
            }
            task();
            lock.lock();
            tasks_.pop_front();
        }
    }

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> tasks_;
    std::thread thread_;
};

class their_library final : public weir::package {
public:
    explicit their_library(std::shared_ptr<their_queue> queue) : queue_(std::move(queue)) {}
    std::string_view name() const noexcept override { return "theirs"; }
    std::optional<weir::stream> current_stream(weir::device) override { return weir::stream::adopt(*queue_, queue_); }

private:
    std::shared_ptr<their_queue> queue_;
};

int main() {
    const auto queue = std::make_shared<their_queue>();
    const auto library = std::make_shared<their_library>(queue);
    const auto numbers = std::make_shared<std::vector<double>>(1000, 0.0);
    const auto add = [numbers](double value) {
        for (double& each : *numbers) {
            each += value;
        }
    };

    const weir::array x(
        weir::import_live(numbers->data(), numbers->size() * sizeof(double), weir::cpu(), library, numbers),
        weir::dtype::float64, {1000});
    weir::array y = weir::empty(1000, weir::dtype::float64);
    const weir::stream s;

    queue->submit([add] { add(1); });  // theirs: Weir does not see it
    weir::parallel_for(
        s, x.size(), [](auto i, auto to, auto from) { to[i] = from[i] * 10; }, weir::out<double>(y),
        weir::in<double>(x));
    queue->submit([add] { add(1); });  // theirs again: after ours has read

    return y.read<double>()[0] == 10.0 && x.read<double>()[0] == 2.0 ? 0 : 1;
}
