#include "random_programs/strip.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "random_programs/world.hpp"

namespace random_programs {

namespace {

bool orders(step_kind kind) noexcept {
    switch (kind) {
        case step_kind::record:
        case step_kind::wait_event:
        case step_kind::wait_stream:
        case step_kind::wait_operation:
        case step_kind::synchronize_stream:
        case step_kind::synchronize_event:
        case step_kind::synchronize_operation:
        case step_kind::synchronize_device:
        case step_kind::query:
        case step_kind::order_array:
        case step_kind::order_stream:
        case step_kind::order_scope:
        case step_kind::order_process:
        // A view holds back what conflicts with it, and keeps memory alive.
        case step_kind::open_view:
        case step_kind::touch_view:
        case step_kind::close_view:
            return true;
        default:
            return false;
    }
}

class stripper {
public:
    stripper(const program& completed, gate_opening when) : when_(when), world_(completed) {
        made_.steps.seed = completed.seed;
        made_.steps.devices = completed.devices;
        made_.steps.has_host = completed.has_host;
        made_.steps.phases.resize(1);
        made_.steps.phases[0].resize(1);
        for (const step& one : completed.phases[0][0]) {
            next_number_ = std::max(next_number_, one.number + 1);
        }
        emit({.kind = step_kind::order_process, .number = next_number_++, .mode = weir::ordering_mode::manual});
        for (const step& one : completed.phases[0][0]) {
            if (!orders(one.kind)) {
                take(one);
            }
        }
        for (int gate = 0; gate < gates; ++gate) {
            open(gate);
        }
    }
    stripped_program made() && { return std::move(made_); }

private:
    void take(step one) {
        one.after.clear();
        // Resolved anew: with the views gone, memory is dropped sooner.
        if (!world_.resolve(one, 0)) {
            return;
        }
        if (one.kind == step_kind::hold) {
            holds_[static_cast<std::size_t>(one.other)].set(static_cast<std::size_t>(one.number));
        } else if (one.kind == step_kind::open && when_ == gate_opening::late) {
            return;
        } else if (one.kind == step_kind::open) {
            holds_[static_cast<std::size_t>(one.other)].reset();
        } else if (is_host_access(one.kind)) {
            // The host waits for the former owners of the memory in every ordering mode.
            const step_set waited_for = possible_.waited_for(one, 0);
            for (int gate = 0; gate < gates && when_ == gate_opening::late; ++gate) {
                if ((holds_[static_cast<std::size_t>(gate)] & waited_for).any()) {
                    open(gate);
                }
            }
            count_overtaken(one.touches);
        }
        const bool enqueued = is_operation(one.kind);
        const int number = one.number;
        emit(std::move(one));
        if (enqueued) {
            pending_.push_back(number);
        }
    }

    void open(int gate) {
        if (holds_[static_cast<std::size_t>(gate)].any()) {
            settle();
            holds_[static_cast<std::size_t>(gate)].reset();
            emit({.kind = step_kind::open, .number = next_number_++, .other = gate});
        }
    }

    [[nodiscard]] bool is_held(int number) const {
        step_set closed;
        for (const step_set& one : holds_) {
            closed |= one;
        }
        return (possible_.find(number)->past & closed).any();
    }

    /// Waits for everything that no closed gate holds back.
    void settle() {
        std::set<int> streams;
        std::vector<int> left;
        std::vector<int> last;
        for (auto number = pending_.rbegin(); number != pending_.rend(); ++number) {
            if (is_held(*number)) {
                left.insert(left.begin(), *number);
                continue;
            }
            if (streams.insert(possible_.find(*number)->stream).second) {
                last.push_back(*number);
            }
        }
        const std::vector<int> all = std::exchange(pending_, left);
        for (const int number : all) {
            if (std::find(left.begin(), left.end(), number) == left.end()) {
                count_overtaken(possible_.find(number)->touches, number);
            }
        }
        for (const int number : last) {
            made_.steps.phases[0][0].push_back(
                {.kind = step_kind::synchronize_operation, .number = next_number_++, .other = number});
        }
    }

    /// Counts the held operations, enqueued before `number`, that these touches do not wait for.
    void count_overtaken(const std::vector<touch>& touches, int before = most_steps) {
        for (const int held : pending_) {
            if (held >= before || !is_held(held)) {
                continue;
            }
            const order_model::node& past = *possible_.find(held);
            const bool conflict = std::any_of(touches.begin(), touches.end(), [&](const touch& mine) {
                return std::any_of(past.touches.begin(), past.touches.end(),
                                   [&](const touch& theirs) { return mine.conflicts_with(theirs); });
            });
            made_.overtakings += conflict ? 1 : 0;
        }
    }

    void emit(step one) {
        possible_.add(one, 0);
        world_.apply(one, 0);
        made_.steps.phases[0][0].push_back(std::move(one));
    }

    gate_opening when_;
    stripped_program made_;
    world world_;
    order_model possible_{{.automatic = false, .reuse = true}};
    std::array<step_set, gates> holds_;
    std::vector<int> pending_;  ///< operations, in the order of enqueueing, that the host has not waited for
    int next_number_ = 1;
};

}  // namespace

stripped_program strip(const program& completed, gate_opening when) { return stripper(completed, when).made(); }

order_model model_of(const program& completed, order_rules rules) {
    order_model model(rules);
    for (const step& one : completed.phases[0][0]) {
        model.add(one, 0);
    }
    return model;
}

}  // namespace random_programs
