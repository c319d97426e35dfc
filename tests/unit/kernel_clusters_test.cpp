// Launches in thread block clusters, cooperative launches, nullptr in the place of an array, structures (rule K1).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "unit/kernel_support.hpp"
#include "weir/error.hpp"

namespace weir::test {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const kernel& nothing() {
    static const auto* const one = new kernel(kernel::from_source(kernel_source, "nothing"));
    return *one;
}

/// The error with which a launch in this configuration is refused.
std::string refusal(const launch_config& config) {
    const stream on(cuda());
    return message_of<argument_error>([&] {
        launch(on, nothing(), config);
        on.synchronize();
    });
}

/// The shape of the cluster that each block sees itself in.
constexpr const char* cluster_source = R"(
extern "C" __global__ void shape(int* y) {
    unsigned along[3];
    asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(along[0]));
    asm("mov.u32 %0, %%cluster_nctaid.y;" : "=r"(along[1]));
    asm("mov.u32 %0, %%cluster_nctaid.z;" : "=r"(along[2]));
    const int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    y[block] = along[0] * 100 + along[1] * 10 + along[2];
}
)";

TEST(KernelClusters, ALaunchRunsInClustersOfThatShape) {
    const stream on(cuda());
    if (fake_cuda::in_use()) {
        launch(on, nothing(), {.grid = {4, 2, 3}, .block = 32, .cluster = {2, 2, 1}});
        on.synchronize();
        EXPECT_THAT(fake_cuda::last_special_launch(), ElementsAre(2, 2, 1, 0));
        return;
    }
    const kernel shape = kernel::from_source(cluster_source, "shape");
    array y = empty({24}, dtype::int32, on);
    launch(on, shape, {.grid = {4, 2, 3}, .block = 32, .cluster = {2, 2, 1}}, out(y.view<std::int32_t>()));
    EXPECT_THAT(values_of<std::int32_t>(y), Each(221));
    launch(on, shape, {{4, 2, 3}, 32}, out(y.view<std::int32_t>()));
    EXPECT_THAT(values_of<std::int32_t>(y), Each(111)) << "control";
}

TEST(KernelClusters, ThatCannotBeAreRefusedWithWhatToDo) {
    EXPECT_EQ(refusal({.grid = 8, .block = 32, .cluster = 8}), "nothing was thrown");
    EXPECT_THAT(refusal({.grid = 8, .block = 32, .cluster = 0}),
                HasSubstr("in clusters of 0 x 1 x 1 blocks: each number is from 1 to 8"));
    EXPECT_THAT(refusal({.grid = 16, .block = 32, .cluster = {1, 16}}), HasSubstr("each number is from 1 to 8"));
    EXPECT_THAT(refusal({.grid = {8, 8}, .block = 32, .cluster = {4, 4}}), HasSubstr("a cluster has at most 8 blocks"));
    EXPECT_THAT(refusal({.grid = {4, 5}, .block = 32, .cluster = {2, 2}}),
                HasSubstr("its grid has 5 blocks along y; make that a multiple of 2"));
    if (fake_cuda::in_use()) {
        // The attributes are read when the kernel is made.
        fake_cuda::set_attribute(120, 0);
        const kernel old = kernel::from_source(kernel_source, "nothing", {"-DOF_AN_OLD_DEVICE"});
        fake_cuda::set_attribute(120, 1);
        EXPECT_THAT(
            message_of<argument_error>([&] { launch(stream(cuda()), old, {.grid = 2, .block = 32, .cluster = 2}); }),
            AllOf(HasSubstr("cuda:0 has no thread block clusters"), HasSubstr("compute capability 9.0")));
    }
}

TEST(KernelClusters, BlocksOfACooperativeLaunchWaitForEachOther) {
    const stream on(cuda());
    const std::size_t most = nothing().max_cooperative_blocks(256);
    ASSERT_GT(most, 0U);
    if (fake_cuda::in_use()) {
        launch(on, nothing(), {.grid = most, .block = 256, .cooperative = true});
        on.synchronize();
        EXPECT_THAT(fake_cuda::last_special_launch(), ElementsAre(0, 0, 0, 1));
        return;
    }
    const kernel meet = kernel::from_source(R"(
extern "C" __global__ void meet(unsigned* arrived, int* y) {
    if (threadIdx.x == 0) {
        atomicAdd(arrived, 1);
        while (atomicAdd(arrived, 0) < gridDim.x) {
        }
        y[blockIdx.x] = atomicAdd(arrived, 0);
    }
}
)",
                                            "meet");
    const std::size_t blocks = meet.max_cooperative_blocks(256);
    array arrived = zeros({1}, dtype::uint32, on);
    array y = empty({static_cast<std::int64_t>(blocks)}, dtype::int32, on);
    launch(on, meet, {.grid = blocks, .block = 256, .cooperative = true}, inout(arrived.view<std::uint32_t>()),
           out(y.view<std::int32_t>()));
    EXPECT_THAT(values_of<std::int32_t>(y), Each(static_cast<std::int32_t>(blocks)));
}

TEST(KernelClusters, ACooperativeGridThatDoesNotFitIsRefused) {
    const std::size_t most = nothing().max_cooperative_blocks(256);
    EXPECT_EQ(refusal({.grid = most, .block = 256, .cooperative = true}), "nothing was thrown");
    EXPECT_THAT(refusal({.grid = most + 1, .block = 256, .cooperative = true}),
                AllOf(HasSubstr("cannot be launched cooperatively with " + std::to_string(most + 1) + " blocks"),
                      HasSubstr("runs " + std::to_string(most) + " of them at the same time; make the grid smaller")));
    EXPECT_LT(nothing().max_cooperative_blocks(256, 200U << 10U), most) << "shared memory counts";
    EXPECT_THAT(message_of<argument_error>([&] { static_cast<void>(nothing().max_cooperative_blocks(2048)); }),
                HasSubstr("2048 threads along x"));
}

TEST(KernelArguments, NullptrStandsForNoArray) {
    const stream on(cuda());
    const kernel add = kernel::from_source(R"(
extern "C" __global__ void add(const float* x, const float* bias, float* y) { y[0] = x[0] + (bias != nullptr ? bias[0] : 100); }
)",
                                           "add");
    array x = make_array<float>(on, {1}, {1});
    array bias = make_array<float>(on, {1}, {10});
    array y = empty({1}, dtype::float32, on);
    launch(on, add, {1, 1}, in(x.view<float>()), in(bias.view<float>()), out(y.view<float>()));
    EXPECT_THAT(values_of<float>(y), ElementsAre(11));
    launch(on, add, {1, 1}, in(x.view<float>()), nullptr, out(y.view<float>()));
    EXPECT_THAT(values_of<float>(y), ElementsAre(101));

    const kernel declared = add.with_signature("in float* x, in float* bias, out float* y");
    array z = empty({1}, dtype::float32, on);
    launch(on, declared, {1, 1}, in(x.view<float>()), nullptr, out(z.view<float>()));
    EXPECT_THAT(values_of<float>(z), ElementsAre(101));
    declared.launch(on, {1, 1}, {kernel_argument::in(bias), nullptr, kernel_argument::out(z)});
    EXPECT_THAT(values_of<float>(z), ElementsAre(110));
}

struct point {
    double x;
    float weight;
    short tag[3];
};
struct pair_of_ints {
    int of[2];
};

kernel sum_of_structures() {
    return kernel::from_source(R"(
struct point { double x; float weight; short tag[3]; };
struct pair { int of[2]; };
extern "C" __global__ void sum(double* y, point p, pair q) { y[0] = p.x * p.weight + p.tag[2] + q.of[0] + q.of[1]; }
)",
                               "sum")
        .with_signature("out double* y, struct point p, const struct pair q");
}

TEST(KernelArguments, ASignatureDeclaresStructures) {
    const stream on(cuda());
    const kernel sum = sum_of_structures();
    EXPECT_THAT(sum.to_string(), HasSubstr("sum(out float64* y, struct point p, struct pair q)"));
    array y = empty({1}, dtype::float64, on);
    point p{1.5, 2, {1, 2, 3}};
    const pair_of_ints q{{10, 20}};
    launch(on, sum, {1, 1}, out(y.view<double>()), p, q);
    EXPECT_THAT(values_of<double>(y), ElementsAre(36));
    p.x = 2.5;
    const std::vector<kernel_argument> all{kernel_argument::out(y), kernel_argument::structure(p),
                                           kernel_argument::bytes(std::as_bytes(std::span(&q, 1)))};
    sum.launch(on, {1, 1}, all);
    p.x = 100;  // copied at the call
    EXPECT_THAT(values_of<double>(y), ElementsAre(38));
}

TEST(KernelArguments, StructuresThatCannotBeAreRefused) {
    const stream on(cuda());
    const kernel sum = sum_of_structures();
    array y = full({1}, 7, dtype::float64, on);
    const point p{};
    const auto refused_at_run_time = [&](const kernel_argument& third) {
        return message_of<error>([&] {
            sum.launch(on, {1, 1}, {kernel_argument::out(y), kernel_argument::structure(p), third});
        });
    };
    const std::string why = "argument 3 of the kernel sum is \"struct pair q\", and got ";
    EXPECT_THAT(refused_at_run_time(1.0), HasSubstr(why));
    EXPECT_THAT(refused_at_run_time(nullptr), HasSubstr(why + "nullptr: pass a structure"));
    EXPECT_THAT(refused_at_run_time(kernel_argument::inout(y)), HasSubstr(why + "an array of float64"));
    EXPECT_THAT(refused_at_run_time(kernel_argument::structure(p)),
                HasSubstr(why + "a structure of 24 bytes, and the parameter has 8"));
    EXPECT_THAT(message_of<argument_type_error>([&] {
                    launch(on, sum, {1, 1}, out(y.view<double>()), p, 8.0);
                }),
                HasSubstr(why + "float64: pass a structure"));
    EXPECT_THAT(message_of<argument_error>([&] {
                    launch(on, sum, {1, 1}, out(y.view<double>()), p, p);
                }),
                HasSubstr(why + "a structure of 24 bytes, and the parameter has 8"));
    const kernel axpy =
        kernel::from_source(kernel_source, "axpy").with_signature("in float* x, inout float* y, float a, int64 n");
    EXPECT_THAT(message_of<argument_type_error>([&] {
                    axpy.launch(on, {1, 1}, {kernel_argument::in(y), nullptr, 1.0F, kernel_argument::structure(p)});
                }),
                HasSubstr("and got an array of float64"));
    EXPECT_THAT(message_of<argument_type_error>([&] {
                    axpy.launch(on, {1, 1}, {nullptr, nullptr, 1.0F, kernel_argument::structure(p)});
                }),
                HasSubstr("is \"int64 n\", and got a structure of 24 bytes"));
    EXPECT_THAT(values_of<double>(y), ElementsAre(7)) << "nothing was enqueued";
}

TEST(KernelArguments, NullptrIsNoNumber) {
    axpy_arrays of(cuda());
    const kernel axpy =
        kernel::from_source(kernel_source, "axpy").with_signature("in float* x, inout float* y, float a, int64 n");
    const std::string why = "argument 4 of the kernel axpy is \"int64 n\", and got nullptr: pass an integer";
    EXPECT_THAT(message_of<argument_type_error>([&] {
                    launch(of.on, axpy, {4, 256}, in(of.x.view<float>()), inout(of.y.view<float>()), 1.0F, nullptr);
                }),
                HasSubstr(why));
    EXPECT_THAT(
        message_of<argument_type_error>([&] {
            axpy.launch(of.on, {4, 256}, {kernel_argument::in(of.x), kernel_argument::inout(of.y), 1.0F, nullptr});
        }),
        HasSubstr(why));
    EXPECT_THAT(values_of<float>(of.y), Each(1.0F)) << "nothing was enqueued";
}

}  // namespace
}  // namespace weir::test
