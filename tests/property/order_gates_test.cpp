// Rule O7: events may be recorded late, but never behind a gate. All schedules of small random programs in which the host
// opens gates after it has waited for something: no schedule may get stuck that would end with events recorded in time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <random>
#include <set>
#include <vector>

#include "order/gates.hpp"
#include "order_settings.hpp"

namespace order_test {
namespace {

using weir::order::epoch;
using weir::order::gate_log;

struct place {
    int stream = 0;
    epoch at = 0;
};

struct host_step {
    enum what : std::uint8_t { enqueue, enqueue_gate, open, synchronize } what = enqueue;
    int stream = 0;            // the stream of an enqueued operation
    int gate = 0;              // which gate; gates are numbered in the order in which they appear
    std::vector<place> after;  // operations to wait for; those of the host if it synchronises
};

using host_program = std::vector<host_step>;

// A policy, right or wrong, for where events are recorded.
enum class policy : std::uint8_t {
    exact,           // each right behind its operation
    late,            // as the rule says
    behind_gates,    // at the tail, even behind gates
    blind_to_waits,  // operations that wait for a point behind a gate do not count as gates
};

// Runs all schedules of a program: the next step of the host or of a stream, in any order.
class machine {
public:
    machine(const host_program& program, int streams, policy how) : program_(program), how_(how) {
        start_.streams.resize(static_cast<std::size_t>(streams));
    }

    // Whether every schedule ends, and every operation comes after those that it waits for.
    bool sound() {
        visit(start_);
        return !stuck_ && !unordered_;
    }
    [[nodiscard]] bool stuck() const { return stuck_; }
    [[nodiscard]] bool recorded_late() const { return recorded_late_; }

private:
    struct operation {
        int gate = -1;
        bool noted = false;
        std::vector<place> wanted;
        std::vector<place> recorded;  // the places of the events that it waits for
    };
    struct one_stream {
        std::vector<operation> operations;
        epoch executed = 0;
    };
    struct state {
        std::size_t host = 0;
        bool waiting = false;  // the host's events are recorded
        std::vector<place> host_events;
        std::vector<one_stream> streams;
        unsigned open = 0;
    };

    static bool over(const state& s, const place& p) {
        return s.streams[static_cast<std::size_t>(p.stream)].executed >= p.at;
    }
    static bool all_over(const state& s, const std::vector<place>& places) {
        return std::all_of(places.begin(), places.end(), [&](const place& p) { return over(s, p); });
    }

    static gate_log gates_of(const one_stream& stream) {
        gate_log gates;
        for (std::size_t i = 0; i < stream.operations.size(); ++i) {
            if (stream.operations[i].noted) {
                gates.note(i + 1);
            }
        }
        gates.prune(stream.executed);
        return gates;
    }

    // The place of an event that is recorded now for what was enqueued earlier. (A backend that records late does so at
    // the latest just before it enqueues a gate.)
    place record(const state& s, const place& wanted) {
        const one_stream& stream = s.streams[static_cast<std::size_t>(wanted.stream)];
        const epoch tail = stream.operations.size();
        epoch at = wanted.at;
        if (how_ == policy::behind_gates) {
            at = tail;
        } else if (how_ != policy::exact) {
            at = gates_of(stream).latest_record(wanted.at, tail);
        }
        unordered_ = unordered_ || at < wanted.at;
        recorded_late_ = recorded_late_ || at > wanted.at;
        return {wanted.stream, at};
    }

    void enqueue(state& s, const host_step& step) {
        operation added;
        added.gate = step.what == host_step::enqueue_gate ? step.gate : -1;
        added.noted = added.gate >= 0;
        for (const place& wanted : step.after) {
            if (over(s, wanted)) {
                continue;
            }
            added.wanted.push_back(wanted);
            added.recorded.push_back(record(s, wanted));
            const auto& other = s.streams[static_cast<std::size_t>(wanted.stream)];
            added.noted = added.noted || (how_ != policy::blind_to_waits && gates_of(other).holds_back(wanted.at));
        }
        s.streams[static_cast<std::size_t>(step.stream)].operations.push_back(std::move(added));
    }

    bool host_can(state& s) {
        if (s.host == program_.size()) {
            return false;
        }
        const host_step& step = program_[s.host];
        if (step.what != host_step::synchronize) {
            return true;
        }
        if (!s.waiting) {  // the events are recorded when the host begins to wait
            s.waiting = true;
            for (const place& wanted : step.after) {
                if (!over(s, wanted)) {
                    s.host_events.push_back(record(s, wanted));
                }
            }
        }
        return all_over(s, s.host_events);
    }

    void host(state s) {
        const host_step& step = program_[s.host];
        if (step.what == host_step::open) {
            s.open |= 1U << step.gate;
        } else if (step.what != host_step::synchronize) {
            enqueue(s, step);
        }
        ++s.host;
        s.waiting = false;
        s.host_events.clear();
        visit(std::move(s));
    }

    void visit(state s) {
        if (stuck_ || unordered_) {
            return;
        }
        const bool host_goes_on = host_can(s);
        if (!visited_.insert(key(s)).second) {
            return;
        }
        bool end = s.host == program_.size();
        bool moved = host_goes_on;
        if (host_goes_on) {
            host(s);
        }
        for (std::size_t i = 0; i < s.streams.size(); ++i) {
            const one_stream& stream = s.streams[i];
            if (stream.executed == stream.operations.size()) {
                continue;
            }
            end = false;
            const operation& next = stream.operations[static_cast<std::size_t>(stream.executed)];
            const bool shut = next.gate >= 0 && (s.open >> next.gate & 1U) == 0;
            if (shut || !all_over(s, next.recorded)) {
                continue;
            }
            unordered_ = unordered_ || !all_over(s, next.wanted);
            moved = true;
            state then = s;
            ++then.streams[i].executed;
            visit(std::move(then));
        }
        stuck_ = stuck_ || (!moved && !end);
    }

    // A complete state: how far the host and the streams are, and where events were recorded.
    static std::vector<std::uint64_t> key(const state& s) {
        std::vector<std::uint64_t> text{s.host, s.open};
        const auto add = [&](const std::vector<place>& places) {
            text.push_back(places.size());
            for (const place& p : places) {
                text.push_back(static_cast<std::uint64_t>(p.stream));
                text.push_back(p.at);
            }
        };
        add(s.host_events);
        for (const one_stream& stream : s.streams) {
            text.push_back(stream.executed);
            text.push_back(stream.operations.size());
            for (const operation& each : stream.operations) {
                text.push_back(each.noted ? 1 : 0);
                add(each.recorded);
            }
        }
        return text;
    }

    const host_program& program_;
    policy how_;
    state start_;
    std::set<std::vector<std::uint64_t>> visited_;
    bool stuck_ = false;
    bool unordered_ = false;
    bool recorded_late_ = false;
};

constexpr int streams = 3;

host_program random_host_program(std::uint64_t seed) {
    std::mt19937_64 random{seed};
    const auto below = [&](std::uint64_t n) { return random() % n; };
    host_program made;
    std::vector<place> enqueued;
    std::vector<epoch> tails(streams, 0);
    int gates = 0;
    int opened = 0;
    for (std::uint64_t length = 4 + below(6); length > 0; --length) {
        host_step next;
        const auto roll = below(10);
        if (roll == 0 && opened < gates) {
            next.what = host_step::open;
            next.gate = opened++;
        } else if (roll <= 2 && !enqueued.empty()) {
            next.what = host_step::synchronize;
            next.after = {enqueued[below(enqueued.size())]};
        } else {
            next.what = roll <= 4 ? host_step::enqueue_gate : host_step::enqueue;
            next.gate = roll <= 4 ? gates++ : 0;
            next.stream = static_cast<int>(below(streams));
            if (!enqueued.empty() && below(2) == 0) {
                const place target = enqueued[below(enqueued.size())];
                if (target.stream != next.stream) {
                    next.after.push_back(target);
                }
            }
            enqueued.push_back({next.stream, ++tails[static_cast<std::size_t>(next.stream)]});
        }
        made.push_back(std::move(next));
    }
    for (; opened < gates; ++opened) {
        host_step last;
        last.what = host_step::open;
        last.gate = opened;
        made.push_back(last);
    }
    return made;
}

TEST(O7, RecordingLateNeverGetsStuck) {
    int programs = 0;
    int late = 0;
    int stuck_behind_gates = 0;
    int stuck_blind = 0;
    for_each_seed(5, [&](std::uint64_t seed) {
        const host_program p = random_host_program(seed);
        if (!machine{p, streams, policy::exact}.sound()) {
            return true;  // the program waits for a gate before it opens it
        }
        ++programs;
        machine as_the_rule_says{p, streams, policy::late};
        EXPECT_TRUE(as_the_rule_says.sound()) << replay(seed);
        late += as_the_rule_says.recorded_late() ? 1 : 0;
        machine behind{p, streams, policy::behind_gates};
        behind.sound();
        stuck_behind_gates += behind.stuck() ? 1 : 0;
        machine blind{p, streams, policy::blind_to_waits};
        blind.sound();
        stuck_blind += blind.stuck() ? 1 : 0;
        return !::testing::Test::HasFailure();
    });
    std::printf(
        "%d programs, in %d an event stands late; %d get stuck if events stand behind gates, %d if operations "
        "that wait for a gate do not count as gates\n",
        programs, late, stuck_behind_gates, stuck_blind);
    if (programs > 100) {
        EXPECT_GT(late, 0) << "otherwise nothing was tried";
        EXPECT_GT(stuck_behind_gates, 0) << "negative control";
        EXPECT_GT(stuck_blind, 0) << "negative control";
    }
}

}  // namespace
}  // namespace order_test
