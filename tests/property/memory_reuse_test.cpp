// Random programs on the pool, compared with brute force (rule L1): the accesses of a new owner of memory come after all accesses
// that earlier owners made to the same bytes; with manual ordering, its writes do.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "memory/pool.hpp"
#include "order/sequencer.hpp"
#include "order_settings.hpp"
#include "support/fake_driver.hpp"

namespace weir::memory {
namespace {

using frontiers::epoch;
using frontiers::point;
using frontiers::timeline_id;

constexpr timeline_id streams = 4;

/// One operation as it really runs: what it comes after, from the waits that were issued alone.
struct operation {
    point at;
    std::vector<bool> after;  ///< by number of operation
    bool over = false;
};

/// An access to a granule of memory.
struct access {
    std::size_t operation = 0;
    std::uint64_t owner = 0;
};

class program final : private order::watermarks {
public:
    /// With `forgets`, the control: the pool's blocks forget all but the accesses of the stream that they were handed
    /// out for, as memory that is freed on the allocating stream does.
    program(std::uint64_t seed, bool forgets) : random_(seed), forgets_(forgets) {
        for (timeline_id line = 0; line < streams; ++line) {
            sequences_.emplace_back(line);
        }
        pool_.set_limit(granule << (3 + random_() % 5));
    }
    ~program() {
        for (block* b : live_) {
            pool_.put(*b);
        }
    }
    program(const program&) = delete;
    program& operator=(const program&) = delete;

    /// Runs the program. Returns what went wrong; nothing if all is right.
    std::string run() {
        for (int step = 0; step < 120 && wrong_.empty(); ++step) {
            switch (random_() % 8) {
                case 0:
                case 1:
                    allocate(any_stream());
                    break;
                case 2:
                    drop();
                    break;
                case 3:
                    if (!operations_.empty()) {
                        complete(random_() % operations_.size());
                    }
                    break;
                case 4:
                    wait(any_stream(), any_stream());
                    break;
                default:
                    use(any_stream());
            }
        }
        return wrong_;
    }

private:
    [[nodiscard]] epoch completed(timeline_id line) const noexcept override { return completed_[line]; }
    timeline_id any_stream() { return static_cast<timeline_id>(random_() % streams); }

    void allocate(timeline_id line) {
        const std::size_t bytes = 1 + random_() % (granule * 6);
        block* b = pool_.take_recent(bytes, line);
        while (b == nullptr) {
            const pool::answer answer = pool_.take(bytes, {line, sequences_[line].known()});
            b = answer.taken;
            if (b == nullptr && !answer.wait_for) {
                return;  // out of memory
            }
            if (b == nullptr) {
                complete(number_[*answer.wait_for]);
            }
        }
        live_.push_back(b);
    }

    void drop() {
        if (live_.empty()) {
            return;
        }
        const std::size_t which = random_() % live_.size();
        block& b = *live_[which];
        live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(which));
        if (forgets_) {
            b.history.clear();
            b.history.reserve(1);
            b.history.record({0, b.capacity}, order::access_mode::write, sequences_[b.line].record(), *this);
        }
        pool_.put(b);
    }

    /// An operation on a part of one or two arrays.
    void use(timeline_id line) {
        if (live_.empty()) {
            return;
        }
        order::plan plan = sequences_[line].next(*this);
        struct part {
            block* of;
            order::footprint where;
            order::access_mode mode;
        };
        std::vector<part> parts;
        const bool hazards = random_() % 2 == 0;  // else the program should order its operations itself: it does not
        for (std::size_t i = 0; i <= random_() % 2; ++i) {
            block& b = *live_[random_() % live_.size()];
            const std::uint64_t begin = random_() % b.size();
            const std::uint64_t end = begin + 1 + random_() % (b.size() - begin);
            parts.push_back(
                {&b, {begin, end}, random_() % 2 == 0 ? order::access_mode::read : order::access_mode::write});
            b.history.require(plan, parts.back().where, parts.back().mode, hazards);
        }
        const order::mark end = issue(line, plan);
        const std::size_t number = operations_.size() - 1;
        for (const part& one : parts) {
            one.of->history.reserve(2);
            one.of->history.record(one.where, one.mode, end, *this);
            touch(number, *one.of, one.where, hazards || one.mode == order::access_mode::write);
        }
    }

    void wait(timeline_id line, timeline_id other) {
        order::plan plan = sequences_[line].next(*this);
        const order::mark end = sequences_[other].record();
        plan.need(end, order::reason::dependency);
        if (line != other) {
            issue(line, plan);
        }
    }

    /// Enqueues an operation with the waits of `plan`, and records what it really comes after.
    order::mark issue(timeline_id line, order::plan& plan) {
        plan.resolve();
        operation made;
        made.after.resize(operations_.size() + 1);
        const auto comes_after = [&](point p) {
            const auto found = number_.find(p);
            if (found != number_.end()) {
                const operation& other = operations_[found->second];
                std::transform(other.after.begin(), other.after.end(), made.after.begin(), made.after.begin(),
                               std::logical_or<>());
                made.after[found->second] = true;
            }
        };
        comes_after(sequences_[line].record().at);
        for (const order::wait& one : plan.waits()) {
            comes_after(one.target.at);
        }
        const order::mark end = sequences_[line].reserve(plan.clock_after());
        made.at = end.at;
        number_[end.at] = operations_.size();
        operations_.push_back(std::move(made));
        return end;
    }

    /// Every other owner's access to these bytes must be complete or come before `number`, if `is_ordered`: a read that the program orders
    /// itself is left to the program, which orders it behind a write of the present owner.
    void touch(std::size_t number, const block& b, const order::footprint& where, bool is_ordered) {
        for (std::uint64_t i = where.begin / granule; i <= (where.end - 1) / granule; ++i) {
            std::vector<access>& accesses = memory_[b.address + i * granule];
            for (const access& past : accesses) {
                const operation& former = operations_[past.operation];
                if (is_ordered && past.owner != b.id() && !former.over && !operations_[number].after[past.operation]) {
                    wrong_ = "operation " + std::to_string(number) + " on stream " +
                             std::to_string(operations_[number].at.timeline) + " is not ordered after operation " +
                             std::to_string(past.operation) + " of a former owner, on stream " +
                             std::to_string(former.at.timeline);
                }
            }
            accesses.push_back({number, b.id()});
        }
    }

    /// The operation is complete, and so is everything that it came after.
    void complete(std::size_t number) {
        for (std::size_t i = 0; i <= number; ++i) {
            operation& one = operations_[i];
            if (i == number || operations_[number].after[i]) {
                one.over = true;
                completed_[one.at.timeline] = std::max(completed_[one.at.timeline], one.at.at);
            }
        }
    }

    struct before {
        bool operator()(const point& a, const point& b) const noexcept {
            return a.timeline != b.timeline ? a.timeline < b.timeline : a.at < b.at;
        }
    };

    std::mt19937_64 random_;
    bool forgets_;
    test::fake_driver driver_;
    epoch completed_[streams] = {};
    pool pool_{driver_, *this};
    std::vector<order::sequencer> sequences_;
    std::vector<operation> operations_;
    std::map<point, std::size_t, before> number_;
    std::map<const std::byte*, std::vector<access>> memory_;
    std::vector<block*> live_;
    std::string wrong_;
};

TEST(L1Programs, NoOwnerOvertakesAFormerOne) {
    order_test::for_each_seed(10, [](std::uint64_t seed) {
        const std::string wrong = program(seed, false).run();
        EXPECT_EQ(wrong, "") << order_test::replay(seed);
        return wrong.empty();
    });
}

TEST(L1Programs, ControlMemoryFreedOnTheAllocatingStreamIsReusedTooEarly) {
    int found = 0;
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        found += program(seed, true).run().empty() ? 0 : 1;
    }
    EXPECT_GT(found, 50);
}

}  // namespace
}  // namespace weir::memory
