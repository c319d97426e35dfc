// Histories and plans where a hundred streams and more use one resource, against a list of all accesses ever made: which waits are
// sufficient, and which are not needed (rules O1, O2, O3).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "order/history.hpp"
#include "order/plan.hpp"
#include "order/sequencer.hpp"
#include "order_support.hpp"

namespace weir::order::test {
namespace {

constexpr std::uint64_t size = 1000;
const footprint whole{0, size};

/// An operation, and by its index everything that it is ordered after.
struct happened {
    point at;
    footprint where;
    access_mode mode;
    std::map<timeline_id, epoch> after;
};

/// Many streams that use one resource, and the plain list of their accesses.
class many_streams {
public:
    explicit many_streams(timeline_id count, unsigned seed) : random_(seed), completed_(count, 0) {
        for (timeline_id i = 0; i < count; ++i) {
            streams_.emplace_back(i);
        }
    }

    std::uint64_t random(std::uint64_t below) { return random_() % below; }

    /// One access, as the runtime makes it; checks its waits.
    void access(timeline_id by, const footprint& where, access_mode mode, bool exact) {
        sequencer& stream = streams_[by];
        plan waits = stream.next(completed_, evidence_);
        history_.require(waits, where, mode, true);
        waits.resolve();
        std::map<timeline_id, epoch> after = known_[by];
        after[by] = stream.tail();
        for (const wait& one : waits.waits()) {
            merge(after, one.target.at);
            merge(after, operation(one.target.at).after);
        }
        std::vector<point> needed;
        for (const happened& past : all_) {
            const bool conflict = (mode == access_mode::write || past.mode == access_mode::write) &&
                                  past.where.begin < where.end && where.begin < past.where.end;
            if (conflict && !completed_.is_complete(past.at)) {
                EXPECT_GE(after[past.at.timeline], past.at.at) << "enough";
                needed.push_back(past.at);
            }
        }
        for (const wait& one : waits.waits()) {
            const point at = one.target.at;
            const bool implied = std::any_of(waits.waits().begin(), waits.waits().end(), [&](const wait& other) {
                return other.target.at.timeline != at.timeline &&
                       operation(other.target.at).after[at.timeline] >= at.at;
            });
            EXPECT_FALSE(implied || known_[by][at.timeline] >= at.at) << "not twice";
            EXPECT_TRUE(!exact || std::find(needed.begin(), needed.end(), at) != needed.end()) << "not needed";
        }
        if (evidence_) {
            EXPECT_TRUE(waits.waits().size() > 0 || needed.empty() || !waits.elisions().empty());
        }
        most_waits_ = std::max(most_waits_, waits.waits().size());
        history_.reserve(1);
        const mark end = stream.reserve(waits.clock_after());
        const std::size_t over = kept_although_over(by);
        history_.record(where, mode, end, completed_);
        forgotten_by_reads_ += mode == access_mode::read ? over - kept_although_over(by) : 0;
        all_.push_back({end.at, where, mode, after});
        known_[by] = after;
        EXPECT_LE(history_.accesses().size(), history::bound + 2 * streams_.size());
    }

    /// Completes everything up to a recent operation of a stream, with everything before it.
    void complete_some() {
        const happened& until = all_[all_.size() - 1 - random(std::min<std::uint64_t>(all_.size(), 50))];
        for (const auto& [timeline, at] : until.after) {
            completed_.set(timeline, at);
        }
        completed_.set(until.at.timeline, until.at.at);
    }

    void keep_evidence(bool keep) { evidence_ = keep; }
    /// Accesses of other streams that the history keeps although they are complete.
    [[nodiscard]] std::size_t kept_although_over(timeline_id of_others_than) const {
        return static_cast<std::size_t>(
            std::count_if(history_.accesses().begin(), history_.accesses().end(), [&](const past_access& past) {
                return past.when.at.timeline != of_others_than && completed_.is_complete(past.when.at);
            }));
    }
    /// How many accesses of other streams were gone when a read was recorded. A read covers none of these: they were complete.
    [[nodiscard]] std::size_t forgotten_by_reads() const noexcept { return forgotten_by_reads_; }
    [[nodiscard]] std::size_t most_waits() const noexcept { return most_waits_; }
    [[nodiscard]] const history& past() const noexcept { return history_; }

    /// The memory is dropped: what is left of its history implies everything that was not complete.
    void die() {
        history_.die(size, completed_);
        std::map<timeline_id, epoch> after;
        for (const past_access& left : history_.accesses()) {
            EXPECT_TRUE(left.former_owner);
            EXPECT_EQ(left.mode, access_mode::write);
            merge(after, left.when.at);
            merge(after, operation(left.when.at).after);
            for (const past_access& other : history_.accesses()) {
                EXPECT_TRUE(&other == &left || operation(other.when.at).after[left.when.at.timeline] < left.when.at.at)
                    << "reduced";
            }
        }
        for (const happened& past : all_) {
            EXPECT_TRUE(completed_.is_complete(past.at) || after[past.at.timeline] >= past.at.at);
        }
    }

private:
    static void merge(std::map<timeline_id, epoch>& into, const point& p) {
        epoch& there = into[p.timeline];
        there = std::max(there, p.at);
    }
    static void merge(std::map<timeline_id, epoch>& into, const std::map<timeline_id, epoch>& other) {
        for (const auto& [timeline, at] : other) {
            merge(into, {timeline, at});
        }
    }
    happened& operation(const point& at) {
        return *std::find_if(all_.begin(), all_.end(), [&](const happened& one) { return one.at == at; });
    }

    /// Watermarks that only rise.
    class rising final : public watermarks {
    public:
        explicit rising(timeline_id count, epoch at) : at_(count, at) {}
        [[nodiscard]] epoch completed(timeline_id timeline) const noexcept override { return at_[timeline]; }
        void set(timeline_id timeline, epoch at) { at_[timeline] = std::max(at_[timeline], at); }

    private:
        std::vector<epoch> at_;
    };

    std::mt19937_64 random_;
    std::vector<sequencer> streams_;
    rising completed_;
    history history_;
    std::vector<happened> all_;
    std::map<timeline_id, std::map<timeline_id, epoch>> known_;
    std::size_t most_waits_ = 0;
    std::size_t forgotten_by_reads_ = 0;
    bool evidence_ = false;
};

constexpr timeline_id streams = 3 * history::bound;

TEST(ManyStreams, ReadsOfAllAndNowAndThenAWrite) {
    for (const bool evidence : {false, true}) {
        many_streams world(streams, 1);
        world.keep_evidence(evidence);
        for (int i = 0; i < 1200; ++i) {
            const auto by = static_cast<timeline_id>(world.random(streams));
            world.access(by, whole, world.random(300) == 0 ? access_mode::write : access_mode::read, true);
        }
        EXPECT_GT(world.most_waits(), 16U);
        EXPECT_EQ(world.forgotten_by_reads(), 0U) << "nothing is over";
        world.die();
    }
}

TEST(ManyStreams, WhatIsOverIsForgottenOnTheWay) {
    many_streams world(streams, 2);
    for (int i = 0; i < 1200; ++i) {
        const auto by = static_cast<timeline_id>(world.random(streams));
        world.access(by, whole, world.random(100) == 0 ? access_mode::write : access_mode::read, true);
        if (i % 20 == 19) {
            world.complete_some();
        }
    }
    EXPECT_GT(world.forgotten_by_reads(), 20U);
    world.die();
}

TEST(ManyStreams, ReadsAndWritesOfParts) {
    many_streams world(streams, 3);
    for (int i = 0; i < 1200; ++i) {
        const auto by = static_cast<timeline_id>(world.random(streams));
        const std::uint64_t begin = world.random(size);
        const footprint part{begin, begin + 1 + world.random(size - begin)};
        world.access(by, part, world.random(8) == 0 ? access_mode::write : access_mode::read, false);
        if (i % 50 == 49) {
            world.complete_some();
        }
    }
    world.die();
}

TEST(ManyStreams, OneChunkOfMemoryHandedOnThroughAllOfThem) {
    many_streams world(streams, 4);
    for (int round = 0; round < 3; ++round) {
        for (timeline_id by = 0; by < streams; ++by) {
            world.access(by, whole, access_mode::write, true);
        }
    }
    EXPECT_EQ(world.most_waits(), 1U);
    EXPECT_EQ(world.past().accesses().size(), 1U);
    world.die();
}

TEST(ManyStreams, AllWriteWhatIsTheirsAndOneReadsEverything) {
    many_streams world(streams, 5);
    for (int round = 0; round < 3; ++round) {
        for (timeline_id by = 0; by < streams; ++by) {
            world.access(by, {std::uint64_t{5} * by, std::uint64_t{5} * by + 5}, access_mode::write, true);
        }
        world.access(7, whole, access_mode::read, true);
    }
    EXPECT_EQ(world.most_waits(), streams - 1);
}

}  // namespace
}  // namespace weir::order::test
