// Scenarios F1, F2, F3, F7 and F12: check reports the right pair of source lines of the faulty program, and nothing of the corrected
// one. Each in three versions: with Weir's ordering, without ordering, and ordered by hand.
#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "check_support.hpp"
#include "support/devices.hpp"
#include "weir/error.hpp"

namespace weir {
namespace {

using test::duplicate;
using test::last;
using test::scenario_run;
using test::set;
using test::size;
using test::zeroed;

class CheckOrder : public test::check_scenario {
protected:
    /// A write on s1, held, and a read on s2. In the corrected program `order` orders the read after the write.
    template <class Order>
    void prove_read_after_write(const char* kind, Order&& order) {
        prove(
            {1}, {{"write", "read", kind}},
            [&](scenario_run& run) {
                array x = zeroed(run);
                array y = zeroed(run);
                order(run, [&] { set(run.at(run.s1, "write"), x, 1); });
                run.finish({duplicate(run.at(run.s2, "read"), x, y)});
                return std::vector{last(y)};
            },
            __FILE__);
    }
};

WEIR_CONFORMANCE_F(CheckOrder, F1_read_after_write) {
    prove_read_after_write("RAW", [](scenario_run& run, auto&& write) {
        run.hold(run.s1);
        write();
        run.by_hand(run.s2, run.s1);
    });
}

WEIR_CONFORMANCE_F(CheckOrder, F1_write_after_read) {
    prove(
        {0, 2}, {{"read", "write", "WAR"}},
        [](scenario_run& run) {
            array x = zeroed(run);
            array y = zeroed(run);
            run.hold(run.s1);
            duplicate(run.at(run.s1, "read"), x, y);
            if (run.is_mended()) {
                run.s2.wait(run.s1);
            }
            run.finish({set(run.at(run.s2, "write"), x, 2)});
            return std::vector{last(y), last(x)};
        },
        __FILE__);
}

WEIR_CONFORMANCE_F(CheckOrder, F1_write_after_write) {
    prove(
        {2}, {{"first write", "second write", "WAW"}},
        [](scenario_run& run) {
            array x = zeroed(run);
            run.hold(run.s1);
            const completion written = set(run.at(run.s1, "first write"), x, 1);
            on second = run.at(run.s2, "second write");
            if (run.is_mended()) {
                second.after(written);
            }
            run.finish({set(second, x, 2)});
            return std::vector{last(x)};
        },
        __FILE__);
}

WEIR_CONFORMANCE_F(CheckOrder, F1_a_write_after_two_readers_of_which_one_is_ordered) {
    prove(
        {2, 0, 0}, {{"other reader", "write", "WAR"}},
        [](scenario_run& run) {
            array x = zeroed(run);
            array y = zeroed(run);
            array z = zeroed(run);
            duplicate(run.at(run.s1, "one reader"), x, y);
            run.hold(run.s2);
            duplicate(run.at(run.s2, "other reader"), x, z);
            if (run.is_manual()) {
                run.s3.wait(run.s1.record());
            }
            run.by_hand(run.s3, run.s2);
            run.finish({set(run.at(run.s3, "write"), x, 2)});
            return std::vector{last(x), last(y), last(z)};
        },
        __FILE__);
}

WEIR_CONFORMANCE_F(CheckOrder, F2_a_chain_of_events_over_ten_streams) {
    prove_read_after_write("RAW", [](scenario_run& run, auto&& write) {
        run.hold(run.s1);
        write();
        std::vector<stream> chain{run.s1};
        for (int i = 0; i < 8; ++i) {
            chain.emplace_back(run.device, stream_options{0, "link"});
        }
        chain.push_back(run.s2);
        for (std::size_t i = 1; i < chain.size() && run.is_manual(); ++i) {
            if (i != 5 || run.is_mended()) {
                chain[i].wait(chain[i - 1].record());
            }
        }
    });
}

WEIR_CONFORMANCE_F(CheckOrder, F2_transitive_order_by_different_paths) {
    prove(
        {1}, {{"write x", "read x, write y", "RAW"}},
        [](scenario_run& run) {
            const stream s4(run.device, {0, "s4"});
            array x = zeroed(run);
            array y = zeroed(run);
            run.hold(run.s1);
            set(run.at(run.s1, "write x"), x, 1);
            if (run.is_mended()) {
                run.s2.wait(run.s1);
                run.s3.wait(run.s1);
            }
            set(run.at(run.s2, "write y"), y, 1);
            if (run.is_manual()) {
                s4.wait(run.s2);
                s4.wait(run.s3);
            }
            run.finish({duplicate(run.at(s4, "read x, write y"), x, y)});
            return std::vector{last(y)};
        },
        __FILE__);
}

WEIR_CONFORMANCE_F(CheckOrder, F2_merging_keeps_the_larger_of_two_clocks) {
    prove_read_after_write("stale-event", [](scenario_run& run, auto&& write) {
        const event early = run.s1.record();
        run.hold(run.s1);
        write();
        run.by_hand(run.s2, run.s1);
        if (run.is_manual()) {
            run.s2.wait(early);
        }
    });
}

WEIR_CONFORMANCE_F(CheckOrder, F3_work_after_the_record_is_not_covered) {
    prove_read_after_write("stale-event", [](scenario_run& run, auto&& write) {
        event written = run.s1.record();
        run.hold(run.s1);
        write();
        if (run.is_mended()) {
            written.record(run.s1);  // the later record counts
        }
        if (run.is_manual()) {
            run.s2.wait(written);
        }
    });
}

WEIR_CONFORMANCE_F(CheckOrder, F3_a_record_is_replaced_by_a_later_one) {
    prove_read_after_write("stale-event", [](scenario_run& run, auto&& write) {
        run.hold(run.s1);
        write();
        event written = run.s1.record();
        if (!run.is_mended()) {
            written.record(run.s3);
        }
        if (run.is_manual()) {
            run.s2.wait(written);
        }
    });
}

WEIR_CONFORMANCE_F(CheckOrder, F3_an_event_is_destroyed_and_another_made) {
    prove_read_after_write("RAW", [](scenario_run& run, auto&& write) {
        run.hold(run.s1);
        write();
        {
            const event written = run.s1.record();
            if (run.is_mended()) {
                run.s2.wait(written);
            }
        }
        if (run.is_manual()) {
            run.s2.wait(run.s3.record());  // may have the address of the first event, but is another one
        }
    });
}

WEIR_CONFORMANCE_F(CheckOrder, F3_a_wait_before_any_record_is_none) {
    prove_read_after_write("stale-event", [](scenario_run& run, auto&& write) {
        event written;
        run.s2.wait(written);
        run.hold(run.s1);
        write();
        written.record(run.s1);
        if (run.is_mended()) {
            run.s2.wait(written);
        }
    });
}

WEIR_CONFORMANCE_F(CheckOrder, F7_overlapping_slices_of_one_buffer) {
    prove(
        {1, 2}, {{"first half", "middle", "WAW"}},
        [](scenario_run& run) {
            array x = zeroed(run);
            run.hold(run.s1);
            set(run.at(run.s1, "first half"), x.slice(0, size / 2), 1);
            set(run.at(run.s2, "second half"), x.slice(size / 2, size), 3);
            run.by_hand(run.s2, run.s1);
            run.finish({set(run.at(run.s2, "middle"), x.slice(size / 2 - 1, size / 2 + 1), 2)});
            const auto all = x.read<double>();
            return std::vector{all[0], all[size / 2 - 1]};
        },
        __FILE__);
}

WEIR_CONFORMANCE_F(CheckOrder, F12_several_independent_faults_are_all_reported_once_each) {
    prove(
        {1, 0, 2, 2},
        {{"write x", "read x", "RAW"}, {"read y", "write y", "WAR"}, {"first write of z", "second write of z", "WAW"}},
        [](scenario_run& run) {
            array x = zeroed(run);
            array y = zeroed(run);
            array z = zeroed(run);
            array copy_of_x = zeroed(run);
            array copy_of_y = zeroed(run);
            std::vector<completion> early;
            run.hold(run.s1);
            for (int i = 0; i < 3; ++i) {
                set(run.at(run.s1, "write x"), x, 1);
                duplicate(run.at(run.s1, "read y"), y, copy_of_y);
                set(run.at(run.s1, "first write of z"), z, 1);
                if (run.is_mended()) {
                    run.s2.wait(run.s1);
                }
                early.push_back(duplicate(run.at(run.s2, "read x"), x, copy_of_x));
                early.push_back(set(run.at(run.s2, "second write of z"), z, 2));
                if (i < 2 && run.is_manual()) {
                    run.s1.wait(run.s2);
                }
            }
            early.push_back(set(run.at(run.s2, "write y"), y, 2));
            run.finish(early);
            return std::vector{last(copy_of_x), last(copy_of_y), last(z), last(y)};
        },
        __FILE__);
}

/// An operation on `s` that fails and should change x.
void fail(const stream& s, array& x) {
    access(
        s, [](auto...) { throw std::out_of_range("out of range"); }, inout(x.view<double>()));
}

WEIR_CONFORMANCE_F(CheckOrder, K4_a_host_that_is_refused_what_failed_raced_for_it_all_the_same) {
    const stream s(device_);
    array x = zeros({size}, dtype::float64, s);
    s.synchronize();
    const ordering_scope manual(ordering_mode::manual);
    for (const bool mended : {false, true}) {
        const check_scope check;
        fail(s, x);
        if (mended) {
            EXPECT_THROW(s.synchronize(), operation_error);
        }
        EXPECT_THROW(static_cast<void>(x.read<double>()), operation_error);
        ASSERT_EQ(check.report().size(), mended ? 0U : 1U) << check.report().to_string();
        EXPECT_TRUE(mended || check.report().races()[0].kind == "host");
    }
}

WEIR_CONFORMANCE_F(CheckOrder, K4_a_host_that_is_refused_what_failed_has_waited_for_it) {
    const stream s(device_);
    const stream other(device_);
    array x = zeros({size}, dtype::float64, s);
    for (const bool asks : {false, true}) {
        const check_scope check;
        fail(s, x);
        if (asks) {
            EXPECT_THROW(static_cast<void>(x.read<double>()), operation_error);
        }
        const ordering_scope manual(ordering_mode::manual);
        set(on(other), x, 1);
        EXPECT_EQ(check.report().size(), asks ? 0U : 1U) << check.report().to_string();
        other.synchronize();
    }
    EXPECT_THROW(device_.synchronize(), operation_error);
}

}  // namespace
}  // namespace weir
