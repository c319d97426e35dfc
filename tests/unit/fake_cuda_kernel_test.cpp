// The fake NVRTC, and kernels on the fake CUDA driver.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "unit/fake_cuda_support.hpp"

namespace weir::test {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr result launch_failed = 719;

class fake_cuda_kernels : public fake_cuda_test {
protected:
    void SetUp() override {
        fake_cuda_test::SetUp();
        stream = make_stream();
        values = allocate_pinned<int>(count);
        std::fill(values, values + count, 0);
    }
    void TearDown() override {
        fake_cuda_test::TearDown();
        for (const module_handle each : modules) {
            EXPECT_EQ(api.module_unload(each), success);
        }
        EXPECT_EQ(api.host_free(values), success);
        EXPECT_EQ(api.stream_destroy(stream), success);
    }
    function_handle compiled(const std::string& source, const char* name = "kernel") {
        const auto made = fake_nvrtc::compile(source);
        EXPECT_EQ(made.error, 0) << made.log;
        if (made.error != 0) {
            return nullptr;
        }
        modules.push_back(load(made.image));
        return kernel(modules.back(), name);
    }
    [[nodiscard]] std::vector<int> results(std::size_t how_many) const { return {values, values + how_many}; }

    static constexpr std::size_t count = 4096;
    stream_handle stream = nullptr;
    int* values = nullptr;  ///< pinned
    std::vector<module_handle> modules;
};

TEST_F(fake_cuda_kernels, a_kernel_runs_over_its_grid_with_the_arguments_it_was_launched_with) {
    const function_handle add = compiled(R"(
struct numbers { int by; unsigned count; };
extern "C" __global__ void __launch_bounds__(256) add(int* __restrict__ to, const numbers what) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < what.count) {
        to[i] += what.by;
    }
})",
                                         "add");
    struct numbers {
        int by;
        unsigned count;
    } argument{7, 1000};
    std::iota(values, values + 1024, 0);
    {
        const fake_gate gate(stream);
        int* to = values;
        void* arguments[] = {&to, &argument};
        ASSERT_EQ(api.launch(add, 4, 1, 1, 256, 1, 1, 0, stream, arguments, nullptr), success);
        argument.by = 9;  // a copy was taken
        to = nullptr;
    }
    ASSERT_EQ(api.stream_synchronize(stream), success);
    for (int i = 0; i < 1024; ++i) {
        ASSERT_EQ(values[i], i + (i < 1000 ? 7 : 0));
    }
}

TEST_F(fake_cuda_kernels, blocks_and_threads_have_three_dimensions) {
    const function_handle kernel = compiled(R"(
extern "C" __global__ void kernel(int* to) {
    const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    atomicAdd(to + block * blockDim.x * blockDim.y * blockDim.z + thread, 1);
})");
    int* to = values;
    void* arguments[] = {&to};
    ASSERT_EQ(api.launch(kernel, 2, 3, 2, 4, 2, 5, 0, stream, arguments, nullptr), success);
    ASSERT_EQ(api.stream_synchronize(stream), success);
    EXPECT_THAT(results(12 * 40), Each(1));
    EXPECT_EQ(values[12 * 40], 0);
}

TEST_F(fake_cuda_kernels, threads_of_a_block_meet_at_barriers) {
    const function_handle kernel = compiled(R"(
extern "C" __global__ void kernel(const int* from, int* to) {
    __shared__ int sums[256];
    sums[threadIdx.x] = from[blockIdx.x * blockDim.x + threadIdx.x];
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            sums[threadIdx.x] += sums[threadIdx.x + half];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        to[blockIdx.x] = sums[0];
    }
})");
    std::iota(values, values + 1024, 0);
    ASSERT_EQ(launch(kernel, 4, 256, stream, values, values + 2048), success);
    ASSERT_EQ(api.stream_synchronize(stream), success);
    for (int block = 0; block < 4; ++block) {
        EXPECT_EQ(values[2048 + block], 256 * 256 * block + 255 * 128);
    }
}

TEST_F(fake_cuda_kernels, dynamic_shared_memory_is_as_large_as_the_launch_says) {
    const function_handle kernel = compiled(R"(
extern "C" __global__ void kernel(int* to) {
    extern __shared__ __align__(16) unsigned char bytes[];
    int* const turned = reinterpret_cast<int*>(bytes);
    turned[blockDim.x - 1 - threadIdx.x] = threadIdx.x;
    __syncthreads();
    to[threadIdx.x] = turned[threadIdx.x];
})");
    int* to = values;
    void* arguments[] = {&to};
    ASSERT_EQ(api.launch(kernel, 1, 1, 1, 100, 1, 1, 400, stream, arguments, nullptr), success);
    ASSERT_EQ(api.stream_synchronize(stream), success);
    for (int i = 0; i < 100; ++i) {
        ASSERT_EQ(values[i], 99 - i);
    }
    EXPECT_EQ(api.launch(kernel, 1, 1, 1, 100, 1, 1, 100 << 10, stream, arguments, nullptr), error_invalid_value);
    ASSERT_EQ(api.function_set_attribute(kernel, function_attribute::max_dynamic_shared_size, 100 << 10), success);
    EXPECT_EQ(api.launch(kernel, 1, 1, 1, 100, 1, 1, 100 << 10, stream, arguments, nullptr), success);
    EXPECT_EQ(api.function_set_attribute(kernel, function_attribute::max_dynamic_shared_size, 1 << 20),
              error_invalid_value);
}

TEST_F(fake_cuda_kernels, threads_of_a_warp_shuffle) {
    const function_handle kernel = compiled(R"(
extern "C" __global__ void kernel(int* to) {
    double sum = threadIdx.x;
    for (int by = 16; by > 0; by /= 2) {
        sum += __shfl_down_sync(0xffffffff, sum, by);
    }
    if (threadIdx.x % 32 == 0) {
        to[threadIdx.x / 32] = static_cast<int>(sum);
    }
    to[100 + threadIdx.x] = __shfl_xor_sync(0xffffffff, static_cast<int>(threadIdx.x), 1);
    to[200 + threadIdx.x] = __shfl_sync(0xffffffff, static_cast<int>(threadIdx.x), 3, 8);
    to[300 + threadIdx.x] = __shfl_up_sync(0xffffffff, static_cast<int>(threadIdx.x), 2);
    to[400 + threadIdx.x] = static_cast<int>(__ballot_sync(0xffffffff, threadIdx.x % 2));
    to[500 + threadIdx.x] = __all_sync(0xffffffff, 1) * 2 + __any_sync(0xffffffff, threadIdx.x == 40);
})");
    ASSERT_EQ(launch(kernel, 1, 64, stream, values), success);
    ASSERT_EQ(api.stream_synchronize(stream), success);
    EXPECT_EQ(values[0], 31 * 16);
    EXPECT_EQ(values[1], 31 * 16 + 32 * 32);
    for (int i = 0; i < 64; ++i) {
        EXPECT_EQ(values[100 + i], i ^ 1);
        EXPECT_EQ(values[200 + i], i / 8 * 8 + 3);
        EXPECT_EQ(values[300 + i], i % 32 < 2 ? i : i - 2);
        EXPECT_EQ(static_cast<unsigned>(values[400 + i]), 0xaaaaaaaaU);
        EXPECT_EQ(values[500 + i], i < 32 ? 2 : 3);
    }
}

TEST_F(fake_cuda_kernels, kernels_of_two_streams_run_at_once) {
    const function_handle kernel = compiled(R"(
extern "C" __global__ void kernel(volatile int* mine, volatile int* other) {
    *mine = 1;
    __threadfence_system();
    while (*other == 0) {
        __nanosleep(100);
    }
})");
    const stream_handle other = make_stream();
    ASSERT_EQ(launch(kernel, 1, 1, stream, values, values + 1), success);
    ASSERT_EQ(launch(kernel, 1, 1, other, values + 1, values), success);
    EXPECT_EQ(api.stream_synchronize(stream), success);
    EXPECT_EQ(api.stream_synchronize(other), success);
    EXPECT_EQ(api.stream_destroy(other), success);
}

TEST_F(fake_cuda_kernels, threads_of_a_block_that_sleep_let_others_go_on) {
    const function_handle kernel = compiled(R"(
extern "C" __global__ void kernel(volatile int* turn, int last) {
    while (*turn != last - static_cast<int>(threadIdx.x)) {
        __nanosleep(100);
    }
    ++*turn;
})");
    ASSERT_EQ(launch(kernel, 1, 50, stream, values, 49), success);
    EXPECT_EQ(api.stream_synchronize(stream), success);
    EXPECT_EQ(values[0], 50);
}

TEST_F(fake_cuda_kernels, atomic_operations_return_what_was_there) {
    const function_handle kernel = compiled(R"(
extern "C" __global__ void kernel(int* to, float* sum, double* other, unsigned long long* large) {
    const int i = threadIdx.x;
    atomicAdd(to, i);
    atomicMax(to + 1, i);
    atomicMin(to + 2, -i);
    atomicOr(to + 3, 1 << i % 8);
    atomicAdd(sum, 0.5f);
    atomicAdd(other, 0.25);
    atomicAdd(large, 1ull << 32);
    if (atomicCAS(to + 4, 0, i + 1) == 0) {
        to[5] = i + 1;
    }
})");
    auto* const sum = reinterpret_cast<float*>(values + 100);
    auto* const other = reinterpret_cast<double*>(values + 102);
    auto* const large = reinterpret_cast<std::uint64_t*>(values + 104);
    ASSERT_EQ(launch(kernel, 2, 64, stream, values, sum, other, large), success);
    ASSERT_EQ(api.stream_synchronize(stream), success);
    EXPECT_EQ(results(6), (std::vector<int>{2 * 63 * 32, 63, -63, 255, values[5], values[5]}));
    EXPECT_NE(values[5], 0);
    EXPECT_EQ(*sum, 64.0F);
    EXPECT_EQ(*other, 32.0);
    EXPECT_EQ(*large, std::uint64_t{128} << 32);
}

TEST_F(fake_cuda_kernels, a_trap_is_sticky) {
    const function_handle kernel = compiled(R"(
extern "C" __global__ void kernel(int* to, unsigned traps) {
    __syncthreads();
    if (threadIdx.x == traps) {
        __trap();
    }
    __syncthreads();
    to[threadIdx.x] = 1;
})");
    ASSERT_EQ(launch(kernel, 1, 32, stream, values, 99U), success);
    ASSERT_EQ(api.stream_synchronize(stream), success) << "the control: no thread traps";
    EXPECT_THAT(results(32), Each(1));
    const fake_gate gate;
    ASSERT_EQ(launch(kernel, 1, 32, stream, values + 100, 7U), success);
    ASSERT_EQ(launch(kernel, 1, 32, stream, values + 200, 99U), success);
    fake_cuda::open_all();
    EXPECT_EQ(api.stream_synchronize(stream), launch_failed);
    EXPECT_EQ(api.stream_query(nullptr), launch_failed);
    EXPECT_EQ(launch(kernel, 1, 32, stream, values, 99U), launch_failed);
    fake_cuda::heal_contexts();
    EXPECT_EQ(values[100], 0);
    EXPECT_EQ(values[200], 0) << "what was pending is dropped";
    ASSERT_EQ(launch(kernel, 1, 32, stream, values + 300, 99U), success);
    EXPECT_EQ(api.stream_synchronize(stream), success);
    EXPECT_EQ(values[300], 1);
}

TEST_F(fake_cuda_kernels, threads_that_wait_for_what_cannot_come_are_ended) {
    constexpr result launch_timeout = 702;
    const function_handle kernel = compiled(R"(
extern "C" __global__ void kernel() {
    if (threadIdx.x % 2 == 0) {
        __syncthreads();
    } else {
        __syncwarp();
    }
})");
    ASSERT_EQ(launch(kernel, 1, 4, stream), success);
    EXPECT_EQ(api.stream_synchronize(stream), launch_timeout);
}

TEST_F(fake_cuda_kernels, launches_that_the_device_cannot_do_are_refused) {
    constexpr result invalid_handle = 400;
    const function_handle kernel = compiled(R"(extern "C" __global__ void kernel(int* to) { *to = 1; })");
    EXPECT_EQ(launch(kernel, 0, 1, stream, values), error_invalid_value);
    EXPECT_EQ(launch(kernel, 1, 1025, stream, values), error_invalid_value);
    EXPECT_EQ(api.launch(kernel, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr), error_invalid_value);
    ASSERT_EQ(api.context_set_current(on_device(1).handle()), success);
    EXPECT_EQ(launch(kernel, 1, 1, nullptr, values), invalid_handle) << "of another context";
    ASSERT_EQ(api.context_set_current(on_device(0).handle()), success);
    EXPECT_EQ(launch(kernel, 1, 1, nullptr, values), success);
}

TEST_F(fake_cuda_kernels, a_module_may_be_unloaded_while_its_kernel_is_pending) {
    const std::size_t before = fake_cuda::live(fake_thing::modules);
    const function_handle kernel = compiled(R"(extern "C" __global__ void kernel(int* to) { *to = 1; })");
    EXPECT_EQ(fake_cuda::live(fake_thing::modules), before + 1);
    {
        const fake_gate gate(stream);
        ASSERT_EQ(launch(kernel, 1, 1, stream, values), success);
        ASSERT_EQ(api.module_unload(modules.back()), success);
        modules.clear();
        EXPECT_EQ(fake_cuda::live(fake_thing::modules), before);
    }
    EXPECT_EQ(api.stream_synchronize(stream), success);
    EXPECT_EQ(values[0], 1);
}

TEST_F(fake_cuda_kernels, modules_do_not_share_what_has_the_same_name) {
    const auto source = [](int value) {
        return "__device__ int state = " + std::to_string(value) +
               ";\ntemplate <class T> __device__ T& kept() { static T value = " + std::to_string(value) +
               "; return value; }\nextern \"C\" __global__ void kernel(int* to) { to[0] = state; to[1] = kept<int>(); "
               "}";
    };
    const function_handle first = compiled(source(1));
    const function_handle second = compiled(source(2));
    ASSERT_EQ(launch(first, 1, 1, stream, values), success);
    ASSERT_EQ(launch(second, 1, 1, stream, values + 2), success);
    ASSERT_EQ(api.stream_synchronize(stream), success);
    EXPECT_EQ(results(4), (std::vector<int>{1, 1, 2, 2}));
}

TEST_F(fake_cuda_kernels, templates_are_found_by_their_lowered_names) {
    const auto made =
        fake_nvrtc::compile(R"(
namespace shapes {
template <class T, int By>
__global__ void scale(T* to) { to[threadIdx.x] = static_cast<T>(threadIdx.x) * By; }
__global__ void plain(int* to) { *to = 3; }
}  // namespace shapes
)",
                            {"-arch=sm_90"}, {"shapes::scale<int, 5>", "&shapes::plain", "shapes::plain"});
    ASSERT_EQ(made.error, 0) << made.log;
    modules.push_back(load(made.image));
    EXPECT_EQ(made.lowered[1], "_ZN6shapes5plainEPi");
    EXPECT_EQ(made.lowered[2], made.lowered[1]);
    function_handle found = nullptr;
    EXPECT_EQ(api.module_function(&found, modules.back(), "scale"), error_not_found);
    EXPECT_EQ(api.module_function(&found, modules.back(), "plain"), error_not_found);
    ASSERT_EQ(launch(kernel(modules.back(), made.lowered[0].c_str()), 1, 4, stream, values), success);
    ASSERT_EQ(launch(kernel(modules.back(), made.lowered[1].c_str()), 1, 1, stream, values + 4), success);
    ASSERT_EQ(api.stream_synchronize(stream), success);
    EXPECT_EQ(results(5), (std::vector<int>{0, 5, 10, 15, 3}));
}

TEST_F(fake_cuda_test, errors_in_a_source_come_with_its_own_lines) {
    constexpr int compilation_failed = 6;
    const auto made =
        fake_nvrtc::compile("// __global__ void no(\n\nextern \"C\" __global__ void kernel() {\n  wrong;\n}\n");
    EXPECT_EQ(made.error, compilation_failed);
    EXPECT_THAT(made.log, HasSubstr("default_program(4): error: "));
    EXPECT_THAT(made.image, ::testing::Not(HasSubstr("ELF")));
    EXPECT_EQ(fake_nvrtc::compile("#include <vector>\n").error, compilation_failed)
        << "there are no headers of the host";
    EXPECT_EQ(fake_nvrtc::compile("extern __shared__ int outside[];\n").error, compilation_failed);
}

TEST_F(fake_cuda_test, options_are_read_and_unknown_ones_refused) {
    constexpr int invalid_option = 5;
    const std::string source = "extern \"C\" __global__ void kernel(int* to) { *to = VALUE; }";
    EXPECT_EQ(fake_nvrtc::compile(source, {"-arch=sm_90", "-DVALUE=3"}).error, 0);
    EXPECT_EQ(fake_nvrtc::compile(source, {"--gpu-architecture", "sm_90", "-D", "VALUE=3", "--fmad=false"}).error, 0);
    EXPECT_NE(fake_nvrtc::compile(source, {"-arch=sm_90"}).error, 0) << "the control";
    EXPECT_EQ(fake_nvrtc::compile(source, {"--no-such-option"}).error, invalid_option);
    constexpr int chosen = 7;
    fake_cuda::fail_next_compilation(chosen);
    const unsigned long long before = fake_cuda::compilations();
    EXPECT_EQ(fake_nvrtc::compile(source, {"-DVALUE=3"}).error, chosen);
    EXPECT_EQ(fake_nvrtc::compile(source, {"-DVALUE=3"}).error, 0);
    EXPECT_EQ(fake_cuda::compilations(), before + 2);
}

TEST_F(fake_cuda_test, images_of_other_architectures_and_of_nobody_are_refused) {
    constexpr result invalid_image = 200;
    constexpr result no_binary_for_gpu = 209;
    constexpr result invalid_ptx = 218;
    const std::string source = "extern \"C\" __global__ void kernel() {}";
    const auto load_error = [this](const std::string& image) {
        module_handle made = nullptr;
        const result error = api.module_load(&made, image.c_str(), 0, nullptr, nullptr);
        if (error == success) {
            EXPECT_EQ(api.module_unload(made), success);
        }
        return error;
    };
    EXPECT_EQ(load_error(fake_nvrtc::compile(source, {"-arch=sm_90"}).image), success);
    EXPECT_EQ(load_error(fake_nvrtc::compile(source, {"-arch=sm_80"}).image), no_binary_for_gpu);
    EXPECT_EQ(load_error(fake_nvrtc::compile(source, {"-arch=compute_80"}).image), success) << "PTX";
    EXPECT_EQ(load_error(fake_nvrtc::compile(source, {"-arch=compute_100"}).image), no_binary_for_gpu);
    EXPECT_EQ(load_error("// ptx"), invalid_ptx);
    EXPECT_EQ(load_error("\x7f"
                         "ELF"),
              invalid_image);
}

}  // namespace
}  // namespace weir::test
