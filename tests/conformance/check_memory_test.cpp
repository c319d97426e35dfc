// Scenarios F4, F6, F8, F9 and F10: memory that is dropped while it is in use, a host that accesses memory too early, and the order
// that the host's waits and queries make. check reports the right pair of lines of the faulty program, and nothing of the corrected one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "check_support.hpp"
#include "support/devices.hpp"

namespace weir {
namespace {

using test::duplicate;
using test::last;
using test::scenario_run;
using test::set;
using test::size;
using test::zeroed;

struct CheckMemory : test::check_scenario {};

/// A temporary of s1; its line is recorded as "temporary".
array temporary_of(scenario_run& run, double value) {
    array made = full({size}, value, dtype::float64, run.s1, run.note("temporary"));
    run.s1.synchronize();
    return made;
}

WEIR_CONFORMANCE_F(CheckMemory, F6_a_temporary_is_dropped_while_another_stream_reads_it) {
    prove(
        {1}, {{"read", "temporary", "use-after-free"}},
        [](scenario_run& run) {
            const auto pool = run.free_on_allocating_stream();
            array y = zeroed(run);
            array x = temporary_of(run, 1);
            run.hold(run.s2);
            duplicate(run.at(run.s2, "read"), x, y);
            run.by_hand(run.s1, run.s2);
            x = {};
            array next = empty({size}, dtype::float64, run.s1);
            run.finish({set(run.at(run.s1, "next"), next, 5)});
            return std::vector{last(y)};
        },
        __FILE__);
}

WEIR_CONFORMANCE_F(CheckMemory, F6_a_temporary_is_dropped_while_another_stream_writes_it) {
    prove(
        {5}, {{"write", "temporary", "use-after-free"}},
        [](scenario_run& run) {
            const auto pool = run.free_on_allocating_stream();
            array x = temporary_of(run, 1);
            run.hold(run.s2);
            set(run.at(run.s2, "write"), x, 9);
            run.by_hand(run.s1, run.s2);
            x = {};
            array next = empty({size}, dtype::float64, run.s1);
            run.finish({set(run.at(run.s1, "next"), next, 5)});
            return std::vector{last(next)};
        },
        __FILE__);
}

WEIR_CONFORMANCE_F(CheckMemory, F6_partial_order_one_of_two_readers_is_over) {
    prove(
        {1, 1}, {{"other reader", "temporary", "use-after-free"}},
        [](scenario_run& run) {
            const auto pool = run.free_on_allocating_stream();
            array y = zeroed(run);
            array z = zeroed(run);
            array x = temporary_of(run, 1);
            duplicate(run.at(run.s3, "one reader"), x, z);
            if (run.is_manual()) {
                run.s1.wait(run.s3);
            }
            run.hold(run.s2);
            duplicate(run.at(run.s2, "other reader"), x, y);
            run.by_hand(run.s1, run.s2);
            x = {};
            array next = empty({size}, dtype::float64, run.s1);
            run.finish({set(run.at(run.s1, "next"), next, 5)});
            return std::vector{last(y), last(z)};
        },
        __FILE__);
}

/// The pool can give one array only: the next request gets the memory of the last array.
class one_array_only {
public:
    explicit one_array_only(device on) : on_(on), before_(memory::stats(on).limit) {
        memory::trim(on);
        memory::limit(on, memory::stats(on).live + memory::stats(on).pending + memory::stats(on).cached + size_);
    }
    ~one_array_only() { memory::limit(on_, before_); }
    one_array_only(const one_array_only&) = delete;
    one_array_only& operator=(const one_array_only&) = delete;

    static constexpr std::int64_t elements = 1 << 20;

private:
    static constexpr std::size_t size_ = elements * sizeof(double);
    device on_;
    std::size_t before_;
};

WEIR_CONFORMANCE_F(CheckMemory, F6_another_stream_reuses_what_was_dropped_too_early) {
    const use current(stream(device_, {0, "current"}));
    const one_array_only limit(device_);
    const ordering_scope manual(ordering_mode::manual);
    const auto reuse = [&](scenario_run& run) {
        array x = empty({one_array_only::elements}, dtype::float64, run.s1, run.note("dropped"));
        const std::byte* const address = x.data();
        run.hold(run.s2);
        set(run.at(run.s2, "late write"), x, 9);
        run.by_hand(run.s1, run.s2);
        x = {};
        array next = empty({one_array_only::elements}, dtype::float64, run.s3);
        EXPECT_EQ(next.data(), address);
        set(run.at(run.s3, "next owner"), next, 5);
        run.finish();
        return last(next);
    };
    {
        const check_scope check;
        scenario_run run(test::version::nobody_checked, device_);
        EXPECT_EQ(reuse(run), 5) << "Weir's pool orders the two";
        test::expect_races(check.report(),
                           {{"late write", "dropped", "use-after-free"}, {"late write", "next owner", "early-reuse"}},
                           __FILE__, run);
    }
    const check_scope check;
    scenario_run run(test::version::program, device_);
    EXPECT_EQ(reuse(run), 5);
    EXPECT_TRUE(check.report().empty()) << check.report().to_string();
}

/// Two streams hand arrays to each other through a third one; one of them, the maker of an array, forgets to wait for it.
report exchange_over_a_third(const device& where, std::optional<int> forgets) {
    const check_scope check;
    const ordering_scope manual(ordering_mode::manual);
    const stream a(where, {0, "a"});
    const stream b(where, {0, "b"});
    const stream via(where, {0, "via"});
    for (int i = 0; i < 20; ++i) {
        const stream& maker = i % 2 == 0 ? a : b;
        const stream& user = i % 2 == 0 ? b : a;
        array x = empty({size}, dtype::float64, maker);
        const completion made = set(maker, x, i);
        via.wait(made);
        user.wait(via.record());
        const completion used = set(on(user).label("use"), x, i + 1);
        via.wait(used);
        if (i != forgets) {
            maker.wait(via);  // the drop comes after the use, through the third stream
        }
    }
    where.synchronize();
    return check.report();
}

WEIR_CONFORMANCE_F(CheckMemory, F6_two_streams_exchange_blocks_over_a_third) {
    const report mended = exchange_over_a_third(device_, std::nullopt);
    EXPECT_TRUE(mended.empty()) << mended.to_string();
    const report faulty = exchange_over_a_third(device_, 12);
    ASSERT_FALSE(faulty.empty());
    for (const race& one : faulty) {
        EXPECT_EQ(one.first.label, "use");
        // Whether the memory has a new owner in time depends on the pool.
        EXPECT_EQ(one.kind, &one == &*faulty.begin() ? "use-after-free" : "early-reuse") << faulty.to_string();
    }
}

WEIR_CONFORMANCE_F(CheckMemory, L2_what_keep_alive_and_bodies_own_is_not_dropped_too_early) {
    const check_scope check;
    const ordering_scope manual(ordering_mode::manual);
    const stream a(device_, {0, "a"});
    const stream b(device_, {0, "b"});
    testing::gate gate;
    {
        array kept = full({size}, 1, dtype::float64, a);
        array owned = full({size}, 1, dtype::float64, a);
        b.wait(a);
        gate.hold(b);
        keep_alive(set(b, kept, 2), std::move(kept));
        auto view = out(owned.view<double>());
        parallel_for(
            b, size, [owned](std::size_t i, std::span<double> to) { to[i] = 2; }, std::move(view));
    }
    gate.open();
    device_.synchronize();
    EXPECT_TRUE(check.report().empty()) << check.report().to_string();
}

WEIR_CONFORMANCE_F(CheckMemory, F8_the_source_of_a_copy_to_the_device_is_changed_too_early) {
    const use current(stream(device_, {0, "current"}));
    const ordering_scope manual(ordering_mode::manual);
    const auto copied = [&](bool mended, auto&& check) {
        const stream s(device_, {0, "s"});
        array source = full({size}, 1, dtype::float64, current_stream(cpu()));
        array target = zeros({size}, dtype::float64, s);
        cpu().synchronize();
        device_.synchronize();
        copy(on(s).label("copy"), target, source);
        if (mended) {
            s.synchronize();
        }
        source.write<double>()[0] = 7;
        check();
        s.synchronize();
        return target.read<double>()[0];
    };
    const check_scope check;
    EXPECT_EQ(copied(true, [&] { EXPECT_TRUE(check.report().empty()) << check.report().to_string(); }), 1);
    EXPECT_EQ(copied(false, [] {}), 1) << "check keeps the program safe";
    const report found = check.report();
    ASSERT_EQ(found.size(), 1U) << found.to_string();
    EXPECT_EQ(found.races()[0].kind, "host");
    EXPECT_EQ(found.races()[0].first.label, "copy");
}

WEIR_CONFORMANCE_F(CheckMemory, F8_the_target_of_a_copy_from_the_device_is_read_too_early) {
    const use current(stream(device_, {0, "current"}));
    const ordering_scope manual(ordering_mode::manual);
    const stream s(device_, {0, "s"});
    array source = full({size}, 1, dtype::float64, s);
    array target = zeros({size}, dtype::float64, current_stream(cpu()));
    cpu().synchronize();
    const check_scope check;
    copy(on(s).label("copy"), target, source);
    EXPECT_EQ(last(target), 1) << "check keeps the program safe";
    ASSERT_EQ(check.report().size(), 1U);
    EXPECT_EQ(check.report().races()[0].kind, "host");
    copy(on(s).label("copy"), target, source);
    s.synchronize();
    EXPECT_EQ(last(target), 1);
    EXPECT_EQ(check.report().size(), 1U) << check.report().to_string();
}

WEIR_CONFORMANCE_F(CheckMemory, F4_a_wait_for_a_device_covers_that_device_only) {
    const check_scope check;
    const ordering_scope manual(ordering_mode::manual);
    const stream here(device_, {0, "here"});
    array x = empty({size}, dtype::float64, here);
    const weir::device other = device_ == cpu() ? sim(1) : cpu();
    set(here, x, 1);
    other.synchronize();
    const stream late(device_, {0, "late"});
    set(late, x, 2);
    ASSERT_EQ(check.report().size(), 1U) << check.report().to_string();
    EXPECT_EQ(check.report().races()[0].kind, "WAW");
    device_.synchronize();
    const stream later(device_, {0, "later"});
    set(later, x, 3);
    EXPECT_EQ(check.report().size(), 1U) << check.report().to_string();
    device_.synchronize();
}

WEIR_CONFORMANCE_F(CheckMemory, F9_events_handed_from_thread_to_thread_order) {
    const check_scope check;
    const ordering_scope manual(ordering_mode::manual);
    const stream a(device_, {0, "a"});
    const stream b(device_, {0, "b"});
    array x = empty({size}, dtype::float64, a);
    event handed;
    std::atomic<bool> is_there{false};
    std::thread other([&] {
        is_there.wait(false);
        b.wait(handed);
        set(b, x, 2);
    });
    set(a, x, 1);
    handed = a.record();
    is_there = true;
    is_there.notify_one();
    other.join();
    device_.synchronize();
    EXPECT_TRUE(check.report().empty()) << check.report().to_string();
    std::thread careless([&] { set(b, x, 3); });
    careless.join();
    set(a, x, 4);
    EXPECT_EQ(check.report().size(), 1U) << "that one thread comes after the other orders no streams";
    device_.synchronize();
}

/// A thread hands a lock of the program's to another one, after it has waited for the stream, or without the wait.
report hand_a_lock_over(const device& where, bool waits) {
    const check_scope check;
    const ordering_scope manual(ordering_mode::manual);
    const stream a(where, {0, "a"});
    array x = empty({size}, dtype::float64, a);
    std::mutex lock;
    bool is_over = false;
    set(on(a).label("first"), x, 1);
    std::thread other([&] {
        if (waits) {
            a.synchronize();
        }
        const std::lock_guard held(lock);
        is_over = true;
    });
    const stream b(where, {0, "b"});
    for (bool mine = false; !mine;) {
        const std::lock_guard held(lock);
        mine = is_over;
    }
    set(on(b).label("second"), x, 2);  // check does not see the lock, and treats the threads as unordered
    other.join();
    where.synchronize();
    return check.report();
}

WEIR_CONFORMANCE_F(CheckMemory, F9_what_a_thread_waited_for_orders_those_that_it_hands_a_lock_to) {
    const report mended = hand_a_lock_over(device_, true);
    EXPECT_TRUE(mended.empty()) << mended.to_string();
    const report faulty = hand_a_lock_over(device_, false);
    ASSERT_EQ(faulty.size(), 1U) << faulty.to_string();
    EXPECT_EQ(faulty.races()[0].kind, "WAW");
    EXPECT_EQ(faulty.races()[0].first.label, "first");
    EXPECT_EQ(faulty.races()[0].second.label, "second");
}

WEIR_CONFORMANCE_F(CheckMemory, D5_what_a_host_task_enqueues_comes_after_what_it_comes_after) {
    const check_scope check;
    const ordering_scope manual(ordering_mode::manual);
    const stream a(device_, {0, "a"});
    const stream b(device_, {0, "b"});
    const stream inner(device_, {0, "inner"});
    array x = zeros({size}, dtype::float64, a);
    testing::gate gate;
    gate.hold(a);
    set(a, x, 1);
    b.wait(a);
    host_task(b, [&] {
        const ordering_scope also(ordering_mode::manual);
        set(inner, x, 2);
    });
    gate.open();
    b.synchronize();
    EXPECT_TRUE(check.report().empty()) << check.report().to_string();
    device_.synchronize();
    EXPECT_EQ(last(x), 2);
}

/// A program that keeps `x` until the work that uses it is over, and drops it. `late`: that work is over by then, which the program has not
/// asked for.
report keep_until_over(const device& where, bool late) {
    const stream a(where, {0, "a"});
    const stream b(where, {0, "b"});
    const stream aside(where, {0, "aside"});
    const check_scope check({check_mode::collect, true});
    testing::gate gate;
    if (!late) {
        gate.hold(b);
    }
    {
        array x = empty({size}, dtype::float64, a);
        const event over(set(b, x, 1));
        if (late) {
            std::atomic<bool> is_over{false};
            aside.wait(over);
            host_task(aside, [&] { is_over = true; });
            const stream other(where);
            while (!is_over) {
                host_task(other, [] {}).synchronize();
            }
        }
        keep_alive(over, x);
    }
    gate.open();
    where.synchronize();
    return check.report();
}

WEIR_CONFORMANCE_F(CheckMemory, V1_what_an_event_keeps_is_dropped_when_it_is_over_also_if_that_was_before) {
    for (const bool late : {false, true}) {
        const report found = keep_until_over(device_, late);
        EXPECT_TRUE(found.empty()) << found.to_string();
    }
}

WEIR_CONFORMANCE_F(CheckMemory, V1_what_the_body_of_an_operation_has_waited_for_comes_before_its_end) {
    const check_scope check({check_mode::collect, true});
    const stream a(device_, {0, "a"});
    const stream b(device_, {0, "b"});
    const stream inner(device_, {0, "inner"});
    array x = zeros({size}, dtype::float64, inner);
    host_task(b, [&] { set(inner, x, 1).synchronize(); });
    b.synchronize();
    set(a, x, 2);
    EXPECT_TRUE(check.report().empty()) << check.report().to_string();
    device_.synchronize();
}

}  // namespace
}  // namespace weir
