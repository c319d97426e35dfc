// Scenarios F1, F2, F3 and F12: the faulty program is reported with the right pair of source lines, the mended one is
// silent. Each in three versions: with Weir's ordering, with the ordering taken out, mended by hand.
#include <gtest/gtest.h>

#include <vector>

#include "check_support.hpp"

namespace weir {
namespace {

using testing::prove;
using testing::run;

stream named(const char* name) { return stream(cpu(), {0, name}); }

TEST(CheckOrder, F1_read_after_write) {
    prove(
        [](run& now) {
            const stream a = named("a");
            const stream b = named("b");
            const array x = run::make(0);
            const array y = run::make(0);
            now.hold(a);
            run::set(now.at(a, "write"), x, 1);
            if (now.ordered_by_hand()) {
                b.wait(a.record());
            }
            const completion early = run::duplicate(now.at(b, "read"), x, y);
            now.finish({early});
            return std::vector{run::last(y)};
        },
        {1}, {{"RAW", "write", "read"}});
}

TEST(CheckOrder, F1_write_after_read) {
    prove(
        [](run& now) {
            const stream a = named("a");
            const stream b = named("b");
            const array x = run::make(1);
            const array y = run::make(0);
            now.hold(a);
            run::duplicate(now.at(a, "read"), x, y);
            if (now.ordered_by_hand()) {
                b.wait(a);
            }
            const completion early = run::set(now.at(b, "write"), x, 2);
            now.finish({early});
            return std::vector{run::last(y), run::last(x)};
        },
        {1, 2}, {{"WAR", "read", "write"}});
}

TEST(CheckOrder, F1_write_after_write) {
    prove(
        [](run& now) {
            const stream a = named("a");
            const stream b = named("b");
            const array x = run::make(0);
            now.hold(a);
            const completion written = run::set(now.at(a, "first write"), x, 1);
            on second = now.at(b, "second write");
            if (now.ordered_by_hand()) {
                second.after(written);
            }
            const completion early = run::set(second, x, 2);
            now.finish({early});
            return std::vector{run::last(x)};
        },
        {2}, {{"WAW", "first write", "second write"}});
}

TEST(CheckOrder, F1_a_write_after_two_readers_of_which_one_is_ordered) {
    prove(
        [](run& now) {
            const stream a = named("a");
            const stream b = named("b");
            const stream c = named("c");
            const array x = run::make(1);
            const array y = run::make(0);
            const array z = run::make(0);
            run::duplicate(now.at(a, "one reader"), x, y);
            now.hold(b);
            run::duplicate(now.at(b, "other reader"), x, z);
            if (now.is_manual()) {
                c.wait(a.record());
            }
            if (now.ordered_by_hand()) {
                c.wait(b.record());
            }
            const completion early = run::set(now.at(c, "write"), x, 2);
            now.finish({early});
            return std::vector{run::last(x), run::last(y), run::last(z)};
        },
        {2, 1, 1}, {{"WAR", "other reader", "write"}});
}

TEST(CheckOrder, F2_a_chain_of_events_over_ten_streams) {
    prove(
        [](run& now) {
            std::vector<stream> chain;
            for (int i = 0; i < 10; ++i) {
                chain.push_back(named("link"));
            }
            const array x = run::make(0);
            const array y = run::make(0);
            now.hold(chain.front());
            run::set(now.at(chain.front(), "write"), x, 1);
            for (std::size_t i = 1; i < chain.size() && now.is_manual(); ++i) {
                if (i != 5 || now.ordered_by_hand()) {
                    chain[i].wait(chain[i - 1].record());
                }
            }
            const completion early = run::duplicate(now.at(chain.back(), "read"), x, y);
            now.finish({early});
            return std::vector{run::last(y)};
        },
        {1}, {{"RAW", "write", "read"}});
}

TEST(CheckOrder, F2_transitive_order_by_different_paths) {
    prove(
        [](run& now) {
            const stream a = named("a");
            const stream b = named("b");
            const stream c = named("c");
            const stream d = named("d");
            const array x = run::make(0);
            const array y = run::make(0);
            now.hold(a);
            run::set(now.at(a, "write x"), x, 1);
            if (now.ordered_by_hand()) {
                b.wait(a);
                c.wait(a);
            }
            run::set(now.at(b, "write y"), y, 1);
            if (now.is_manual()) {
                d.wait(b);
                d.wait(c);
            }
            const completion early = run::duplicate(now.at(d, "read x, write y"), x, y);
            now.finish({early});
            return std::vector{run::last(y)};
        },
        {1}, {{"RAW", "write x", "read x, write y"}});
}

TEST(CheckOrder, F2_merging_keeps_the_larger_of_two_clocks) {
    prove(
        [](run& now) {
            const stream a = named("a");
            const stream b = named("b");
            const array x = run::make(0);
            const array y = run::make(0);
            const event early = a.record();
            now.hold(a);
            run::set(now.at(a, "write"), x, 1);
            const event late = a.record();
            if (now.ordered_by_hand()) {
                b.wait(late);
            }
            if (now.is_manual()) {
                b.wait(early);
            }
            const completion read = run::duplicate(now.at(b, "read"), x, y);
            now.finish({read});
            return std::vector{run::last(y)};
        },
        {1}, {{"RAW", "write", "read"}});
}

TEST(CheckOrder, F3_work_after_the_record_is_not_covered) {
    prove(
        [](run& now) {
            const stream a = named("a");
            const stream b = named("b");
            const array x = run::make(0);
            const array y = run::make(0);
            run::set(now.at(a, "first write"), x, 1);
            event written = a.record();
            now.hold(a);
            run::set(now.at(a, "second write"), x, 2);
            if (now.ordered_by_hand()) {
                written.record(a);  // the later record counts
            }
            if (now.is_manual()) {
                b.wait(written);
            }
            const completion early = run::duplicate(now.at(b, "read"), x, y);
            now.finish({early});
            return std::vector{run::last(y)};
        },
        {2}, {{"RAW", "second write", "read"}});
}

TEST(CheckOrder, F3_a_record_is_replaced_by_a_later_one) {
    prove(
        [](run& now) {
            const stream a = named("a");
            const stream b = named("b");
            const stream idle = named("idle");
            const array x = run::make(0);
            const array y = run::make(0);
            now.hold(a);
            run::set(now.at(a, "write"), x, 1);
            event written = a.record();
            if (!now.ordered_by_hand()) {
                written.record(idle);
            }
            if (now.is_manual()) {
                b.wait(written);
            }
            const completion early = run::duplicate(now.at(b, "read"), x, y);
            now.finish({early});
            return std::vector{run::last(y)};
        },
        {1}, {{"RAW", "write", "read"}});
}

TEST(CheckOrder, F3_an_event_is_destroyed_and_another_made) {
    prove(
        [](run& now) {
            const stream a = named("a");
            const stream b = named("b");
            const stream idle = named("idle");
            const array x = run::make(0);
            const array y = run::make(0);
            now.hold(a);
            run::set(now.at(a, "write"), x, 1);
            {
                const event written = a.record();
                if (now.ordered_by_hand()) {
                    b.wait(written);
                }
            }
            if (now.is_manual()) {
                b.wait(idle.record());  // may lie where the first event lay
            }
            const completion early = run::duplicate(now.at(b, "read"), x, y);
            now.finish({early});
            return std::vector{run::last(y)};
        },
        {1}, {{"RAW", "write", "read"}});
}

TEST(CheckOrder, F3_a_wait_before_any_record_is_none) {
    prove(
        [](run& now) {
            const stream a = named("a");
            const stream b = named("b");
            const array x = run::make(0);
            const array y = run::make(0);
            event written;
            b.wait(written);
            now.hold(a);
            run::set(now.at(a, "write"), x, 1);
            written.record(a);
            if (now.ordered_by_hand()) {
                b.wait(written);
            }
            const completion early = run::duplicate(now.at(b, "read"), x, y);
            now.finish({early});
            return std::vector{run::last(y)};
        },
        {1}, {{"RAW", "write", "read"}});
}

TEST(CheckOrder, F12_several_independent_faults_are_all_reported_once_each) {
    prove(
        [](run& now) {
            const stream a = named("a");
            const stream b = named("b");
            const array x = run::make(0);
            const array y = run::make(1);
            const array z = run::make(0);
            const array copy_of_x = run::make(0);
            const array copy_of_y = run::make(0);
            std::vector<completion> early;
            now.hold(a);
            for (int i = 0; i < 3; ++i) {
                run::set(now.at(a, "write x"), x, 1);
                run::duplicate(now.at(a, "read y"), y, copy_of_y);
                run::set(now.at(a, "first write of z"), z, 1);
                if (now.ordered_by_hand()) {
                    b.wait(a);
                }
                early.push_back(run::duplicate(now.at(b, "read x"), x, copy_of_x));
                early.push_back(run::set(now.at(b, "second write of z"), z, 2));
                if (i < 2 && now.is_manual()) {
                    a.wait(b);
                }
            }
            early.push_back(run::set(now.at(b, "write y"), y, 2));
            now.finish(early);
            return std::vector{run::last(copy_of_x), run::last(copy_of_y), run::last(z), run::last(y)};
        },
        {1, 1, 2, 2},
        {{"RAW", "write x", "read x"}, {"WAR", "read y", "write y"}, {"WAW", "first write of z", "second write of z"}});
}

}  // namespace
}  // namespace weir
