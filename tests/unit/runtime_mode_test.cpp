// The ordering mode of an array changes while an operation on it is enqueued (rule O5).
#include <gtest/gtest.h>

#include <span>

#include "order/mark.hpp"
#include "support/scarce_memory.hpp"
#include "weir/testing.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

const array* changing = nullptr;
bool has_changed = false;
void leave_to_weir() {
    changing->set_ordering(ordering_mode::automatic);
    has_changed = true;
}
void leave_to_program() {
    changing->set_ordering(ordering_mode::manual);
    has_changed = true;
}

completion write(const stream& s, array& x) {
    return access(
        s, [](native_stream, std::span<double>) {}, inout<double>(x));
}
completion read(const stream& s, const array& x) {
    return access(
        s, [](native_stream, std::span<const double>) {}, in<double>(x));
}

/// An operation finds the mode `before`. At its nth allocation, `change` sets another mode. Later operations must be ordered after what
/// was there first, whichever mode that operation used. False once the operation makes fewer allocations.
bool expect_nothing_forgotten(ordering_mode before, void (*change)(), long nth) {
    testing::gate held;
    const stream a;
    const stream b;
    const stream c;
    array x = empty(8, dtype::float64, a);
    a.synchronize();
    held.hold(a);
    const completion first = write(a, x);
    x.set_ordering(before);
    changing = &x;
    has_changed = false;
    {
        const trace_scope trace;  // so that there is more to allocate
        test::at_allocation(nth, change);
        write(b, x);
        test::at_allocation(0, nullptr);
    }
    x.set_ordering(ordering_mode::automatic);
    const completion last = read(c, x);
    EXPECT_TRUE(last.known(detail::key) &&
                last.known(detail::key)->covers({first.timeline(detail::key), first.epoch(detail::key)}))
        << "allocation " << nth;
    held.open();
    last.synchronize();
    return has_changed;
}

TEST(O5, AModeThatChangesWhileAnOperationIsEnqueuedLosesNoOrder) {
    long changes = 0;
    while (expect_nothing_forgotten(ordering_mode::manual, leave_to_weir, changes + 1)) {
        ++changes;
    }
    EXPECT_GE(changes, 2);
    changes = 0;
    while (expect_nothing_forgotten(ordering_mode::automatic, leave_to_program, changes + 1)) {
        ++changes;
    }
    EXPECT_GE(changes, 2);
}

}  // namespace
}  // namespace weir
