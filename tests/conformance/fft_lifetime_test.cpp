// Scenario E3: operands that are dropped while a transform on another stream still reads them.
//
// Other pools free on the stream on which they allocated. `memory::allocating_stream` does so, too: with it, the program
// must order that stream itself before it drops the operand, as the users of such pools must today.
#include <gtest/gtest.h>

#include <optional>

#include "support/arrays.hpp"
#include "support/devices.hpp"
#include "weir/fft.hpp"
#include "weir/memory_resource.hpp"
#include "weir/testing.hpp"

namespace weir {
namespace {

using test::here;

using complex = std::complex<double>;
using numbers = std::vector<complex>;

constexpr std::int64_t n = 4096;

/// The pool, and whether the program orders the stream that allocated after the one that reads.
struct setting {
    bool frees_on_the_allocating_stream;
    bool ordered_by_hand;
};

/// The transform of n ones.
numbers right() {
    numbers result(n);
    result[0] = static_cast<double>(n);
    return result;
}

/// An operand that is made on one stream, read by a late transform on another, and dropped at the end of `execute`, before
/// the first stream makes and fills another array of its size. `execute` calls its last argument before the drop. Returns the transform.
template <class Execute>
numbers transform_of_a_dropped_operand(device where, const setting& how, Execute&& execute) {
    std::optional<memory::use> control;
    if (how.frees_on_the_allocating_stream) {
        control.emplace(memory::allocating_stream());
    }
    const stream allocating(where);
    const stream executing(where);
    array result = zeros(n, dtype::complex128, executing);
    where.synchronize();

    testing::gate held;
    held.hold(executing);
    execute(allocating, executing, result, [&] {
        if (how.ordered_by_hand) {
            allocating.wait(executing.record());
        }
    });
    array next = empty(n, dtype::complex128, allocating);
    fill(allocating, next, 7.0);
    if (how.frees_on_the_allocating_stream && !how.ordered_by_hand) {
        allocating.synchronize();  // nothing holds it
    }
    held.open();
    where.synchronize();
    EXPECT_EQ(test::values_of<complex>(next), numbers(n, 7.0));
    return test::values_of<complex>(result);
}

template <class Execute>
void expect_right_unless_freed_too_early(device where, Execute&& execute) {
    EXPECT_EQ(transform_of_a_dropped_operand(where, {false, false}, execute), right()) << "Weir's pool";
    EXPECT_NE(transform_of_a_dropped_operand(where, {true, false}, execute), right()) << "control: freed too early";
    EXPECT_EQ(transform_of_a_dropped_operand(where, {true, true}, execute), right()) << "ordered by hand";
}

WEIR_CONFORMANCE(E3Lifetime, AnOperandOfTheStatelessCallIsDropped) {
    expect_right_unless_freed_too_early(
        here(), [](const stream& allocating, const stream& executing, array& result, auto&& before_dropping) {
            array a = full(n, 1.0, dtype::complex128, allocating);
            allocating.synchronize();
            fft::fft(executing, a, result);
            before_dropping();
        });
}

WEIR_CONFORMANCE(E3Lifetime, AnOperandOwnedByThePlanAloneIsReleased) {
    expect_right_unless_freed_too_early(
        here(), [](const stream& allocating, const stream& executing, array& result, auto&& before_dropping) {
            const auto make_plan = [&] { return fft_plan(full(n, 1.0, dtype::complex128, allocating)); };
            fft_plan f = make_plan();
            f.plan(allocating);
            allocating.synchronize();
            f.execute(executing, fft_direction::forward, result);
            before_dropping();
            f.release_operand();
            f.free();
        });
}

}  // namespace
}  // namespace weir
