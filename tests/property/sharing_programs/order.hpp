#pragma once

#include <bitset>
#include <map>
#include <vector>

namespace sharing_programs {

inline constexpr int most_steps = 256;
inline constexpr int none = -1;

/// One access of a step: to all of an allocation.
struct access {
    int memory = none;
    bool write = false;
    bool manual = false;  ///< the program orders it itself
    int queue = none;     ///< the current queue of the package that shares the memory
};

/// Two accesses that nothing orders; the one enqueued first comes first.
struct unordered_pair {
    int first = none;
    int second = none;
    bool certain = false;  ///< no access in between, ordered after the first, stands for it
};

/// Which order counts.
enum class counted : char {
    all,  ///< what Weir orders, and what the program does itself
    own,  ///< what the program does itself
};

/// What comes after what, as far as Weir can see it, computed the slow way: for each step the set of all steps before it.
/// Agents are streams and queues of libraries. What libraries put into their queues, and how they order it, is not part
/// of it. Steps are added in the order of the program, which has one thread. Shares nothing with the engine.
class order {
public:
    explicit order(counted what) : counted_(what) {}

    /// An operation in `stream`. For the shared memory that is left to Weir, it comes after what is in the current queues of the packages,
    /// and what comes there later comes after it (rules X6, X7).
    void operation(int step, int stream, const std::vector<access>& touches);
    /// The host reads or changes memory.
    void host_access(int step, const access& touch);
    /// The program makes agent `who` wait for everything in agent `whom`.
    void wait(int who, int whom) { tails_[who] |= tails_[whom] | host_; }
    void host_waits(int whom) { host_ |= tails_[whom]; }
    /// A package has used the memory up to now on a queue.
    void used_on(int memory, int queue) { used_[memory] |= tails_[queue]; }

    /// All pairs of conflicting accesses of which the second is not ordered after the first.
    [[nodiscard]] std::vector<unordered_pair> pairs() const;

private:
    using step_set = std::bitset<most_steps>;
    struct node {
        int step;
        bool on_host;
        std::vector<access> touches;
        step_set past;  ///< itself included
    };
    static std::size_t bit(int step) noexcept { return static_cast<std::size_t>(step); }
    /// What Weir makes an access come after.
    [[nodiscard]] step_set ordered_by_weir(const access& touch) const;
    [[nodiscard]] bool counts(const access& touch) const noexcept { return counted_ == counted::all && !touch.manual; }
    [[nodiscard]] bool is_replaced(std::size_t first, std::size_t second, int memory, bool write) const;

    counted counted_;
    std::vector<node> nodes_;
    std::map<int, step_set> tails_;  ///< by agent
    std::map<int, step_set> used_;   ///< by memory
    step_set host_;
};

}  // namespace sharing_programs
