// Launches of kernels: which are refused, what orders them, and what happens if they fail.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/kernel_support.hpp"
#include "weir/error.hpp"
#include "weir/ordering.hpp"

namespace weir::test {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

const kernel& fill_kernel() {
    static const auto* const one = new kernel(kernel::from_source(kernel_source, "fill"));
    return *one;
}

/// The error with which a launch of `nothing` in this shape is refused.
std::string refusal(const launch_config& config) {
    const stream on(cuda());
    static const auto* const nothing = new kernel(kernel::from_source(kernel_source, "nothing"));
    return message_of<argument_error>([&] {
        launch(on, *nothing, config);
        on.synchronize();
    });
}

TEST(KernelLaunch, ShapesOfUpToThreeAxes) {
    const stream on(cuda());
    const kernel mark = kernel::from_source(R"(
extern "C" __global__ void mark(int* y) {
    const int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    const int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    y[block * blockDim.x * blockDim.y * blockDim.z + thread] = gridDim.y * 100 + blockDim.z;
}
)",
                                            "mark");
    array y = empty({2 * 3 * 4 * 5 * 6 * 7}, dtype::int32, on);
    launch(on, mark, {{2, 3, 4}, {5, 6, 7}}, out(y.view<std::int32_t>()));
    EXPECT_THAT(values_of<std::int32_t>(y), Each(307));
}

TEST(KernelLaunch, ShapesThatCannotBeAreRefused) {
    EXPECT_EQ(refusal({1, 1024}), "nothing was thrown");
    for (const launch_config& empty : {launch_config{0, 1}, launch_config{1, 0}, launch_config{{1, 1, 0}, 1}}) {
        EXPECT_THAT(refusal(empty), HasSubstr("each number is at least 1"));
    }
    EXPECT_THAT(refusal({-1, 32}),
                HasSubstr("a grid of -1 x 1 x 1 blocks of 32 x 1 x 1 threads: each number is at least 1"));
    EXPECT_THAT(refusal({1, {32, -2}}), HasSubstr("blocks of 32 x -2 x 1 threads: each number is at least 1"));
    EXPECT_THAT(refusal({std::size_t{1} << 32U, 1}), HasSubstr("4294967296 blocks along x: cuda:0 takes 2147483647"));
    EXPECT_THAT(refusal({{1, 65536}, 1}), HasSubstr("65536 blocks along y: cuda:0 takes 65535"));
    EXPECT_THAT(refusal({1, 1025}), HasSubstr("1025 threads along x: cuda:0 takes 1024"));
    EXPECT_THAT(refusal({1, {1, 1, 65}}), HasSubstr("65 threads along z: cuda:0 takes 64"));
    EXPECT_THAT(refusal({1, {64, 32}}), HasSubstr("blocks of 64 x 32 x 1 threads"));
}

TEST(KernelLaunch, ARefusalSaysTheLabelAndTheLine) {
    const stream on(cuda());
    array y = empty({4}, dtype::int32, on);
    const kernel declared = fill_kernel().with_signature("out int* y, int value, int n");
    const std::string file(source_location::current().file);
    const auto place = [&](const char* label, std::uint32_t line) {
        return HasSubstr(std::string("; the launch is \"") + label + "\" (" + file + ":" + std::to_string(line) + ")");
    };
    const std::uint32_t here = source_location::current().line;
    const std::string shape = message_of<argument_error>([&] {
        launch(weir::on(on).label("load"), declared, {0, 1}, out(y.view<std::int32_t>()), 1, 4);  // line here + 2
    });
    EXPECT_THAT(shape, AllOf(HasSubstr("each number is at least 1"), place("load", here + 2)));
    const std::string type = message_of<argument_type_error>([&] {
        launch(on, declared, {1, 1}, out(y.view<std::int32_t>()), 1.5, 4);  // here + 6
    });
    EXPECT_THAT(type, AllOf(HasSubstr("argument 2 of the kernel fill"), place("fill", here + 6)));
    const std::string list = message_of<argument_type_error>([&] {
        declared.launch(weir::on(on).label("list"), {1, 1}, {kernel_argument::out(y), 1.5, 4});  // here + 10
    });
    EXPECT_THAT(list, AllOf(HasSubstr("argument 2 of the kernel fill"), place("list", here + 10)));
    EXPECT_THAT(message_of<argument_error>([&] {
                    declared.launch(on, {1, 1}, {kernel_argument::out(y)});
                }),
                AllOf(HasSubstr("got 1 arguments"), HasSubstr("the launch is \"fill\" (")));
}

TEST(KernelLaunch, SharedMemoryIsRaisedToWhatTheDeviceAllows) {
    EXPECT_EQ(refusal({1, 1, 48U << 10U}), "nothing was thrown");
    EXPECT_EQ(refusal({1, 1, 200U << 10U}), "nothing was thrown") << "beyond what needs no asking";
    EXPECT_EQ(refusal({1, 1, 227U << 10U}), "nothing was thrown");
    EXPECT_THAT(refusal({1, 1, (227U << 10U) + 1}),
                AllOf(HasSubstr("cannot have 232449 bytes of shared memory"), HasSubstr("cuda:0 has 232448")));
}

TEST(KernelLaunch, StreamsOfOtherDevicesAreRefused) {
    const kernel& fill = fill_kernel();
    for (const device other : {cpu(), cpu_inline(), sim()}) {
        const stream on(other, {.name = "load"});
        array y = empty({4}, dtype::int32, on);
        EXPECT_THAT(message_of<argument_error>([&] {
                        launch(on, fill, {1, 1}, out(y.view<std::int32_t>()), 1, 4);
                    }),
                    AllOf(HasSubstr("the kernel fill is for cuda:0, and the stream \"load\" is one of " + other.name()),
                          HasSubstr("use parallel_for or host_task")));
    }
    if (has_two_gpus()) {
        const stream on(cuda(1));
        EXPECT_THAT(message_of<argument_error>([&] {
                        launch(on, fill, {1, 1}, 1);
                    }),
                    AllOf(HasSubstr("is one of cuda:1"), HasSubstr("make it for cuda:1, too")));
    }
}

TEST(KernelLaunch, ABodyForTheHostIsRefusedWithWhatToDo) {
    const stream on(cuda());
    array y = make_array<std::int32_t>(on, {4}, {1, 1, 1, 1});
    EXPECT_THAT(
        message_of<argument_error>([&] {
            parallel_for(
                on, 4, [](std::size_t i, std::span<std::int32_t> to) { to[i] = 2; }, inout(y.view<std::int32_t>()));
        }),
        AllOf(HasSubstr("is code for the host, and cuda:0 runs none"), HasSubstr("nvcc"), HasSubstr("weir::kernel"),
              HasSubstr("host_task")));
    EXPECT_THAT(values_of<std::int32_t>(y), Each(1));
}

TEST(KernelLaunch, ItRunsOnTheDeviceThatItIsFor) {
    if (!has_two_gpus()) {
        GTEST_SKIP() << "needs two CUDA devices";
    }
    const kernel fill = kernel::from_source(kernel_source, "fill", {}, cuda(1));
    const stream on(cuda(1));
    array y = empty({1000}, dtype::int32, on);
    launch(on, fill, {4, 256}, out(y.view<std::int32_t>()), 3, 1000);
    EXPECT_THAT(values_of<std::int32_t>(y), Each(3));
    const stream wrong(cuda(0));
    EXPECT_THAT(message_of<argument_error>([&] {
                    launch(wrong, fill_kernel(), {1, 1}, out(y.view<std::int32_t>()), 3, 4);
                }),
                HasSubstr("declares memory of cuda:1"));
}

TEST(KernelLaunch, MemoryThatTheDeviceDoesNotReachIsRefusedBesideItsOwn) {
    const kernel axpy = kernel::from_source(kernel_source, "axpy");
    axpy_arrays of(cuda());
    array far = full({1000}, 2, dtype::float32, stream(cpu()));
    EXPECT_THAT(message_of<argument_error>([&] {
                    launch(of.on, axpy, {4, 256}, in(far.view<float>()), inout(of.y.view<float>()), 1.0F, 1000LL);
                }),
                AllOf(HasSubstr("runs on cuda:0 and declares memory of cpu, which cuda:0 cannot reach"),
                      HasSubstr("copy it to an array on cuda:0 with weir::copy")));
    EXPECT_THAT(values_of<float>(of.y), Each(1.0F));
}

TEST(KernelLaunch, LaunchesAreOrderedByWhatTheyDeclare) {
    const kernel axpy = kernel::from_source(kernel_source, "axpy");
    axpy_arrays of(cuda());
    const stream other(cuda());
    for (int round = 0; round < 10; ++round) {
        const stream& on = round % 2 == 0 ? of.on : other;
        launch(on, axpy, {4, 256}, in(of.x.view<float>()), inout(of.y.view<float>()), 1.0F, 1000LL);
    }
    EXPECT_THAT(values_of<float>(of.y), Each(21.0F));
}

/// Fills `y` on `first`, whose work a gate holds, and copies it on `second`, which is free.
std::vector<std::int32_t> copied_behind_a_gate(ordering_mode mode, bool with_event) {
    const kernel copy_kernel = kernel::from_source(
        "extern \"C\" __global__ void duplicate(const int* x, int* y, int n) { for (int i = 0; i < n; ++i) y[i] = "
        "x[i]; }",
        "duplicate");
    const stream first(cuda());
    const stream second(cuda());
    array x = make_array<std::int32_t>(first, {100}, std::vector<std::int32_t>(100, 1));
    array y = make_array<std::int32_t>(second, {100}, std::vector<std::int32_t>(100, 1));
    first.synchronize();
    second.synchronize();
    const ordering_scope scope(mode);
    {
        const fake_gate gate(first.handle());
        const event filled = launch_event(first, fill_kernel(), {1, 1}, out(x.view<std::int32_t>()), 2, 100);
        EXPECT_FALSE(filled.done());
        on where(second);
        if (with_event) {
            where.after(filled);
        }
        const event copied =
            launch_event(where, copy_kernel, {1, 1}, in(x.view<std::int32_t>()), out(y.view<std::int32_t>()), 100);
        if (mode == ordering_mode::manual && !with_event) {
            copied.synchronize();  // nothing holds it
        } else {
            EXPECT_FALSE(copied.done());
        }
    }
    second.synchronize();
    first.synchronize();
    return values_of<std::int32_t>(y);
}

TEST(KernelLaunch, AReadOnAnotherStreamComesAfterTheWrite) {
    if (!fake_cuda::in_use()) {
        GTEST_SKIP() << "needs a gate of the fake driver";
    }
    EXPECT_THAT(copied_behind_a_gate(ordering_mode::automatic, false), Each(2));
    EXPECT_THAT(copied_behind_a_gate(ordering_mode::manual, true), Each(2)) << "after=: mended by hand";
    EXPECT_THAT(copied_behind_a_gate(ordering_mode::manual, false), Each(1)) << "the control: nothing orders it";
}

TEST(KernelLaunch, OneThatTheDriverRefusesFailsItsOutputs) {
    if (!fake_cuda::in_use()) {
        GTEST_SKIP() << "the fake fails on purpose";
    }
    const stream s(cuda());
    array y = make_array<std::int32_t>(s, {100}, std::vector<std::int32_t>(100, 1));
    array untouched = make_array<std::int32_t>(s, {1}, {8});
    s.synchronize();
    const kernel& fill = fill_kernel();
    fake_cuda::fail("cuLaunchKernelEx", 1, 1);
    const event failed = launch_event(on(s).label("fill y"), fill, {1, 1}, out(y.view<std::int32_t>()), 2, 100);
    const std::string message = message_of<operation_error>([&] { failed.synchronize(); });
    EXPECT_THAT(message, AllOf(HasSubstr("fill y"), HasSubstr("kernel_launch_test.cpp"), HasSubstr("cuLaunchKernelEx"),
                               HasSubstr("CUDA_ERROR_INVALID_VALUE")));
    EXPECT_THAT(message_of<operation_error>([&] { static_cast<void>(y.read<std::int32_t>()); }), HasSubstr("fill y"));
    EXPECT_THAT(values_of<std::int32_t>(untouched), Each(8)) << "what it had nothing to do with";
    launch(s, fill, {1, 1}, out(y.view<std::int32_t>()), 3, 100);
    EXPECT_THAT(values_of<std::int32_t>(y), Each(3)) << "written anew";
}

TEST(KernelLaunch, ARefusedLaunchLeavesNothingBehind) {
    const stream s(cuda());
    array y = make_array<std::int32_t>(s, {4}, {1, 1, 1, 1});
    EXPECT_THAT(message_of<argument_error>([&] {
                    launch(s, fill_kernel(), {1, 2000}, out(y.view<std::int32_t>()), 2, 4);
                }),
                HasSubstr("2000 threads"));
    s.synchronize();
    EXPECT_THAT(values_of<std::int32_t>(y), Each(1));
}

TEST(KernelLaunch, AKernelThatWaitsForAnotherStream) {
    const stream waiting(cuda());
    const stream setting(cuda());
    array flag = make_array<std::int32_t>(setting, {1}, {0});
    array y = empty({1}, dtype::int32, waiting);
    array z = empty({1}, dtype::int32, waiting);
    setting.synchronize();
    const kernel wait = kernel::from_source(
        "extern \"C\" __global__ void wait_for(volatile int* flag, int* y) { while (*flag == 0) __nanosleep(100); y[0] "
        "= *flag; }",
        "wait_for");
    const ordering_scope scope(ordering_mode::manual);
    // A kernel that waits must not hold up what comes before it, even if other streams ask for the end of that later.
    const event before = launch_event(waiting, fill_kernel(), {1, 1}, out(z.view<std::int32_t>()), 4, 1);
    launch(waiting, wait, {1, 1, 0, true}, inout(flag.view<std::int32_t>()), out(y.view<std::int32_t>()));
    launch(on(setting).after(before), fill_kernel(), {1, 1}, inout(flag.view<std::int32_t>()), 9, 1);
    waiting.synchronize();
    EXPECT_THAT(values_of<std::int32_t>(y), Each(9));
}

}  // namespace
}  // namespace weir::test
