// Checks small models of algorithms without locks: visits every interleaving of their atomic steps.
//
// A model says for each state which steps each thread can make next. The checker visits every reachable state once. It
// finds states in which something is wrong, in which threads are stuck, or from which no end can be reached any more.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace weir::test::model {

/// The steps that are possible in a state, each with the state that it leads to.
template <class State>
class moves {
public:
    /// The thread can make this step. `name` lives as long as the program.
    void add(std::size_t thread, const char* name, State next) { all_.push_back({thread, name, std::move(next)}); }

    struct move {
        std::size_t thread;
        const char* name;
        State next;
    };
    [[nodiscard]] const std::vector<move>& all() const noexcept { return all_; }

private:
    std::vector<move> all_;
};

/// What the checker found.
struct verdict {
    std::string wrong;  ///< empty if nothing is wrong
    std::string way;    ///< the steps that lead there
    std::size_t states = 0;
};

/// No model here has that many states: one that does has a mistake, or is too large for a test.
inline constexpr std::size_t most_states = 200'000;

/// Checks a model:
///     State first() const;                              where it begins; ordered by <
///     void steps(const State&, moves<State>&) const;    all that the threads can do next
///     const char* wrong(const State&) const;            what must never be; null if all is right
///     const char* wrong_at_the_end(const State&) const; the same where no thread can do anything any more
template <class Model>
class checker {
    using state = decltype(std::declval<const Model&>().first());
    struct seen {
        std::size_t before = 0;
        std::size_t thread = 0;
        const char* step = nullptr;  ///< null: the first state
        bool can_end = false;
        std::vector<std::size_t> from{};
    };

public:
    explicit checker(const Model& model) : model_(model) {}

    [[nodiscard]] verdict check() {
        add(model_.first(), {});
        for (std::size_t next = 0; next < states_.size(); ++next) {
            const state at = *states_[next];
            if (const char* const wrong = model_.wrong(at)) {
                return tell(wrong, next);
            }
            moves<state> possible;
            model_.steps(at, possible);
            if (possible.all().empty()) {
                if (const char* const wrong = model_.wrong_at_the_end(at)) {
                    return tell(wrong, next);
                }
                seen_[next].can_end = true;
                ends_.push_back(next);
            }
            for (const auto& one : possible.all()) {
                const std::size_t to = add(one.next, {next, one.thread, one.name});
                seen_[to].from.push_back(next);
            }
            if (states_.size() > most_states) {
                return tell("there are too many states", next);
            }
        }
        return find_endless();
    }

private:
    std::size_t add(const state& one, seen how) {
        const auto [place, is_new] = numbers_.emplace(one, states_.size());
        if (is_new) {
            states_.push_back(&place->first);
            seen_.push_back(std::move(how));
        }
        return place->second;
    }

    /// Searches backwards from all ends: a state that is not reached cannot lead to an end.
    [[nodiscard]] verdict find_endless() {
        for (std::size_t next = 0; next < ends_.size(); ++next) {
            for (const std::size_t from : seen_[ends_[next]].from) {
                if (!seen_[from].can_end) {
                    seen_[from].can_end = true;
                    ends_.push_back(from);
                }
            }
        }
        const auto endless = std::find_if(seen_.begin(), seen_.end(), [](const seen& one) { return !one.can_end; });
        if (endless != seen_.end()) {
            return tell("the threads go on for ever", static_cast<std::size_t>(endless - seen_.begin()));
        }
        return {{}, {}, states_.size()};
    }

    [[nodiscard]] verdict tell(const char* wrong, std::size_t at) const {
        std::string way;
        for (; seen_[at].step != nullptr; at = seen_[at].before) {
            way = std::to_string(seen_[at].thread) + ": " + seen_[at].step + "\n" + way;
        }
        return {wrong, way, states_.size()};
    }

    const Model& model_;
    std::map<state, std::size_t> numbers_;
    std::vector<const state*> states_;
    std::vector<seen> seen_;
    std::vector<std::size_t> ends_;
};

template <class Model>
[[nodiscard]] verdict check(const Model& model) {
    return checker<Model>(model).check();
}

/// Memory as processors of the x86 family show it (TSO): a plain write of a thread waits in a buffer of that thread, from which writes
/// reach the memory in order, some time later; the thread itself reads them at once. An atomic exchange, a sequentially consistent
/// write and a full fence empty the thread's buffer first. Weaker orders concern only the compiler.
template <std::size_t Threads, std::size_t Variables>
class buffered_memory {
public:
    using number = std::uint8_t;

    [[nodiscard]] number load(std::size_t thread, std::size_t variable) const {
        number found = values_[variable];
        for (std::size_t i = 0; i < used_[thread]; ++i) {
            const write& one = buffers_[thread][i];
            found = one.variable == variable ? one.value : found;
        }
        return found;
    }
    /// The value that all threads see.
    [[nodiscard]] number in_memory(std::size_t variable) const { return values_[variable]; }

    /// A plain write. There must be room.
    void store(std::size_t thread, std::size_t variable, number value) {
        buffers_[thread].at(used_[thread]) = {static_cast<number>(variable), value};
        ++used_[thread];
    }
    void fence(std::size_t thread) {
        while (!is_drained(thread)) {
            drain_one(thread);
        }
    }
    void store_at_once(std::size_t thread, std::size_t variable, number value) {
        fence(thread);
        values_[variable] = value;
    }
    number exchange(std::size_t thread, std::size_t variable, number value) {
        fence(thread);
        return std::exchange(values_[variable], value);
    }
    number add(std::size_t thread, std::size_t variable, int more) {
        fence(thread);
        const number before = values_[variable];
        values_[variable] = static_cast<number>(before + more);
        return before;
    }
    /// membarrier(2): a fence in each thread of the process.
    void barrier() {
        for (std::size_t thread = 0; thread < Threads; ++thread) {
            fence(thread);
        }
    }

    [[nodiscard]] bool is_drained(std::size_t thread) const { return used_[thread] == 0; }
    /// The oldest write of the thread's reaches the memory.
    void drain_one(std::size_t thread) {
        auto& buffer = buffers_[thread];
        values_[buffer.front().variable] = buffer.front().value;
        std::move(buffer.begin() + 1, buffer.end(), buffer.begin());
        buffer.back() = {};
        --used_[thread];
    }

    auto operator<=>(const buffered_memory&) const = default;

private:
    struct write {
        number variable = 0;
        number value = 0;
        auto operator<=>(const write&) const = default;
    };
    static constexpr std::size_t room = 4;

    std::array<number, Variables> values_{};
    std::array<std::array<write, room>, Threads> buffers_{};
    std::array<number, Threads> used_{};
};

}  // namespace weir::test::model
