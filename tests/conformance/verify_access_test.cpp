// Rule K1: with WEIR_VERIFY_ACCESS, operations are held to what they declare, where host code runs them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <span>
#include <string>

#include "runtime/submission/verify_access.hpp"
#include "support/devices.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using runtime::verify_access;
using test::here;
using ::testing::HasSubstr;

array numbers(const stream& on, double value) {
    array made = full({1000}, value, dtype::float64, on);
    on.synchronize();
    return made;
}

/// What the failure of an operation says; empty if it did not fail.
std::string failure_of(const completion& of) {
    try {
        of.synchronize();
    } catch (const operation_error& failed) {
        return failed.what();
    }
    return {};
}

/// Writes to its first operand, which it declares that it only reads.
completion change_what_is_read(const stream& s, const array& x, array& y) {
    return parallel_for(
        on(s).label("scale"), 1,
        [](std::size_t, std::span<const double> from, std::span<double> to) {
            const_cast<double&>(from[700]) = 7;  // NOLINT(cppcoreguidelines-pro-type-const-cast): the mistake
            to[0] = 1;
        },
        in<double>(x), inout<double>(y));
}

WEIR_CONFORMANCE(K1Verify, AChangeOfWhatIsOnlyReadFailsTheOperation) {
    const verify_access::scope verified;
    const stream s(here());
    const array x = numbers(s, 2);
    array y = numbers(s, 3);
    const std::string said = failure_of(change_what_is_read(s, x, y));
    EXPECT_THAT(said, HasSubstr("\"scale\""));
    EXPECT_THAT(said, HasSubstr("verify_access_test.cpp"));
    EXPECT_THAT(said, HasSubstr("only reads operand 1"));
    EXPECT_THAT(said, HasSubstr("within [5376, 5632) of memory #" + std::to_string(x.buffer().unique_id())));
    EXPECT_THAT(said, HasSubstr("declare the operand with inout"));
    EXPECT_THROW(static_cast<void>(y.read<double>()), operation_error) << "what it wrote is not valid";
}

WEIR_CONFORMANCE(K1Verify, ControlWithoutItNothingIsSaid) {
    const stream s(here());
    const array x = numbers(s, 2);
    array y = numbers(s, 3);
    EXPECT_EQ(failure_of(change_what_is_read(s, x, y)), "");
    EXPECT_EQ(x.read<double>()[700], 7);
}

WEIR_CONFORMANCE(K1Verify, WhatIsDeclaredWithOutIsNanBefore) {
    for (const bool on : {true, false}) {
        std::optional<verify_access::scope> verified;
        if (on) {
            verified.emplace();
        }
        const stream s(here());
        array x = numbers(s, 2);
        parallel_for(
            s, 999, [](std::size_t i, std::span<double> to) { to[i + 1] = to[i + 1] + 1; }, out<double>(x));
        const auto seen = x.read<double>();
        EXPECT_EQ(std::isnan(seen[999]), on) << "it reads what it declares that it does not";
        EXPECT_EQ(std::isnan(seen[0]), on) << "it does not write all that it declares";
    }
}

WEIR_CONFORMANCE(K1Verify, WhatKeepsToItsDeclarationComputesAsBefore) {
    const verify_access::scope verified;
    const stream s(here());
    array x = numbers(s, 2);
    array y = numbers(s, 3);
    compute(s, binary_operation::add, x, y, x);  // reads and overwrites x
    EXPECT_EQ(x.read<double>()[5], 5);
    parallel_for(
        s, 1000, [](std::size_t i, std::span<double> to) { to[i] += 1; }, inout<double>(x));
    copy(s, y.slice(0, 500), x.slice(250, 750));
    fill(s, x.slice(0, 1), 9);
    EXPECT_EQ(x.read<double>()[0], 9);
    EXPECT_EQ(x.read<double>()[1], 6);
    EXPECT_EQ(y.read<double>()[0], 6);
    EXPECT_EQ(y.read<double>()[500], 3);
    const token t;
    EXPECT_EQ(failure_of(host_task(
                  s, [] {}, inout(t))),
              "");
}

WEIR_CONFORMANCE(K1Verify, OfStridedElementsThoseAloneCount) {
    const verify_access::scope verified;
    const stream s(here());
    array x = numbers(s, 2);
    const array even = x[{slice{0, 1000, 2}}];
    const auto touch = [&](std::ptrdiff_t element) {
        return failure_of(parallel_for(
            s, 1,
            [element](std::size_t, strided_span<const double, 1> from) {
                const_cast<double*>(from.data())[element] = 8;  // NOLINT(cppcoreguidelines-pro-type-const-cast)
            },
            in(even.strided<double, 1>())));
    };
    EXPECT_EQ(touch(11), "") << "lies between them";
    EXPECT_THAT(touch(10), HasSubstr("only reads operand 1"));
}

WEIR_CONFORMANCE(K1Verify, HostTasksAreHeldToItWhereTheHostReachesTheMemory) {
    const verify_access::scope verified;
    const stream s(cpu());
    const stream on_device(here());
    const array x = numbers(s, 2);
    const completion wrong = host_task(
        on(on_device).label("report"),
        [](std::span<const double> from) {
            const_cast<double&>(from[0]) = 7;  // NOLINT(cppcoreguidelines-pro-type-const-cast): the mistake
        },
        in<double>(x));
    EXPECT_THAT(failure_of(wrong), HasSubstr("\"report\""));
}

}  // namespace
}  // namespace weir
