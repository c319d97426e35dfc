// A device for the driver: streams that run what they were given, at random, as far as waits allow. It reports which epochs
// are complete, as a runtime's watermarks do, with a random lag.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "order/mark.hpp"
#include "order_program.hpp"

namespace order_test {

class device final : public weir::order::watermarks {
public:
    using epoch = weir::order::epoch;
    using timeline_id = weir::order::timeline_id;

    /// `names` are the timelines of the streams. If `runs` is false, no operation is ever known to be complete; else fewer than
    /// `pace` operations run between two steps.
    device(std::vector<timeline_id> names, bool runs, std::uint64_t pace, std::uint64_t seed)
        : names_(std::move(names)), runs_(runs), pace_(pace), random_(seed), streams_(names_.size()) {}

    /// Enqueues an operation on `stream` at `position`, after its `waits`. If there is one at that position already, adds the waits to it.
    void enqueue(int stream, int position, const std::vector<edge>& waits) {
        auto& queue = at(stream).queue;
        if (queue.empty() || queue.back().position != position) {
            queue.push_back({position, {}});
        }
        queue.back().waits.insert(queue.back().waits.end(), waits.begin(), waits.end());
    }

    /// The stream's next epoch stands for everything in it up to `position`.
    void stand(int stream, int position) { at(stream).epochs.push_back(position); }

    /// The position that an epoch stands for.
    [[nodiscard]] int position(int stream, epoch of) const {
        return of == 0 ? -1 : streams_[static_cast<std::size_t>(stream)].epochs[static_cast<std::size_t>(of - 1)];
    }

    /// Runs a few operations and lets the watermarks follow, perhaps not all the way.
    void progress() {
        if (!runs_) {
            return;
        }
        for (std::uint64_t tries = random_() % pace_; tries > 0; --tries) {
            run_one(static_cast<int>(random_() % streams_.size()));
        }
        for (auto& stream : streams_) {
            const epoch lag = random_() % 3;
            const epoch real = over(stream);
            stream.completed = std::max(stream.completed, real > lag ? real - lag : 0);
        }
    }

    /// Runs until everything in `stream` up to `position` is complete, as the host does when it waits.
    void run_until(int stream, int position) {
        while (runs_ && pending(stream, position)) {
            run_one(static_cast<int>(random_() % streams_.size()));
        }
    }

    [[nodiscard]] epoch completed(timeline_id timeline) const noexcept override {
        for (std::size_t s = 0; s < names_.size(); ++s) {
            if (names_[s] == timeline) {
                return ahead_ ? streams_[s].epochs.size() : streams_[s].completed;
            }
        }
        return 0;
    }

    /// The operations newly known to be complete, as facts for the steps from position `from` on.
    [[nodiscard]] std::vector<edge> newly_over(int from) {
        std::vector<edge> facts;
        for (std::size_t s = 0; s < streams_.size(); ++s) {
            one_stream& it = streams_[s];
            if (it.completed > it.told) {
                const int stream = static_cast<int>(s);
                facts.push_back({stream, position(stream, it.completed), every_stream, from, ""});
                it.told = it.completed;
            }
        }
        return facts;
    }

    /// How many timelines have work that is not known to be complete.
    [[nodiscard]] std::size_t unfinished() const {
        return static_cast<std::size_t>(std::count_if(
            streams_.begin(), streams_.end(), [](const one_stream& s) { return s.completed < s.epochs.size(); }));
    }

    /// Plants a fault: the watermarks run ahead of the work.
    void run_ahead() { ahead_ = true; }

private:
    struct item {
        int position;
        std::vector<edge> waits;
    };
    struct one_stream {
        std::vector<item> queue;
        std::size_t executed = 0;
        std::vector<int> epochs;
        epoch completed = 0;
        epoch told = 0;
    };

    one_stream& at(int stream) { return streams_[static_cast<std::size_t>(stream)]; }

    [[nodiscard]] bool pending(int stream, int position) const {
        const one_stream& it = streams_[static_cast<std::size_t>(stream)];
        return it.executed < it.queue.size() && it.queue[it.executed].position <= position;
    }

    void run_one(int stream) {
        one_stream& it = at(stream);
        if (it.executed == it.queue.size()) {
            return;
        }
        const auto& waits = it.queue[it.executed].waits;
        if (std::none_of(waits.begin(), waits.end(), [&](const edge& e) { return pending(e.stream, e.upto); })) {
            ++it.executed;
        }
    }

    static epoch over(const one_stream& it) {
        epoch last = it.completed;
        while (last < it.epochs.size() &&
               (it.executed == it.queue.size() ||
                it.queue[it.executed].position > it.epochs[static_cast<std::size_t>(last)])) {
            ++last;
        }
        return last;
    }

    std::vector<timeline_id> names_;
    bool runs_;
    std::uint64_t pace_;
    std::mt19937_64 random_;
    std::vector<one_stream> streams_;
    bool ahead_ = false;
};

}  // namespace order_test
