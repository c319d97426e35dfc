// Rule K5: launches that declare tokens. On a GPU as well.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "kernel_gate.hpp"
#include "kernel_support.hpp"
#include "support/time_limit.hpp"
#include "weir/weir.hpp"

namespace weir::test {
namespace {

using ::testing::HasSubstr;

constexpr const char* source = R"(
extern "C" __global__ void take(int* counter, int* into) { into[0] = counter[0]++; }
)";

array one_number(std::int32_t value) {
    const stream s(cuda());
    array x = full({1}, value, dtype::int32, s);
    s.synchronize();
    return x;
}

/// A counter that kernels change through a pointer which they do not declare: as device-side queues and slots of pools do.
class KernelsWithTokens : public ::testing::Test {
protected:
    completion launch_take(const on& where, array& into, token_argument&& use) {
        // The token stands between the arguments of the kernel, which gets nothing for it.
        return launch(where, take_, {1, 1}, counter_address(), std::move(use), out<std::int32_t>(into));
    }
    /// By value, so that Weir knows nothing of what is there.
    struct address {
        std::int32_t* pointer;
    };
    [[nodiscard]] address counter_address() const { return {reinterpret_cast<std::int32_t*>(counter_.device_data())}; }
    static std::int32_t value_of(const array& x) { return x.read<std::int32_t>()[0]; }

    time_limit limit_{120, "a kernel that waits to be let go"};
    kernel take_ = kernel::from_source(source, "take");
    kernel_gate gate_;
    array counter_ = one_number(10);
    array first_ = one_number(0);
    array second_ = one_number(0);
    const stream a_{cuda()};
    const stream b_{cuda()};
};

TEST_F(KernelsWithTokens, K5OrderWhatTheirArraysDoNot) {
    const token queue("queue on the device");
    gate_.hold(a_);
    launch_take(a_, first_, inout(queue));
    const completion last = launch_take(b_, second_, inout(queue));
    EXPECT_FALSE(last.done());
    gate_.open();
    EXPECT_EQ(value_of(first_), 10);
    EXPECT_EQ(value_of(second_), 11);
}

TEST_F(KernelsWithTokens, K5OrderLaunchesWithListsOfArguments) {
    const kernel take = kernel::from_source(source, "take").with_signature("int64 counter, out int32* into");
    const auto place = static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(counter_address().pointer));
    const token queue("queue on the device");
    gate_.hold(a_);
    take.launch(a_, {1, 1}, {place, kernel_argument::out(first_)}, {inout(queue)});
    const completion last = take.launch(b_, {1, 1}, {place, kernel_argument::out(second_)}, {inout(queue)});
    EXPECT_FALSE(last.done());
    gate_.open();
    EXPECT_EQ(value_of(first_), 10);
    EXPECT_EQ(value_of(second_), 11);
}

TEST_F(KernelsWithTokens, K5ControlUnderManualTheSecondGoesFirst) {
    const ordering_scope manual(ordering_mode::manual);
    const token queue("queue on the device");
    gate_.hold(a_);
    const completion first = launch_take(a_, first_, inout(queue));
    launch_take(b_, second_, inout(queue)).synchronize();
    EXPECT_FALSE(first.done());
    gate_.open();
    first.synchronize();
    EXPECT_EQ(value_of(first_), 11);
    EXPECT_EQ(value_of(second_), 10);
}

TEST_F(KernelsWithTokens, K5AHostTaskAndAKernelShareOne) {
    const token queue("queue on the device");
    gate_.hold(a_);
    launch_take(a_, first_, inout(queue));
    const stream host(cpu());
    int seen = 0;
    const completion last = host_task(
        host, [&seen] { ++seen; }, in(queue));
    EXPECT_FALSE(last.done());
    EXPECT_THAT(explain(queue).to_string(), HasSubstr("waits for"));
    gate_.open();
    last.synchronize();
    EXPECT_EQ(seen, 1);
    EXPECT_EQ(value_of(first_), 10);
}

TEST_F(KernelsWithTokens, K5ASignatureCountsTheKernelsArgumentsAlone) {
    const kernel checked = take_.with_signature("inout int* counter, out int* into");
    const token queue;
    const token other;
    launch(a_, checked, {1, 1}, in(queue), inout<std::int32_t>(counter_), out<std::int32_t>(first_), inout(other));
    EXPECT_EQ(value_of(first_), 10);
    EXPECT_THROW(launch(a_, checked, {1, 1}, inout<std::int32_t>(counter_), inout(queue)), argument_error)
        << "a token in the place of an array";
}

}  // namespace
}  // namespace weir::test
