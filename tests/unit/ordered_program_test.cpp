// What another library's operations are made to wait for (rules O1, O2, L1). No library takes part: its streams are lists, and whether the
// device would run conflicting operations in order is seen by searching these lists.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "weir/access.hpp"
#include "weir/detail/footprint.hpp"
#include "weir/detail/ordered_program.hpp"

namespace weir::detail {
namespace {

/// Streams as lists of what was put into them, and events. Node numbers are in the order in which things were put there.
class device final : public library_events {
public:
    void* record(watched_stream on, void* former) override {
        ++records;
        if (fails) {
            throw std::runtime_error("no event");
        }
        auto* const event = former != nullptr ? static_cast<std::size_t*>(former) : new std::size_t(0);
        made += former == nullptr ? 1 : 0;
        *event = put(on, {});
        return event;
    }
    void wait(watched_stream on, void* event) override {
        ++waits;
        if (waits != dropped) {
            put(on, {*static_cast<std::size_t*>(event)});
        }
    }
    void synchronize(void* event) override { host_waits_for(*static_cast<std::size_t*>(event)); }
    bool is_complete(void* event) override {
        if (all_complete) {
            host_waits_for(*static_cast<std::size_t*>(event));
        }
        return all_complete;
    }
    void destroy(void* event) noexcept override {
        ++destroyed;
        delete static_cast<std::size_t*>(event);
    }

    /// Puts something into a stream that comes after `others`. Returns its number.
    std::size_t put(watched_stream on, std::vector<std::size_t> others) {
        if (const auto found = last_.find(on.handle); found != last_.end()) {
            others.push_back(found->second);
        }
        if (host_) {
            others.push_back(*host_);
        }
        after_.push_back(std::move(others));
        last_[on.handle] = after_.size() - 1;
        return after_.size() - 1;
    }
    void host_waits_for(std::size_t node) {
        std::vector<std::size_t> others{node};
        if (host_) {
            others.push_back(*host_);
        }
        after_.push_back(std::move(others));
        host_ = after_.size() - 1;
    }
    void host_waits_for_stream(watched_stream one) {
        if (const auto found = last_.find(one.handle); found != last_.end()) {
            host_waits_for(found->second);
        }
    }
    [[nodiscard]] std::size_t last_of(watched_stream one) const { return last_.at(one.handle); }
    /// Whether the host has waited for the node.
    [[nodiscard]] bool is_over(std::size_t node) const { return host_ && is_before(node, *host_); }
    [[nodiscard]] bool is_before(std::size_t first, std::size_t second) const {
        std::set<std::size_t> seen{second};
        std::vector<std::size_t> left{second};
        while (!left.empty()) {
            const std::size_t one = left.back();
            left.pop_back();
            if (one == first) {
                return true;
            }
            for (const std::size_t each : after_[one]) {
                if (each >= first && seen.insert(each).second) {
                    left.push_back(each);
                }
            }
        }
        return false;
    }

    std::size_t waits = 0;
    std::size_t records = 0;
    std::size_t made = 0;
    std::size_t destroyed = 0;
    std::size_t dropped = 0;  ///< the number of a wait that does nothing
    bool all_complete = false;
    bool fails = false;

private:
    std::vector<std::vector<std::size_t>> after_;
    std::map<std::uint64_t, std::size_t> last_;
    std::optional<std::size_t> host_;  ///< what the host has waited for
};

/// A program: what it does goes to `ordered_program`, and into the device. Each access is remembered by its bytes.
class program {
public:
    explicit program(device& on) : device_(&on), ordered_(on) {}

    void run(watched_stream on, const std::vector<watched_access>& accesses,
             const std::vector<watched_access>& results = {}) {
        const std::uint64_t number = ordered_.operation_begins(on, accesses);
        const std::size_t node = device_->put(on, {});
        ordered_.operation_ends(on, number, results);
        for (const auto* list : {&accesses, &results}) {
            for (const watched_access& each : *list) {
                compare(each, node);
            }
        }
    }
    void host(const watched_access& what) {
        ordered_.host_access(what);
        for (const done& past : all_) {
            if (conflict(past, what) && !device_->is_over(past.node)) {
                ++unordered;
            }
        }
    }
    ordered_program& ordered() { return ordered_; }

    std::size_t unordered = 0;  ///< pairs that conflict and may overlap

private:
    struct done {
        std::uint64_t begin;
        std::uint64_t end;
        bool writes;
        std::size_t node;
    };
    static bool conflict(const done& past, const watched_access& what) {
        return (past.writes || what.mode == access_mode::write) && past.begin < what.memory + what.where.end &&
               what.memory + what.where.begin < past.end;
    }
    void compare(const watched_access& what, std::size_t node) {
        for (const done& past : all_) {
            if (past.node != node && conflict(past, what) && !device_->is_before(past.node, node)) {
                ++unordered;
            }
        }
        all_.push_back(
            {what.memory + what.where.begin, what.memory + what.where.end, what.mode == access_mode::write, node});
    }

    device* device_;
    ordered_program ordered_;
    std::vector<done> all_;
};

constexpr std::uint64_t x = 0x1000;
constexpr std::uint64_t y = 0x2000;
constexpr watched_stream a{0, 0xA};
constexpr watched_stream b{0, 0xB};
constexpr watched_stream c{0, 0xC};

watched_access reads(std::uint64_t memory, std::uint64_t begin = 0, std::uint64_t end = 64) {
    return {memory, 64, {begin, end}, access_mode::read, true};
}
watched_access writes(std::uint64_t memory, std::uint64_t begin = 0, std::uint64_t end = 64) {
    return {memory, 64, {begin, end}, access_mode::write, true};
}

TEST(Ordered, O1_what_conflicts_on_another_stream_is_waited_for_once) {
    device on;
    program one(on);
    one.run(a, {writes(x)});
    one.run(b, {reads(x), writes(y)});
    EXPECT_EQ(on.waits, 1U);
    one.run(b, {reads(x)});
    EXPECT_EQ(on.waits, 1U) << "it is known";
    one.run(c, {reads(y)});
    EXPECT_EQ(on.waits, 2U);
    one.run(c, {reads(x)});
    EXPECT_EQ(on.waits, 2U) << "what b comes after, c comes after, too";
    EXPECT_EQ(one.unordered, 0U);
}

TEST(Ordered, O1_what_does_not_conflict_waits_for_nothing) {
    device on;
    program one(on);
    one.run(a, {writes(x, 0, 32)});
    one.run(b, {writes(x, 32, 64)});
    one.run(c, {writes(y)});
    one.run(a, {reads(y, 0, 0)});
    EXPECT_EQ(on.waits, 0U);
    EXPECT_EQ(on.records, 0U);
}

TEST(Ordered, O2_what_the_program_orders_is_not_ordered_again) {
    device on;
    program one(on);
    one.run(a, {writes(x)});
    one.ordered().event_recorded(1, a);
    const std::size_t recorded = on.put(a, {});
    one.ordered().stream_waits(b, 1);
    on.put(b, {recorded});
    one.run(b, {writes(x)});
    EXPECT_EQ(on.waits, 0U);
    one.run(a, {writes(x)});
    EXPECT_EQ(on.waits, 1U);
    one.ordered().event_gone(1);
    one.ordered().stream_waits(c, 1);
    one.run(c, {reads(x)});
    EXPECT_EQ(on.waits, 2U) << "the event is gone";
    EXPECT_EQ(one.unordered, 0U);
}

TEST(Ordered, O2_a_wait_does_not_cover_what_a_stream_gets_once_it_was_left) {
    device on;
    program one(on);
    one.run(a, {writes(x)});
    one.ordered().leaves(a);
    one.run(a, {writes(y)});
    one.run(b, {reads(x)});
    EXPECT_EQ(on.waits, 1U);
    one.run(b, {reads(y)});
    EXPECT_EQ(on.waits, 2U) << "the first wait did not cover y";
    EXPECT_EQ(one.unordered, 0U);
}

TEST(Ordered, O2_the_host_waits_for_what_it_meets_and_for_nothing_else) {
    device on;
    program one(on);
    one.run(a, {reads(x)});
    one.host(reads(x));
    EXPECT_EQ(on.records, 0U) << "two reads";
    one.host(writes(x));
    EXPECT_EQ(on.records, 1U);
    one.run(b, {writes(x)});
    EXPECT_EQ(on.waits, 0U) << "the host has waited for a";
    EXPECT_EQ(one.unordered, 0U);
}

TEST(Ordered, O2_waits_of_the_host_count) {
    device on;
    program one(on);
    one.run(a, {writes(x)});
    one.ordered().host_waited_for_stream(a);
    on.host_waits_for_stream(a);
    one.run(b, {writes(x)});
    one.run(b, {writes(y)});
    one.ordered().host_waited_for_device(0);
    on.host_waits_for_stream(a);
    on.host_waits_for_stream(b);
    one.run(c, {writes(x), writes(y)});
    EXPECT_EQ(on.waits, 0U);
    EXPECT_EQ(one.unordered, 0U);
}

TEST(Ordered, L1_memory_that_is_given_out_again_is_used_behind_its_former_owner) {
    device on;
    program one(on);
    one.ordered().allocated(x, a);
    one.run(a, {}, {writes(x)});
    one.run(b, {reads(x)});
    one.ordered().freed(x);
    EXPECT_EQ(on.waits, 1U);
    one.ordered().allocated(x, a);
    EXPECT_EQ(on.waits, 2U) << "of a for b";
    one.run(a, {}, {writes(x)});
    EXPECT_EQ(one.unordered, 0U);
}

TEST(Ordered, L1_a_free_alone_waits_for_nothing) {
    device on;
    program one(on);
    one.ordered().allocated(x, a);
    one.run(b, {writes(x)});
    one.ordered().freed(x);
    one.ordered().allocated(y, a);
    one.run(a, {}, {writes(y)});
    EXPECT_EQ(on.waits, 0U);
}

TEST(Ordered, L1_a_part_of_the_memory_and_memory_that_was_joined_are_behind_all_former_owners) {
    device on;
    program one(on);
    one.ordered().allocated(x, a);
    one.run(b, {writes(x)});
    one.ordered().freed(x);
    one.ordered().allocated(x + 32, a);  // the second half
    one.run(a, {}, {{x + 32, 32, {0, 32}, access_mode::write, true}});
    one.ordered().allocated(x, a);
    one.run(a, {}, {{x, 32, {0, 32}, access_mode::write, true}});
    one.run(c, {{x + 32, 32, {0, 32}, access_mode::write, true}});
    one.ordered().freed(x);
    one.ordered().freed(x + 32);
    one.ordered().allocated(x, a);
    one.run(a, {}, {writes(x)});
    EXPECT_EQ(one.unordered, 0U);
}

TEST(Ordered, L1_another_stream_that_uses_new_memory_waits_for_its_former_owner) {
    device on;
    program one(on);
    one.ordered().allocated(x, a);
    one.run(a, {}, {writes(x)});
    one.ordered().freed(x);
    one.ordered().allocated(x, a);
    one.run(b, {writes(x)});
    EXPECT_EQ(on.waits, 1U);
    EXPECT_EQ(one.unordered, 0U);
}

TEST(Ordered, O2_an_operation_that_is_not_put_there_yet_is_not_taken_for_waited_for) {
    device on;
    program one(on);
    const std::vector<watched_access> what{writes(x)};
    one.run(a, {writes(y)});
    const std::uint64_t number = one.ordered().operation_begins(a, what);  // of another thread
    one.run(b, {reads(y)});                                                // records an event in a
    EXPECT_EQ(on.waits, 1U);
    on.put(a, {});
    one.ordered().operation_ends(a, number, {});
    one.run(b, {reads(x)});
    EXPECT_EQ(on.waits, 2U) << "the event was recorded before the operation";
}

TEST(Ordered, O2_at_the_end_all_streams_come_after_all) {
    device on;
    program one(on);
    one.run(a, {writes(x)});
    one.run(b, {writes(y)});
    one.ordered().join_all();
    EXPECT_EQ(on.waits, 2U);
    one.run(a, {writes(y)});
    one.run(b, {writes(x)});
    EXPECT_EQ(on.waits, 2U);
    EXPECT_EQ(one.unordered, 0U);
}

TEST(Ordered, O2_streams_that_have_got_nothing_are_not_joined) {
    device on;
    program one(on);
    one.run(a, {writes(x)});
    one.ordered().event_recorded(7, b);  // the library need not know this stream
    one.ordered().join_all();
    EXPECT_EQ(on.records, 0U);
    EXPECT_EQ(on.waits, 0U);
    one.run(c, {writes(y)});
    one.ordered().join_all();
    EXPECT_EQ(on.waits, 2U);
    EXPECT_EQ(one.ordered().devices(), std::vector{0});
}

TEST(Ordered, O3_views_that_begin_elsewhere_are_parts_of_the_same_memory) {
    const auto whole = [](access_mode mode) { return watched_access{x, 64, {0, 64}, mode, true}; };
    const auto part = [](access_mode mode) { return watched_access{x + 16, 16, {0, 16}, mode, true}; };
    const auto rest = [](access_mode mode) { return watched_access{x + 32, 32, {0, 32}, mode, true}; };
    const access_mode write = access_mode::write;
    {
        device on;
        program one(on);
        one.run(a, {whole(write)});
        one.run(b, {part(write)});
        EXPECT_EQ(on.waits, 1U);
        one.run(c, {rest(write)});
        EXPECT_EQ(on.waits, 2U) << "for the first, and not for the part";
        one.run(a, {whole(access_mode::read)});
        EXPECT_EQ(on.waits, 4U);
        EXPECT_EQ(one.unordered, 0U);
    }
    device on;
    program one(on);
    one.run(a, {part(write)});  // before it is known of what it is a part
    one.run(b, {rest(write)});
    EXPECT_EQ(on.waits, 0U);
    one.run(c, {part(access_mode::read), whole(write)});
    EXPECT_EQ(on.waits, 2U);
    one.run(a, {part(write)});
    EXPECT_EQ(on.waits, 3U);
    one.run(b, {rest(write)});
    EXPECT_EQ(on.waits, 4U);
    one.host(whole(access_mode::read));
    EXPECT_EQ(one.unordered, 0U);
}

TEST(Ordered, O3_memory_that_turns_out_to_be_larger_has_its_parts_inside) {
    device on;
    program one(on);
    one.run(a, {{x, 16, {0, 16}, access_mode::write, true}});
    one.run(b, {{x + 32, 16, {0, 16}, access_mode::write, true}});
    one.run(c, {writes(x)});
    EXPECT_EQ(on.waits, 2U);
    one.run(b, {{x + 32, 16, {0, 16}, access_mode::write, true}});
    EXPECT_EQ(on.waits, 3U);
    EXPECT_EQ(one.unordered, 0U);
}

TEST(Ordered, O3_new_memory_is_no_part_of_what_was_there_before) {
    device on;
    program one(on);
    one.run(a, {writes(x)});
    one.ordered().allocated(x + 32, b);  // the other's free was not seen
    const std::size_t before = on.waits;
    one.run(b, {{x + 32, 16, {0, 16}, access_mode::write, true}});
    one.run(a, {writes(x, 0, 16)});
    EXPECT_EQ(on.waits, before);
}

TEST(Ordered, O6_what_is_over_for_the_host_is_known_without_a_wait) {
    device on;
    program one(on);
    EXPECT_TRUE(one.ordered().is_over(writes(x)));
    one.run(a, {writes(x)});
    EXPECT_FALSE(one.ordered().is_over(reads(x)));
    EXPECT_TRUE(one.ordered().is_over(reads(y)));
    on.all_complete = true;
    EXPECT_TRUE(one.ordered().is_over(reads(x)));
    on.all_complete = false;
    EXPECT_TRUE(one.ordered().is_over(writes(x))) << "it is known";
    one.run(b, {writes(x)});
    EXPECT_EQ(on.waits, 0U);
    on.all_complete = true;
    const std::uint64_t number = one.ordered().operation_begins(a, std::vector{writes(y)});
    EXPECT_FALSE(one.ordered().is_over(reads(y))) << "it is not there yet";
    on.put(a, {});
    one.ordered().operation_ends(a, number, {});
    EXPECT_TRUE(one.ordered().is_over(reads(y)));
    EXPECT_EQ(one.unordered, 0U);
}

TEST(Ordered, O2_a_stream_that_may_end_is_not_touched_again) {
    device on;
    program one(on);
    const auto run_on_b = [&](const std::vector<watched_access>& accesses) {
        const std::uint64_t number = one.ordered().operation_begins(b, accesses);
        on.put(b, {});
        one.ordered().operation_ends(b, number, {}, true);
    };
    run_on_b({writes(x)});
    EXPECT_EQ(on.records, 1U);
    run_on_b({writes(y)});
    EXPECT_EQ(on.records, 2U);
    const std::size_t put = on.put(b, {});  // the last thing that it gets
    one.run(a, {reads(x)});
    one.run(c, {reads(y)});
    one.host(reads(y));
    one.ordered().join_all();
    EXPECT_EQ(on.records, 4U) << "behind a and c, at the end";
    EXPECT_EQ(on.last_of(b), put);
    EXPECT_EQ(one.unordered, 0U);
}

TEST(Ordered, EventsAreUsedAgainAndDestroyed) {
    device on;
    {
        program one(on);
        for (int i = 0; i < 400; ++i) {
            on.all_complete = i > 200;
            one.run(i % 2 == 0 ? a : b, {writes(x)});
        }
        EXPECT_EQ(on.records, 399U);
        EXPECT_LE(on.made, 130U);
        EXPECT_EQ(one.unordered, 0U);
        EXPECT_EQ(on.destroyed, 0U);
    }
    EXPECT_EQ(on.destroyed, on.made);
}

TEST(Ordered, AnEventThatFailsLeavesNothingBehind) {
    device on;
    program one(on);
    one.run(a, {writes(x)});
    on.fails = true;
    EXPECT_THROW(one.run(b, {writes(x)}), std::runtime_error);
    on.fails = false;
    one.run(b, {writes(x)});
    EXPECT_EQ(on.waits, 1U);
    EXPECT_EQ(one.unordered, 0U);
}

/// Streams that allocate from a pool of their own, as torch's allocator does: what is freed is given out on its stream at once, in parts or
/// joined.
class random_program {
public:
    random_program(std::uint32_t seed, std::size_t dropped) : random_(seed), program_(on_) { on_.dropped = dropped; }

    void run(int steps) {
        for (int i = 0; i < steps; ++i) {
            step();
        }
    }
    [[nodiscard]] std::size_t unordered() const { return program_.unordered; }
    [[nodiscard]] std::size_t waits() const { return on_.waits; }

private:
    static constexpr std::array streams{a, b, c};
    static constexpr std::uint64_t unit = 16;
    static constexpr std::uint64_t units = 8;  // of the memory of each stream

    struct block {
        std::uint64_t address;
        std::uint64_t bytes;
    };

    std::uint64_t pick(std::uint64_t most) { return std::uniform_int_distribution<std::uint64_t>(0, most)(random_); }
    watched_stream any_stream() { return streams[pick(2)]; }

    [[nodiscard]] bool is_free(std::uint64_t address, std::uint64_t bytes) const {
        return std::none_of(live_.begin(), live_.end(), [&](const block& one) {
            return one.address < address + bytes && address < one.address + one.bytes;
        });
    }
    std::optional<block> allocate(watched_stream on) {
        const std::uint64_t bytes = unit * (1 + pick(3));
        const std::uint64_t pool = on.handle << 16U;
        for (std::uint64_t at = pool; at + bytes <= pool + units * unit; at += unit) {
            if (is_free(at, bytes)) {
                program_.ordered().allocated(at, on);
                live_.push_back({at, bytes});
                return live_.back();
            }
        }
        return std::nullopt;
    }
    watched_access access(const block& to) {
        const std::uint64_t begin = pick(1) == 0 ? 0 : to.bytes / 2;
        const std::uint64_t end = pick(1) == 0 ? to.bytes : to.bytes / 2;
        const std::uint64_t from = pick(5) == 0 ? unit * pick(to.bytes / unit - 1) : 0;  // another package's view
        const std::uint64_t bytes = pick(9) == 0 ? unit : to.bytes - from;
        const order::footprint where =
            begin < end && from == 0 && bytes == to.bytes ? order::footprint{begin, end} : order::footprint{0, bytes};
        return {to.address + from, bytes, where, pick(1) == 0 ? access_mode::read : access_mode::write, true};
    }

    void step() {
        const watched_stream on = any_stream();
        switch (pick(9)) {
            case 0: {  // a new result
                if (const auto made = allocate(on)) {
                    program_.run(on, {}, {{made->address, made->bytes, {0, made->bytes}, access_mode::write, true}});
                }
                break;
            }
            case 1:
                allocate(on);
                break;
            case 2:
            case 3:
                if (!live_.empty()) {
                    const auto which = live_.begin() + static_cast<std::ptrdiff_t>(pick(live_.size() - 1));
                    program_.ordered().freed(which->address);
                    live_.erase(which);
                }
                break;
            case 4: {  // the program's own event
                program_.ordered().event_recorded(7, on);
                recorded_ = on_.put(on, {});
                break;
            }
            case 5:
                if (recorded_) {
                    program_.ordered().stream_waits(on, 7);
                    on_.put(on, {*recorded_});
                }
                break;
            case 6:
                program_.ordered().leaves(on);
                break;
            case 7:
                if (pick(4) == 0) {
                    program_.ordered().host_waited_for_stream(on);
                    on_.host_waits_for_stream(on);
                } else if (!live_.empty()) {
                    program_.host(access(live_[pick(live_.size() - 1)]));
                }
                break;
            default:
                if (!live_.empty()) {
                    std::vector<watched_access> all;
                    for (std::uint64_t i = 0; i <= pick(2); ++i) {
                        all.push_back(access(live_[pick(live_.size() - 1)]));
                    }
                    program_.run(on, all);
                }
        }
    }

    std::mt19937 random_;
    device on_;
    program program_;
    std::vector<block> live_;
    std::optional<std::size_t> recorded_;
};

TEST(Ordered, O1_random_programs_are_ordered) {
    std::size_t waits = 0;
    for (std::uint32_t seed = 0; seed < 300; ++seed) {
        random_program one(seed, 0);
        one.run(120);
        EXPECT_EQ(one.unordered(), 0U) << "seed " << seed;
        waits += one.waits();
    }
    EXPECT_GT(waits, 1000U);
}

TEST(Ordered, O1_control_without_one_of_the_waits_programs_are_not_ordered) {
    std::size_t needed = 0;
    std::size_t tried = 0;
    for (std::uint32_t seed = 0; seed < 100; ++seed) {
        random_program one(seed, 3);
        one.run(120);
        tried += one.waits() >= 3 ? 1U : 0U;
        needed += one.unordered() != 0 ? 1U : 0U;
    }
    EXPECT_GT(tried, 90U);
    EXPECT_GT(needed, tried * 2 / 3) << "in the others nothing came of it: the host waited, or the memory was not used";
}

}  // namespace
}  // namespace weir::detail
