// Who orders an array changes while an operation on it is enqueued (rule O5).
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

completion write(const stream& s, const array& x) {
    return access(s, inout<double>(x), [](native_stream, std::span<double>) {});
}
completion read(const stream& s, const array& x) {
    return access(s, in<double>(x), [](native_stream, std::span<const double>) {});
}

/// An operation finds `before`, and just when it allocates for the nth time, the mode becomes another one by `change`. Whoever
/// comes afterwards must be ordered after what was there first, whatever the operation made of that. False once it
/// allocates less often than that.
bool expect_nothing_forgotten(ordering_mode before, void (*change)(), long nth) {
    testing::gate held;
    const stream a;
    const stream b;
    const stream c;
    const array x = empty(8, dtype::float64, a);
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
    EXPECT_TRUE(last.known() && last.known()->covers({first.timeline(), first.epoch()})) << "allocation " << nth;
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
