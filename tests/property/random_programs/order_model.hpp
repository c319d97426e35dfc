#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "random_programs/program.hpp"

namespace random_programs {

/// A set of steps, by their numbers.
using step_set = std::bitset<most_steps>;

/// What a step model counts as order.
struct order_rules {
    bool automatic = true;  ///< Weir orders the accesses that are left to it
    bool reuse = false;     ///< an access to an array is ordered after those to all arrays dropped before it was made
};

/// What is ordered after what in a program, found the slow way: for each step the set of all steps that it comes after.
/// Shares nothing with the engine. Steps are added in the order of `complete`; in a phase of several threads it takes only
/// the order that holds however the threads take turns.
class order_model {
public:
    explicit order_model(order_rules rules = {}) : rules_(rules) {}

    /// Adds one step of `thread`.
    void add(const step& one, std::size_t thread);
    /// The threads have met.
    void end_phase();

    /// An operation, a gate's hold, or an access of the host's.
    struct node {
        int number = none;
        int stream = none;  ///< `none` for the host
        int device = none;  ///< the stream's
        std::size_t thread = 0;
        int phase = 0;
        std::vector<touch> touches;
        step_set past;  ///< what it is ordered after, all of it; itself included
        step_set tail;  ///< what its stream was ordered after before it; the host's past included
    };
    /// A piece of memory. Its end counts as a free on the stream that allocated it.
    struct piece {
        int allocation = none;  ///< the step that made it
        int stream = none;      ///< the stream that allocated it
        bool dropped = false;
        std::size_t nodes = 0;  ///< that there were when it was dropped
        step_set past;          ///< what the drop is ordered after
    };
    /// By their numbers.
    [[nodiscard]] const std::map<int, piece>& memories() const noexcept { return memories_; }
    [[nodiscard]] const order_rules& rules() const noexcept { return rules_; }
    /// In the order of `add`.
    [[nodiscard]] const std::vector<node>& nodes() const noexcept { return nodes_; }
    /// The node of a step; null if the step has none.
    [[nodiscard]] const node* find(int number) const noexcept;

    /// What an operation that `thread` put into a stream now would come after, accesses aside.
    [[nodiscard]] step_set tail(int stream, std::size_t thread) const;
    /// What `thread` knows to be over.
    [[nodiscard]] const step_set& host(std::size_t thread) const noexcept { return host_[thread]; }
    /// All that the earlier accesses come after, they included, that conflict with `touches` and that Weir orders. What
    /// other threads do in the same phase is left out: nobody knows which comes first.
    [[nodiscard]] step_set conflicts(const std::vector<touch>& touches, std::size_t thread) const;
    /// What an operation would come after, put into a stream that comes after `tail` already.
    [[nodiscard]] step_set past_of(const step& one, std::size_t thread, const step_set& tail) const;
    /// What a host step would block on.
    [[nodiscard]] step_set waited_for(const step& one, std::size_t thread) const;
    /// The past of the event in a slot, as far as the model knows it.
    [[nodiscard]] step_set event(int slot) const;

private:
    struct stream_state {
        std::array<step_set, most_threads> tail;
        int device = none;  ///< none: it is the default stream of the device of its number
    };
    [[nodiscard]] int device_of(int stream) const;
    void add_node(const step& one, std::size_t thread, const step_set& tail, bool on_host);

    order_rules rules_;
    int phase_ = 0;
    std::vector<node> nodes_;
    std::map<int, piece> memories_;
    std::array<int, most_steps> index_ = make_index();
    std::map<int, stream_state> streams_;
    std::map<int, step_set> events_;
    std::map<int, step_set> former_;  ///< by memory: what was done to memory that was dropped before it was made
    step_set dropped_;
    std::array<step_set, most_threads> host_;

    static std::array<int, most_steps> make_index() {
        std::array<int, most_steps> index{};
        index.fill(none);
        return index;
    }
};

/// Two accesses that nothing orders, the one enqueued first first.
struct unordered_pair {
    int first = none;
    int second = none;
    bool certain = false;  ///< some byte of the overlap was touched by no access in between that orders itself after it
    friend auto operator<=>(const unordered_pair&, const unordered_pair&) = default;
};

/// All accesses to memory of which the drop is not ordered after them: each with the step that allocated the memory.
[[nodiscard]] std::vector<unordered_pair> unordered_drops(const order_model& model);

/// All pairs of an access to dropped memory, not ordered before the drop, and an access to what is in its place, not ordered
/// after it. `address_of(step)`: the address of the memory that a step allocated, in elements.
[[nodiscard]] std::vector<unordered_pair> early_reuses(const order_model& model,
                                                       const std::function<std::int64_t(int)>& address_of);

/// All pairs of conflicting accesses of which the second is not ordered after the first.
[[nodiscard]] std::vector<unordered_pair> unordered_pairs(const order_model& model);

}  // namespace random_programs
