// Histories: the pending accesses to one resource (rules O1, O3, O5).
#include "order/history.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "frontier/frontier.hpp"
#include "frontier/point.hpp"
#include "order/plan.hpp"
#include "order/sequencer.hpp"
#include "order/short_plan.hpp"
#include "order_support.hpp"
#include "weir/detail/intrusive.hpp"

namespace weir::order::test {
namespace {

const footprint whole{0, 100};
const footprint left{0, 50};
const footprint right{50, 100};

// One resource, and the waits that the next access of timeline 9, which is ordered after nothing, would need.
struct tracked {
    void record(const footprint& where, access_mode mode, const mark& when) {
        past.reserve(1);
        past.record(where, mode, when, completed);
    }
    void write(const footprint& where, const mark& when) { record(where, access_mode::write, when); }
    void read(const footprint& where, const mark& when) { record(where, access_mode::read, when); }

    std::vector<wait> needed(const footprint& where, access_mode mode, bool hazards = true) {
        plan p{9, 0, nothing, completed, false};
        past.require(p, where, mode, hazards);
        p.resolve();
        return {p.waits().begin(), p.waits().end()};
    }
    std::vector<wait> to_read(const footprint& where) { return needed(where, access_mode::read); }
    std::vector<wait> to_write(const footprint& where) { return needed(where, access_mode::write); }

    history past;
    set_watermarks completed;
    const clock nothing{};
};

TEST(O1, ReadAfterWrite) {
    tracked memory;
    memory.write(whole, mark_at(1, 1));
    const auto waits = memory.to_read(whole);
    ASSERT_EQ(waits.size(), 1U);
    EXPECT_EQ(waits[0].target.at, (point{1, 1}));
    EXPECT_EQ(waits[0].why, reason::read_after_write);
}

TEST(O1, WriteAfterRead) {
    tracked memory;
    memory.read(whole, mark_at(1, 1));
    const auto waits = memory.to_write(whole);
    ASSERT_EQ(waits.size(), 1U);
    EXPECT_EQ(waits[0].why, reason::write_after_read);
}

TEST(O1, WriteAfterWrite) {
    tracked memory;
    memory.write(whole, mark_at(1, 1));
    const auto waits = memory.to_write(whole);
    ASSERT_EQ(waits.size(), 1U);
    EXPECT_EQ(waits[0].why, reason::write_after_write);
}

TEST(O1, ReadsDoNotOrderReads) {
    tracked memory;
    memory.read(whole, mark_at(1, 1));
    EXPECT_TRUE(memory.to_read(whole).empty());
}

TEST(O1, AWriteWaitsForAllReadsSinceTheLastWrite) {
    tracked memory;
    memory.write(whole, mark_at(1, 1));
    memory.read(whole, mark_at(2, 1, {{1, 1}}));
    memory.read(whole, mark_at(3, 1, {{1, 1}}));
    EXPECT_EQ(memory.to_write(whole).size(), 2U) << "the write is implied by either read";
    EXPECT_EQ(memory.to_read(whole).size(), 1U) << "a read waits for the write alone";
}

TEST(O3, DisjointRangesDoNotOrderEachOther) {
    tracked memory;
    memory.write(left, mark_at(1, 1));
    EXPECT_TRUE(memory.to_write(right).empty());
    EXPECT_EQ(memory.to_write({49, 51}).size(), 1U);
}

TEST(O3, EmptyAccessesTouchNothing) {
    tracked memory;
    memory.write({30, 30}, mark_at(1, 1));
    EXPECT_TRUE(memory.past.empty());
    memory.write(whole, mark_at(1, 2));
    EXPECT_TRUE(memory.to_write({30, 30}).empty());
    EXPECT_TRUE(memory.to_write({40, 30}).empty());
}

TEST(O3, AnOrderedCoveringWriteDropsWhatItCovers) {
    tracked memory;
    memory.write(left, mark_at(1, 1));
    memory.read(right, mark_at(2, 1));
    memory.write(whole, mark_at(3, 1, {{1, 1}, {2, 1}}));
    ASSERT_EQ(memory.past.accesses().size(), 1U);
    EXPECT_EQ(memory.past.accesses()[0].when.at, (point{3, 1}));
}

TEST(O3, AnUnorderedCoveringWriteDropsNothing) {
    tracked memory;
    memory.write(whole, mark_at(1, 2));
    memory.write(whole, mark_at(2, 1, {{1, 1}}));
    EXPECT_EQ(memory.past.accesses().size(), 2U);
    EXPECT_EQ(memory.to_write(whole).size(), 2U);
}

TEST(O3, ACoveringWriteDropsOnlyWhatItIsOrderedAfter) {
    tracked memory;
    memory.write(whole, mark_at(1, 1));
    memory.read(whole, mark_at(2, 1));
    memory.write(whole, mark_at(3, 1, {{1, 1}}));
    EXPECT_EQ(memory.past.accesses().size(), 2U);
    EXPECT_EQ(memory.to_write(whole).size(), 2U) << "the read and the second write";
}

TEST(O3, ACoveringWriteDropsWhatIsComplete) {
    tracked memory;
    memory.write(whole, mark_at(1, 1));
    memory.completed.set(1, 1);
    memory.write(whole, mark_at(2, 1));
    EXPECT_EQ(memory.past.accesses().size(), 1U);
}

TEST(O3, AReadDropsAnEarlierReadThatItCovers) {
    tracked memory;
    memory.read(left, mark_at(1, 1));
    memory.read(whole, mark_at(1, 2));
    ASSERT_EQ(memory.past.accesses().size(), 1U);
    EXPECT_EQ(memory.past.accesses()[0].when.at, (point{1, 2}));
}

TEST(O3, AReadDropsNeitherWritesNorUnorderedReads) {
    tracked memory;
    memory.write(whole, mark_at(1, 1));
    memory.read(whole, mark_at(2, 1, {{1, 1}}));
    memory.read(whole, mark_at(3, 1, {{1, 1}}));
    EXPECT_EQ(memory.past.accesses().size(), 3U);
}

// Else the next reader would wait for the read.
TEST(O3, AReadDoesNotStandForTheWriteBeforeItOfItsOwnStream) {
    tracked memory;
    memory.write(whole, mark_at(1, 1));
    memory.read(whole, mark_at(1, 2));
    ASSERT_EQ(memory.to_read(whole).size(), 1U);
    EXPECT_EQ(memory.to_read(whole)[0].target.at, (point{1, 1}));
    ASSERT_EQ(memory.to_write(whole).size(), 1U);
    EXPECT_EQ(memory.to_write(whole)[0].target.at, (point{1, 2}));
}

TEST(O3, OfManyReadsThoseThatALaterOneIsOrderedAfterAreForgotten) {
    constexpr timeline_id many = 12;
    tracked memory;
    memory.write(whole, mark_at(1, 1));
    frontier all;
    for (timeline_id reader = 20; reader < 20 + many; ++reader) {
        memory.read(whole, mark_at(reader, 1, {{1, 1}}));
        all.merge(point{reader, 1});
    }
    ASSERT_EQ(memory.past.accesses().size(), 1U + many);
    memory.read(whole, {{50, 1}, make_clock(all)});
    ASSERT_EQ(memory.past.accesses().size(), 2U);
    EXPECT_EQ(memory.past.accesses()[0].when.at, (point{1, 1}));
    EXPECT_EQ(memory.past.accesses()[1].when.at, (point{50, 1}));
}

TEST(O3, PartialOverlapKeepsBoth) {
    tracked memory;
    memory.write(whole, mark_at(1, 1));
    memory.write(left, mark_at(2, 1, {{1, 1}}));
    EXPECT_EQ(memory.past.accesses().size(), 2U);
    EXPECT_EQ(memory.to_write(right)[0].target.at, (point{1, 1}));
    ASSERT_EQ(memory.to_write(left).size(), 1U);
    EXPECT_EQ(memory.to_write(left)[0].target.at, (point{2, 1}));
}

TEST(O3, AReadThatIsOverwrittenInPlaceBecomesTheWrite) {
    tracked memory;
    memory.read(whole, mark_at(1, 1, {{2, 7}}));
    memory.write(whole, mark_at(1, 2, {{2, 8}}));
    ASSERT_EQ(memory.past.accesses().size(), 1U);
    const past_access& kept = memory.past.accesses()[0];
    EXPECT_EQ(kept.mode, access_mode::write);
    EXPECT_EQ(kept.when.at, (point{1, 2}));
    EXPECT_TRUE(kept.when.known->covers({2, 8})) << "with the clock of the later access";
}

TEST(O3, OneStreamAndOneRangeKeepOneAccess) {
    tracked memory;
    for (epoch at = 1; at <= 1000; ++at) {
        memory.write(whole, mark_at(1, at));
    }
    EXPECT_EQ(memory.past.accesses().size(), 1U);
}

TEST(O3, BeyondTheBoundAccessesOfATimelineMerge) {
    tracked memory;
    for (epoch at = 1; at <= 10 * history::bound; ++at) {
        memory.write({10 * at, 10 * at + 5}, mark_at(1 + static_cast<timeline_id>(at % 2), at));
        EXPECT_LE(memory.past.accesses().size(), history::bound);
    }
}

TEST(O3, MergingIsConservative) {
    tracked memory;
    // Every write has a range of its own and stays ordered before each access to that range, at its point or later.
    const epoch last = 3 * history::bound;
    for (epoch at = 1; at <= last; ++at) {
        memory.write({10 * at, 10 * at + 5}, mark_at(1, at));
    }
    for (epoch at = 1; at <= last; ++at) {
        const auto waits = memory.to_read({10 * at, 10 * at + 1});
        ASSERT_EQ(waits.size(), 1U);
        EXPECT_GE(waits[0].target.at.at, at);
    }
}

TEST(O3, AWriteDoesNotMergeWithReads) {
    tracked memory;
    for (epoch at = 1; at <= history::bound; ++at) {
        memory.read({10 * at, 10 * at + 5}, mark_at(1, at));
    }
    const footprint written{10'000, 10'005};
    memory.write(written, mark_at(1, history::bound + 1));
    EXPECT_EQ(memory.past.accesses().size(), history::bound + 1);
    EXPECT_EQ(memory.past.accesses()[0].mode, access_mode::write) << "writes come first";
    ASSERT_EQ(memory.to_read(written).size(), 1U);
    EXPECT_EQ(memory.to_read(written)[0].target.at, (point{1, history::bound + 1}));
}

TEST(O3, AtTheBoundWhatIsCompleteGoesBeforeAnythingMerges) {
    tracked memory;
    for (epoch at = 1; at <= history::bound; ++at) {
        memory.write({10 * at, 10 * at + 5}, mark_at(1, at));
    }
    memory.completed.set(1, history::bound - 1);
    memory.write({5'000, 5'005}, mark_at(1, history::bound + 1));
    EXPECT_EQ(memory.past.accesses().size(), 2U);
    EXPECT_TRUE(memory.to_write({3'000, 3'005}).empty()) << "nothing between the two was touched";
}

TEST(O3, MoreTimelinesThanTheBoundKeepOneAccessEach) {
    tracked memory;
    const timeline_id timelines = 3 * history::bound;
    for (epoch round = 1; round <= 3; ++round) {
        for (timeline_id t = 0; t < timelines; ++t) {
            memory.read({round, round + 1}, mark_at(10 + t, round));
        }
    }
    EXPECT_LE(memory.past.accesses().size(), history::bound + timelines);
    EXPECT_EQ(memory.to_write(whole).size(), timelines);
}

TEST(O3, PruneForgetsWhatIsComplete) {
    tracked memory;
    memory.write(left, mark_at(1, 1));
    memory.write(right, mark_at(2, 1));
    memory.completed.set(1, 1);
    memory.past.prune(memory.completed);
    ASSERT_EQ(memory.past.accesses().size(), 1U);
    EXPECT_EQ(memory.past.accesses()[0].when.at, (point{2, 1}));
}

TEST(O3, ReserveGrowsGeometrically) {
    tracked memory;
    // Otherwise a history that grows moves all its accesses at each operation.
    int moves = 0;
    const past_access* before = nullptr;
    for (epoch at = 1; at <= history::bound; ++at) {
        memory.read({at, at + 1}, mark_at(1, at));
        if (memory.past.accesses().data() != before) {
            ++moves;
            before = memory.past.accesses().data();
        }
    }
    EXPECT_LE(moves, 8);
}

TEST(O5, ManualOrderingNeedsNoHazardWaits) {
    tracked memory;
    memory.write(whole, mark_at(1, 1));
    EXPECT_TRUE(memory.needed(whole, access_mode::write, false).empty());
}

TEST(O5, ReturningToAutomaticWaitsForWhatManualLeftUnordered) {
    tracked memory;
    memory.write(whole, mark_at(1, 1));
    EXPECT_TRUE(memory.needed(whole, access_mode::write, false).empty());
    memory.write(whole, mark_at(2, 1));  // manual: not ordered after the first
    const auto waits = memory.to_write(whole);
    ASSERT_EQ(waits.size(), 2U);
}

TEST(O1, ConflictsAreVisitedWithTheirReason) {
    tracked memory;
    memory.write(left, mark_at(1, 1));
    memory.read(right, mark_at(2, 1));
    std::vector<reason> reasons;
    memory.past.conflicts(whole, access_mode::write, [&](const past_access&, reason why) { reasons.push_back(why); });
    EXPECT_EQ(reasons, (std::vector{reason::write_after_write, reason::write_after_read}));
}

// A write that covers everything it comes after takes a shorter path (`record_covering`): the history is the same.

bool same_accesses(const history& a, const history& b) {
    return std::equal(a.accesses().begin(), a.accesses().end(), b.accesses().begin(), b.accesses().end(),
                      [](const past_access& one, const past_access& other) {
                          return one.where == other.where && one.when.at == other.when.at &&
                                 one.when.known == other.when.known && one.mode == other.mode &&
                                 one.former_owner == other.former_owner && one.by == other.by;
                      });
}

TEST(HistoryAfterAll, RecordsWhatTheClocksShow) {
    const set_watermarks nothing_is_over;
    const std::array<footprint, 4> places{whole, left, right, footprint{}};
    std::mt19937 random(7);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same programs each time
    int overwritten = 0;
    for (int program = 0; program < 2000; ++program) {
        history told;
        history found_out;
        if (random() % 4 == 0) {  // of a former owner: such accesses are never forgotten
            for (history* const one : {&told, &found_out}) {
                one->reserve(1);
                one->record(whole, access_mode::write, mark_at(9, 1), nothing_is_over);
                one->die(100, nothing_is_over);
            }
        }
        frontier before;
        for (epoch at = 1; at < 10; ++at) {
            const auto timeline = static_cast<timeline_id>(1 + random() % 3);
            const mark when{{timeline, at}, make_clock(before)};
            const access_mode mode = random() % 3 == 0 ? access_mode::write : access_mode::read;
            const footprint& where = places[random() % places.size()];
            for (history* const one : {&told, &found_out}) {
                one->reserve(1);
                one->record(where, mode, when, nothing_is_over, accessor::weir, one == &told);
            }
            ASSERT_TRUE(same_accesses(told, found_out)) << "program " << program << ", epoch " << at;
            overwritten += told.accesses().size() == 1 && mode == access_mode::write ? 1 : 0;
            before.merge(when.at);
        }
    }
    EXPECT_GT(overwritten, 1000);
}

using named_waits = std::vector<std::pair<timeline_id, epoch>>;

template <class Plan>
named_waits waits_of(const Plan& found) {
    named_waits named;
    for (const wait& one : found.waits()) {
        named.emplace_back(one.target.at.timeline, one.target.at.at);
    }
    std::sort(named.begin(), named.end());
    return named;
}

TEST(HistoryCovering, RecordsWhatRecordDoes) {
    const set_watermarks nothing_is_over;
    const std::array<footprint, 4> places{whole, left, right, footprint{}};
    std::mt19937 random(7);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same programs each time
    int shortened = 0;
    for (int program = 0; program < 2000; ++program) {
        history by_covering;
        history by_record;
        if (random() % 4 == 0) {  // of a former owner: such accesses are never forgotten
            for (history* const one : {&by_covering, &by_record}) {
                one->reserve(1);
                one->record(whole, access_mode::write, mark_at(1, 1), nothing_is_over);
                one->die(100, nothing_is_over);
            }
        }
        for (epoch at = 2; at < 10; ++at) {
            const mark when = mark_at(static_cast<timeline_id>(1 + random() % 3), at);
            const access_mode mode = random() % 2 == 0 ? access_mode::read : access_mode::write;
            const footprint& where = places[random() % places.size()];
            short_plan found(when.at.timeline, when.known);
            bool covers = false;
            ASSERT_TRUE(by_covering.require(found, where, mode, covers));
            ASSERT_TRUE(found.resolve(nothing_is_over));
            short_plan alone(when.at.timeline, when.known);
            bool covers_alone = false;
            ASSERT_TRUE(by_covering.require_alone(alone, where, mode, covers_alone, nothing_is_over));
            ASSERT_EQ(covers_alone, covers) << "program " << program << ", epoch " << at;
            ASSERT_EQ(waits_of(alone), waits_of(found)) << "program " << program << ", epoch " << at;
            by_record.reserve(1);
            by_record.record(where, mode, when, nothing_is_over, accessor::weir, true);
            if (covers) {
                by_covering.record_covering(where, mark(when));
                ++shortened;
            } else {
                by_covering.reserve(1);
                by_covering.record(where, mode, when, nothing_is_over, accessor::weir, true);
            }
            ASSERT_TRUE(same_accesses(by_covering, by_record)) << "program " << program << ", epoch " << at;
        }
    }
    EXPECT_GT(shortened, 1000);
}

TEST(HistoryCovering, IsForWritesThatCoverAllThatIsKept) {
    tracked memory;
    const level every_second_word[] = {{16, 10}};
    const footprint every_second = strided(0, every_second_word, 8);
    const auto covers = [&](const footprint& where, access_mode mode) {
        short_plan found(9, {});
        bool is_covered = true;
        EXPECT_TRUE(memory.past.require(found, where, mode, is_covered));
        short_plan alone(9, {});
        bool is_covered_alone = true;
        EXPECT_TRUE(memory.past.require_alone(alone, where, mode, is_covered_alone, memory.completed));
        EXPECT_EQ(is_covered_alone, is_covered);
        return is_covered;
    };
    EXPECT_FALSE(covers(whole, access_mode::write)) << "there is nothing in whose place it could be";
    memory.write(left, mark_at(1, 1));
    EXPECT_TRUE(covers(left, access_mode::write));
    EXPECT_TRUE(covers(whole, access_mode::write));
    EXPECT_FALSE(covers(left, access_mode::read));
    EXPECT_FALSE(covers(right, access_mode::write));
    EXPECT_FALSE(covers(every_second, access_mode::write));
    memory.read(right, mark_at(2, 1));
    EXPECT_FALSE(covers(left, access_mode::write));
    EXPECT_TRUE(covers(whole, access_mode::write));
    memory.past.die(100, memory.completed);
    EXPECT_FALSE(covers(whole, access_mode::write)) << "a former owner's";
}

// A short plan reports the cases that it cannot handle; in the others its result is that of a plan.

TEST(ShortPlan, FindsTheWaitsOfAPlan) {
    std::mt19937 random(11);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same programs each time
    constexpr timeline_id streams = 5;
    std::map<std::size_t, int> seen;
    for (int program = 0; program < 3000; ++program) {
        set_watermarks completed;
        std::vector<sequencer> all;
        for (timeline_id i = 0; i < streams; ++i) {
            all.emplace_back(i);
        }
        std::array<history, 3> memory;
        for (int step = 0; step < 12; ++step) {
            sequencer& stream = all[random() % streams];
            if (random() % 8 == 0 && stream.tail() != 0) {
                completed.set(stream.timeline(),
                              std::max<epoch>(completed.completed(stream.timeline()), 1 + random() % stream.tail()));
            }
            plan longer = stream.next(completed);
            short_plan shorter(stream.timeline(), stream.known());
            std::array<access_mode, 3> modes{};
            for (std::size_t i = 0; i < memory.size(); ++i) {
                modes[i] = random() % 3 == 0 ? access_mode::write : access_mode::read;
                bool covers = false;
                memory[i].require(longer, whole, modes[i], true);
                ASSERT_TRUE(memory[i].require(shorter, whole, modes[i], covers));
            }
            longer.resolve();
            ASSERT_TRUE(shorter.resolve(completed));
            ASSERT_EQ(waits_of(shorter), waits_of(longer)) << "program " << program << ", step " << step;
            ++seen[longer.waits().size()];
            if (longer.waits().empty()) {
                stream.reserve_next();
            } else {
                EXPECT_TRUE(shorter.clock_after()->dominates(*longer.clock_after()));
                shorter.prepare(false);
                stream.reserve(shorter);
            }
            const mark end = stream.record();
            for (std::size_t i = 0; i < memory.size(); ++i) {
                memory[i].reserve(1);
                memory[i].record(whole, modes[i], end, completed);
            }
        }
    }
    EXPECT_GT(seen[1], 1000);
    EXPECT_GT(seen[2], 500);
    EXPECT_GT(seen[3], 100);
}

TEST(ShortPlan, CannotTellOfLaterTimelines) {
    const nothing_completes completed;
    const timeline_id far = frontier::direct;
    const auto tells_of = [&](const clock& known, const mark& target) {
        short_plan made(1, known);
        const bool is_told = made.need(target) && made.resolve(completed);
        short_plan alone(1, known);
        EXPECT_EQ(alone.need_alone(target, completed), is_told);
        return is_told;
    };
    EXPECT_TRUE(tells_of({}, mark_at(far - 1, 3)));
    EXPECT_FALSE(tells_of({}, mark_at(far, 3)));
    EXPECT_FALSE(tells_of({}, mark_at(2, 3, {{far, 1}})));
    EXPECT_FALSE(tells_of(mark_at(1, 1, {{far, 1}}).known, mark_at(2, 3)));
    EXPECT_TRUE(tells_of(mark_at(1, 1, {{far, 1}}).known, mark_at(1, 3))) << "nothing to wait for";
    EXPECT_TRUE(tells_of(mark_at(1, 1, {{far, 1}, {2, 3}}).known, mark_at(2, 3))) << "nothing to wait for";
}

}  // namespace
}  // namespace weir::order::test
