#include "sharing_programs/order.hpp"

#include <algorithm>

namespace sharing_programs {

namespace {

bool conflict(const access& a, const access& b) noexcept { return a.memory == b.memory && (a.write || b.write); }

}  // namespace

order::step_set order::ordered_by_weir(const access& touch) const {
    step_set past;
    if (!counts(touch)) {
        return past;
    }
    for (const node& other : nodes_) {
        for (const access& theirs : other.touches) {
            if (!other.on_host && conflict(touch, theirs)) {
                past |= other.past;
            }
        }
    }
    const auto used = used_.find(touch.memory);
    past |= used == used_.end() ? step_set() : used->second;
    const auto queue = tails_.find(touch.queue);
    return past | (queue == tails_.end() ? step_set() : queue->second);
}

void order::operation(int step, int stream, const std::vector<access>& touches) {
    node made{step, false, touches, tails_[stream] | host_};
    for (const access& touch : touches) {
        made.past |= ordered_by_weir(touch);
    }
    made.past.set(bit(step));
    tails_[stream] |= made.past;
    for (const access& touch : touches) {
        if (counts(touch) && touch.queue != none) {
            tails_[touch.queue] |= made.past;
        }
    }
    nodes_.push_back(std::move(made));
}

void order::host_access(int step, const access& touch) {
    host_ |= ordered_by_weir(touch);
    nodes_.push_back({step, true, {touch}, host_});
}

bool order::is_replaced(std::size_t first, std::size_t second, int memory, bool write) const {
    for (std::size_t i = first + 1; i < second; ++i) {
        for (const access& between : nodes_[i].touches) {
            if (!nodes_[i].on_host && nodes_[i].past.test(bit(nodes_[first].step)) && between.memory == memory &&
                (between.write || !write)) {
                return true;
            }
        }
    }
    return false;
}

std::vector<unordered_pair> order::pairs() const {
    std::vector<unordered_pair> found;
    for (std::size_t second = 0; second < nodes_.size(); ++second) {
        for (std::size_t first = 0; first < second; ++first) {
            // What the host does is complete when it goes on.
            if (nodes_[first].on_host || nodes_[second].past.test(bit(nodes_[first].step))) {
                continue;
            }
            bool any = false;
            bool certain = false;
            for (const access& before : nodes_[first].touches) {
                for (const access& after : nodes_[second].touches) {
                    if (conflict(before, after)) {
                        any = true;
                        certain = certain || !is_replaced(first, second, before.memory, before.write);
                    }
                }
            }
            if (any) {
                found.push_back({nodes_[first].step, nodes_[second].step, certain});
            }
        }
    }
    return found;
}

}  // namespace sharing_programs
