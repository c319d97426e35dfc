#include "random_programs/complete.hpp"

#include <algorithm>
#include <utility>

#include "random_programs/arithmetic.hpp"
#include "random_programs/order_model.hpp"
#include "random_programs/poison_model.hpp"
#include "random_programs/world.hpp"

namespace random_programs {

namespace {

class completer {
public:
    explicit completer(const program& raw) : world_(raw) {
        made_.seed = raw.seed;
        made_.tight = raw.tight;
        made_.devices = raw.devices;
        made_.has_host = raw.has_host;
        for (const auto& phase : raw.phases) {
            for (const auto& thread : phase) {
                for (const step& one : thread) {
                    next_number_ = std::max(next_number_, one.number + 1);
                }
            }
        }
        for (const auto& phase : raw.phases) {
            made_.phases.emplace_back(phase.size());
            alone_ = phase.size() == 1;
            for (thread_ = 0; thread_ < phase.size(); ++thread_) {
                for (const step& one : phase[thread_]) {
                    take(one);
                }
                end_thread();
            }
            certain_.end_phase();
            possible_.end_phase();
        }
    }

    program made() && { return std::move(made_); }

private:
    /// Some steps are reserved for what has to be added; a program that is longer is cut off.
    static constexpr int room = most_steps - 8;

    void take(step one) {
        if (next_number_ >= room || !world_.resolve(one, thread_)) {
            return;
        }
        std::erase_if(one.after, [&](int number) { return !is_stream_work(number); });
        const bool names_operation = one.kind == step_kind::wait_operation || one.kind == step_kind::keep_alive ||
                                     one.kind == step_kind::synchronize_operation;
        if (names_operation && !is_stream_work(one.other)) {
            return;
        }
        if (one.kind == step_kind::open_view && !one.touches[0].write && poison_.reason_in(one.touches[0]) != none) {
            one.kind = step_kind::read_host;  // refused: there is no view then
        }
        if (is_operation(one.kind)) {
            take_operation(std::move(one));
        } else {
            if (is_host_access(one.kind)) {
                order_host_by_hand(one);
            }
            open_gates(possible_.waited_for(one, thread_), blocks_host(one.kind));
            emit(std::move(one));
        }
    }

    void take_operation(step one) {
        // Memory for a number of arrays always has room for one more of them, if not all of it is in use.
        if (one.kind == step_kind::allocate && made_.tight &&
            world_.live_memories(one.touches[0].device) + 1 >= *made_.tight) {
            return;
        }
        order_by_hand(one);
        bool seen_by_host = false;
        for (const touch& mine : one.touches) {
            for (const world::view& view : world_.views()) {
                seen_by_host = seen_by_host || (view.memory == mine.memory && (view.write || mine.write));
            }
        }
        if (seen_by_host) {
            open_gates(possible_.past_of(one, thread_, possible_.tail(one.stream_number, thread_)), true);
        }
        const int number = one.number;
        emit(std::move(one));
        if (seen_by_host) {
            // Where the program orders accesses itself it also waits before it looks.
            add({.kind = step_kind::synchronize_operation, .other = number});
        }
    }

    [[nodiscard]] bool is_stream_work(int number) const noexcept {
        const order_model::node* const found = number == none ? nullptr : certain_.find(number);
        return found != nullptr && found->stream != none && !found->touches.empty();
    }

    /// The operations that the manual accesses of `one` must come after and that `known` does not have, latest first.
    template <class Order>
    void for_each_missing(const step& one, step_set known, Order&& order) {
        const std::vector<order_model::node>& nodes = certain_.nodes();
        std::vector<order_model::node> missing;
        for (auto past = nodes.rbegin(); past != nodes.rend(); ++past) {
            if (past->stream == none || known.test(static_cast<std::size_t>(past->number))) {
                continue;
            }
            const bool conflict = std::any_of(one.touches.begin(), one.touches.end(), [&](const touch& mine) {
                return mine.manual && std::any_of(past->touches.begin(), past->touches.end(),
                                                  [&](const touch& theirs) { return mine.conflicts_with(theirs); });
            });
            if (conflict) {
                known |= past->past;
                missing.push_back(*past);  // copied: what `order` adds may move the nodes
            }
        }
        for (const order_model::node& past : missing) {
            order(past);
        }
    }

    /// Adds what the program must do itself before `one` may be enqueued, each time in another way.
    void order_by_hand(step& one) {
        const step_set known = certain_.past_of(one, thread_, certain_.tail(one.stream_number, thread_));
        for_each_missing(one, known, [&](const order_model::node& past) {
            const int other = usable(world_.slot_of(past.stream));
            const auto way = mix(static_cast<std::uint64_t>(one.number), static_cast<std::uint64_t>(past.number)) % 4;
            if (way == 0) {
                one.after.push_back(past.number);
            } else if (way == 1 || other == none) {
                add({.kind = step_kind::wait_operation, .stream = one.stream, .other = past.number});
            } else if (way == 2) {
                const int event = private_slot();
                add({.kind = step_kind::record, .stream = other, .other = event});
                add({.kind = step_kind::wait_event, .stream = one.stream, .other = event});
            } else {
                add({.kind = step_kind::wait_stream, .stream = one.stream, .other = other});
            }
        });
    }

    void order_host_by_hand(const step& one) {
        for_each_missing(one, certain_.host(thread_) | certain_.past_of(one, thread_, step_set()),
                         [&](const order_model::node& past) {
                             add({.kind = step_kind::synchronize_operation, .other = past.number});
                         });
    }

    /// The host is about to wait for `what`.
    void open_gates(const step_set& what, bool blocking) {
        if (!blocking) {
            return;
        }
        for (int gate = 0; gate < gates; ++gate) {
            if (!world_.is_closed(gate)) {
                continue;
            }
            // Beside other threads it is not known which thread waits for what: each thread opens its own gates before it waits.
            const bool must = alone_ ? std::any_of(world_.holds(gate).begin(), world_.holds(gate).end(),
                                                   [&](int hold) { return what.test(static_cast<std::size_t>(hold)); })
                                     : gate / 2 == static_cast<int>(thread_);
            if (must) {
                add({.kind = step_kind::open, .other = gate});
            }
        }
    }

    /// The slot, unless another thread may empty it at any time.
    [[nodiscard]] int usable(int slot) const noexcept {
        const bool own = slot >= private_slot() && slot < private_slot() + private_slots;
        return alone_ || slot < shared_slots || own ? slot : none;
    }

    [[nodiscard]] int private_slot() const noexcept { return shared_slots + static_cast<int>(thread_) * private_slots; }

    void end_thread() {
        for (int view = 0; view < slots; ++view) {
            if (world_.views()[static_cast<std::size_t>(view)].memory != none) {
                add({.kind = step_kind::close_view, .other = view});
            }
        }
        while (world_.has_scope(thread_)) {
            add({.kind = step_kind::order_scope});
        }
        while (world_.has_current(thread_)) {
            add({.kind = step_kind::pop_current});
        }
        for (int gate = 0; gate < gates; ++gate) {
            if (world_.is_closed(gate) && (alone_ || gate / 2 == static_cast<int>(thread_))) {
                add({.kind = step_kind::open, .other = gate});
            }
        }
    }

    /// Adds a step that was not in the raw program.
    void add(step one) {
        one.number = next_number_++;
        if (world_.resolve(one, thread_)) {
            if (blocks_host(one.kind)) {
                open_gates(possible_.waited_for(one, thread_), true);
            }
            emit(std::move(one));
        }
    }

    void emit(step one) {
        certain_.add(one, thread_);
        possible_.add(one, thread_);
        poison_.add(one);
        world_.apply(one, thread_);
        made_.phases.back()[thread_].push_back(std::move(one));
    }

    program made_;
    world world_;
    order_model certain_{{.automatic = true, .reuse = false}};
    order_model possible_{{.automatic = true, .reuse = true}};
    poison_model poison_;
    std::size_t thread_ = 0;
    bool alone_ = true;
    int next_number_ = 1;
};

}  // namespace

program complete(const program& raw) { return completer(raw).made(); }

}  // namespace random_programs
