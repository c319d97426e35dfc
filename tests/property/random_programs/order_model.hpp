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

/// The order in a program, computed the slow way: for each step the set of all steps that it comes after.
/// Shares nothing with the engine. Steps are added in the order of `complete`. In a phase of several threads the model contains only
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
        step_set past;  ///< everything that it is ordered after; itself included
        step_set tail;  ///< what its stream was ordered after before it; the host's past included
    };
    /// One allocation. Its end counts as a free on the stream that allocated it.
    struct chunk {
        int allocation = none;  ///< the step that made it
        int stream = none;      ///< the stream that allocated it
        bool dropped = false;
        std::size_t nodes = 0;  ///< how many there were when it was dropped
        step_set past;          ///< what the drop is ordered after
    };
    /// By their numbers.
    [[nodiscard]] const std::map<int, chunk>& memories() const noexcept { return memories_; }
    [[nodiscard]] const order_rules& rules() const noexcept { return rules_; }
    /// In the order of `add`.
    [[nodiscard]] const std::vector<node>& nodes() const noexcept { return nodes_; }
    /// The node of a step; null if the step has none.
    [[nodiscard]] const node* find(int number) const noexcept;

    /// The operations that an operation put into a stream by `thread` now would come after, apart from its accesses.
    [[nodiscard]] step_set tail(int stream, std::size_t thread) const;
    /// The operations that `thread` knows to be complete.
    [[nodiscard]] const step_set& host(std::size_t thread) const noexcept { return host_[thread]; }
    /// Everything that the earlier accesses come after, they included, that conflict with `touches` and that Weir orders. Accesses of
    /// other threads in the same phase are left out: their order is not known.
    [[nodiscard]] step_set conflicts(const std::vector<touch>& touches, std::size_t thread) const;
    /// The operations that an operation would come after, put into a stream that comes after `tail` already.
    [[nodiscard]] step_set past_of(const step& one, std::size_t thread, const step_set& tail) const;
    /// The operations that a host step would block on.
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
    std::map<int, chunk> memories_;
    std::array<int, most_steps> index_ = make_index();
    std::map<int, stream_state> streams_;
    std::map<int, step_set> events_;
    std::map<int, step_set> former_;  ///< by memory: the accesses to memory that was dropped before it was made
    step_set dropped_;
    std::array<step_set, most_threads> host_;

    static std::array<int, most_steps> make_index() {
        std::array<int, most_steps> index{};
        index.fill(none);
        return index;
    }
};

/// Two accesses that nothing orders; the one enqueued first comes first.
struct unordered_pair {
    int first = none;
    int second = none;
    bool certain =
        false;  ///< on some byte of the overlap there is no access in between that is ordered after the first
    friend auto operator<=>(const unordered_pair&, const unordered_pair&) = default;
};

/// All accesses to memory that the drop is not ordered after, each with the step that allocated the memory.
[[nodiscard]] std::vector<unordered_pair> unordered_drops(const order_model& model);

/// All pairs of an access to dropped memory, not ordered before the drop, and an access to the memory in its place, not ordered
/// after it. `address_of(step)`: the address of the memory that a step allocated, in elements.
[[nodiscard]] std::vector<unordered_pair> early_reuses(const order_model& model,
                                                       const std::function<std::int64_t(int)>& address_of);

/// All pairs of conflicting accesses of which the second is not ordered after the first.
[[nodiscard]] std::vector<unordered_pair> unordered_pairs(const order_model& model);

}  // namespace random_programs
