// An array library of the tests' own, like others: it has queues that Weir does not own, a current queue for each thread,
// and memory that is freed on the queue that is current when the last reference goes. Weir does not see what it does.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "support/native_queues.hpp"
#include "weir/buffer.hpp"
#include "weir/package.hpp"

namespace weir::test {

/// A library whose work is complete when its calls return.
class library_without_queues final : public package {
public:
    [[nodiscard]] std::string_view name() const noexcept override { return "without queues"; }
    [[nodiscard]] std::optional<stream> current_stream(device /*of*/) override { return std::nullopt; }
};

class producer final : public package, public std::enable_shared_from_this<producer> {
public:
    using queue = std::shared_ptr<thread_queue>;

    explicit producer(weir::device on = cpu()) : device_(on), default_(make_queue()) {}

    [[nodiscard]] std::string_view name() const noexcept override { return "producer"; }
    [[nodiscard]] std::optional<stream> current_stream(weir::device /*of*/) override {
        const queue now = current();
        return stream::adopt(*now, now);
    }

    [[nodiscard]] const weir::device& device() const { return device_; }
    [[nodiscard]] queue make_queue() const { return std::make_shared<thread_queue>(device_); }
    [[nodiscard]] const queue& current() {
        auto& mine = currents()[this];
        return mine.empty() ? default_ : mine.back();
    }
    /// Makes a queue current for the calling thread.
    void push_current(queue one) { currents()[this].push_back(std::move(one)); }
    void pop_current() { currents()[this].pop_back(); }
    /// What is put into `later` from now on comes after what is in `earlier`, by the library's own events.
    static void join(const queue& later, const queue& earlier) {
        const auto reached = std::make_shared<thread_queue::latch>();
        earlier->put([reached] { reached->open(); });
        later->hold(reached);
    }

    /// Elements, shared by all copies.
    class array {
    public:
        array() = default;
        [[nodiscard]] std::span<double> elements() const { return memory_->elements; }
        [[nodiscard]] void* data() const { return memory_->elements.data(); }
        [[nodiscard]] std::size_t bytes() const { return memory_->elements.size_bytes(); }
        /// The object that keeps the memory alive for others.
        [[nodiscard]] std::shared_ptr<void> owner() const { return memory_; }
        explicit operator bool() const { return memory_ != nullptr; }

    private:
        friend class producer;
        struct block {
            std::shared_ptr<producer> of;
            std::span<double> elements;
            block(std::shared_ptr<producer> library, std::span<double> memory)
                : of(std::move(library)), elements(memory) {}
            block(const block&) = delete;
            block& operator=(const block&) = delete;
            ~block() { of->free(elements); }
        };
        std::shared_ptr<block> memory_;
    };

    /// Takes memory of that size from the current queue's free memory if there is some, at once: the library assumes that what comes later
    /// in the queue comes after the former uses.
    [[nodiscard]] array empty(std::size_t count) {
        array made;
        const std::lock_guard lock(mutex_);
        auto& free = free_[{current().get(), count}];
        if (free.empty()) {
            made.memory_ = std::make_shared<array::block>(shared_from_this(), fresh(count));
        } else {
            made.memory_ = std::make_shared<array::block>(shared_from_this(), free.back());
            free.pop_back();
        }
        return made;
    }

    // Enqueued on the current queue. The elements may belong to any library.
    void fill(std::span<double> x, double value) {
        current()->put([x, value] {
            for (double& each : x) {
                std::atomic_ref(each).store(value, std::memory_order_relaxed);
            }
        });
    }
    /// x = x * by + plus
    void update(std::span<double> x, double by, double plus) {
        current()->put([x, by, plus] {
            for (double& each : x) {
                const std::atomic_ref one(each);
                one.store(one.load(std::memory_order_relaxed) * by + plus, std::memory_order_relaxed);
            }
        });
    }
    void add(std::span<double> x, double value) { update(x, 1, value); }
    /// to = from + plus
    void copy(std::span<double> to, std::span<double> from, double plus) {
        current()->put([to, from, plus] {
            for (std::size_t i = 0; i < to.size(); ++i) {
                std::atomic_ref(to[i]).store(std::atomic_ref(from[i]).load(std::memory_order_relaxed) + plus,
                                             std::memory_order_relaxed);
            }
        });
    }
    // The library keeps nothing alive for its queues: memory is freed in the order of the queue that is current then.
    void fill(const array& x, double value) { fill(x.elements(), value); }
    void add(const array& x, double value) { add(x.elements(), value); }

    /// Blocks until the current queue has done its work. This is a wait of Weir's, since a device under a virtual clock makes progress
    /// only while a thread waits in this way.
    void drain() { stream::adopt(*current()).synchronize(); }
    /// The same, then reads the elements.
    [[nodiscard]] std::vector<double> values(const array& x) {
        drain();
        const std::span<double> elements = x.elements();
        return {elements.begin(), elements.end()};
    }

private:
    /// Memory of the device's. Memory that is not the host's comes from Weir's pool, which does not know its uses.
    std::span<double> fresh(std::size_t count) {
        if (device_ == cpu()) {
            storage_.push_back(std::make_unique<double[]>(count));
            return {storage_.back().get(), count};
        }
        on_device_.emplace_back(count * sizeof(double), stream(device_));
        return {reinterpret_cast<double*>(on_device_.back().device_data()), count};
    }
    void free(std::span<double> elements) {
        const std::lock_guard lock(mutex_);
        free_[{current().get(), elements.size()}].push_back(elements);
    }
    static std::map<producer*, std::vector<queue>>& currents() {
        static thread_local std::map<producer*, std::vector<queue>> all;
        return all;
    }

    weir::device device_;
    queue default_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<double[]>> storage_;
    std::vector<buffer> on_device_;
    std::map<std::pair<const thread_queue*, std::size_t>, std::vector<std::span<double>>> free_;
};

/// A queue is the library's current one while this lives.
class with_queue {
public:
    with_queue(std::shared_ptr<producer> of, producer::queue one) : of_(std::move(of)) {
        of_->push_current(std::move(one));
    }
    ~with_queue() { of_->pop_current(); }
    with_queue(const with_queue&) = delete;
    with_queue& operator=(const with_queue&) = delete;

private:
    std::shared_ptr<producer> of_;
};

}  // namespace weir::test
