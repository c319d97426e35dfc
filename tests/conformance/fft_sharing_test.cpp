// Scenario A12 and rule P2 for transforms: operands that another library shares.
#include <gtest/gtest.h>

#include "support/arrays.hpp"
#include "support/sharing_versions.hpp"
#include "weir/fft.hpp"

namespace weir {
namespace {

using namespace test::sharing;  // NOLINT(google-build-using-namespace): the words of these tests
using test::expect_sharing_versions;
using test::library_without_queues;
using test::producer;
using test::sharing_run;
using complex = std::complex<double>;

/// The real transform of n times the same number.
std::vector<complex> transform_of(double value) {
    std::vector<complex> result(n / 2 + 1);
    result[0] = static_cast<double>(n) * value;
    return result;
}

/// The elements of a library's array, transformed between two additions of the library's.
std::vector<complex> add_transform_add(sharing_run& run, void (sharing_run::*hold)()) {
    const producer::array t = theirs(run.library, 1);
    array a = import(run.library, t);
    array result = zeros({n / 2 + 1}, dtype::complex128, run.s);
    run.s.synchronize();
    (run.*hold)();
    run.by_library({}, {a}, run.at("first addition"), [&] { run.library->add(t, 1); });
    run.enter_by_hand();
    fft::rfft(on(run.s, run.at("transform")), a, result);
    run.exit_by_hand();
    run.by_library({}, {a}, run.at("second addition"), [&] { run.library->add(t, 1); });
    run.finish();
    return test::values_of<complex>(result);
}

std::vector<test::race_names> races() { return {{"first addition", "transform"}, {"transform", "second addition"}}; }

WEIR_CONFORMANCE(A12, ATransformSeesTheFirstAdditionOfALibraryThatIsLate) {
    expect_sharing_versions(transform_of(2), races(), __FILE__,
                            [](sharing_run& run) { return add_transform_add(run, &sharing_run::hold_library); });
}

WEIR_CONFORMANCE(A12, ATransformThatIsLateDoesNotSeeTheSecondAddition) {
    expect_sharing_versions(transform_of(2), races(), __FILE__,
                            [](sharing_run& run) { return add_transform_add(run, &sharing_run::hold_stream); });
}

TEST(P2, TheCallBlocksForAnOperandOfALibraryWithoutQueues) {
    const auto library = std::make_shared<library_without_queues>();
    numbers memory = all(1);
    const stream s;
    array x(import_live(memory.data(), n * sizeof(double), cpu(), library, 0), dtype::float64, {n});
    fft_plan f(x);
    f.plan(s);
    for (const bool by_plan : {false, true}) {
        array y = by_plan ? f.execute(s, fft_direction::forward) : fft::rfft(s, x);
        memory.assign(n, 5);  // y = fft(x); x += 4
        EXPECT_EQ(test::values_of<complex>(y), transform_of(1));
        memory.assign(n, 1);
    }

    // Control: under manual ordering the call returns before, and sees the change.
    const ordering_scope manual(ordering_mode::manual);
    testing::gate held;
    held.hold(s);
    array late = fft::rfft(s, x);
    memory.assign(n, 5);
    held.open();
    s.synchronize();
    EXPECT_EQ(test::values_of<complex>(late), transform_of(5));
}

}  // namespace
}  // namespace weir
