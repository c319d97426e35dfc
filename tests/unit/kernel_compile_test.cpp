// Kernels are made from source, PTX, cubins and functions (rule K2), and messages say what is wrong with these.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "array/kernel_code.hpp"
#include "backend/cuda/device/driver.hpp"
#include "backend/cuda/kernels/compile.hpp"
#include "backend/cuda/kernels/compiler.hpp"
#include "backend/cuda/kernels/device_kernels.hpp"
#include "backend/cuda/kernels/included_files.hpp"
#include "backend/cuda/kernels/loaded_module.hpp"
#include "backend/nvidia_library.hpp"
#include "runtime/devices/device_state.hpp"
#include "runtime/lifetime/reaper.hpp"
#include "runtime/streams/stream_state.hpp"
#include "support/scratch_folder.hpp"
#include "unit/kernel_support.hpp"
#include "weir/error.hpp"
#include "weir/testing.hpp"

namespace weir::test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// Every test begins with an empty cache.
class kernel_compile_test : public ::testing::Test {
protected:
    kernel_compile_test() { ::setenv("WEIR_CACHE_DIR", folder.c_str(), 1); }

    [[nodiscard]] static backend::cuda::device_context& context() {
        return backend::cuda::context_of(cuda(0).state(detail::key).driver());
    }

    scratch_folder scratch;
    const fs::path folder = scratch.path();
};

template <class Error>
std::string refusal(const std::string& source, const std::string& name, const std::vector<std::string>& options = {}) {
    return message_of<Error>([&] { static_cast<void>(kernel::from_source(source, name, options, cuda())); });
}

TEST_F(kernel_compile_test, ASourceBecomesAKernelThatRuns) {
    const kernel axpy = kernel::from_source(kernel_source, "axpy");
    EXPECT_EQ(axpy.name(), "axpy");
    EXPECT_EQ(axpy.device(), cuda(0));
    EXPECT_EQ(axpy.max_threads_per_block(), 1024);
    EXPECT_EQ(axpy.to_string(), "<weir.kernel axpy on cuda:0>");
    axpy_arrays of(cuda());
    launch(of.on, axpy, {4, 256}, in(of.x.view<float>()), inout(of.y.view<float>()), 3.0F, 1000LL);
    EXPECT_THAT(values_of<float>(of.y), Each(7.0F));
}

TEST_F(kernel_compile_test, ItIsCompiledOnceForAllProcessesAndOptions) {
    if (!fake_cuda::in_use()) {
        GTEST_SKIP() << "counts what the fake NVRTC compiles";
    }
    const auto before = fake_cuda::compilations();
    const kernel first = kernel::from_source(kernel_source, "axpy");
    EXPECT_EQ(fake_cuda::compilations(), before + 1);
    const kernel second = kernel::from_source(kernel_source, "axpy");
    EXPECT_EQ(fake_cuda::compilations(), before + 1) << "from the cache";
    EXPECT_FALSE(first == second);
    const kernel third = kernel::from_source(kernel_source, "fill");
    EXPECT_EQ(fake_cuda::compilations(), before + 2) << "another name";
    const kernel fourth = kernel::from_source(kernel_source, "axpy", {"-DN=4"});
    EXPECT_EQ(fake_cuda::compilations(), before + 3) << "another option";
    const kernel fifth = kernel::from_source(kernel_source + " ", "axpy");
    EXPECT_EQ(fake_cuda::compilations(), before + 4) << "another source";
    fs::remove_all(folder);
    const kernel sixth = kernel::from_source(kernel_source, "axpy");
    EXPECT_EQ(fake_cuda::compilations(), before + 5) << "the cache is gone";
}

TEST_F(kernel_compile_test, WhatDependsOnFilesIsNotCached) {
    if (!fake_cuda::in_use()) {
        GTEST_SKIP() << "counts what the fake NVRTC compiles";
    }
    const std::string rest =
        "\nextern \"C\" __global__ void fill(int* y, int n) { for (int i = 0; i < n; ++i) y[i] = VALUE; }";
    const std::string file = (folder / "value.h").string();
    const std::vector<std::string> options = {"-I" + folder.string()};
    const stream on(cuda());
    array y = empty({8}, dtype::int32, on);
    int value = 0;
    const auto use = [&](const std::string& start, const std::vector<std::string>& with) {
        ++value;
        std::ofstream(folder / "value.h") << "#define VALUE " << value << "\n";
        launch(on, kernel::from_source(start + rest, "fill", with), {1, 1}, out(y.view<std::int32_t>()), 8);
        EXPECT_THAT(values_of<std::int32_t>(y), Each(value)) << start;
    };
    for (int twice = 0; twice < 2; ++twice) {
        use("  # include \"value.h\"", options);
        use("#include <value.h>", options);
        for (const std::string& start :
             {"#include <" + file + ">", "#include \"" + file + "\"", "#/**/include \"" + file + "\"",
              "%:include \"" + file + "\"", "#inc\\\nlude \"" + file + "\"",
              "#define FILE <" + file + ">\n#include FILE"}) {
            use(start, {});
        }
    }
}

TEST_F(kernel_compile_test, ASourceMayIncludeFilesUnlessTheCompilersHeadersAreAllThatItCanMean) {
    using backend::cuda::may_include_files;
    for (const char* const source :
         {"#include \"a.h\"", "#include </a.h>", "#include <../a.h>", "#include HERE", "#/**/include <a.h>",
          "# /* two\nlines */ include <a.h>", "%:include <a.h>", "\?\?=include <a.h>", "#inc\\\nlude \"a.h\"",
          "#\\ \r\ninclude \"a.h\"", "#include", "#include <a.h", "#include <a\n.h>", "#include_next \"a.h\"",
          "#import \"a.h\"", "#embed \"a.bin\"", "#if __has_include(<a.h>)\n#endif", "#if __has_embed(<a.h>)\n#endif",
          "#include <cuda_fp16.h>\n#include \"a.h\""}) {
        EXPECT_TRUE(may_include_files(source)) << source;
    }
    for (const char* const source :
         {"", "#include <cuda_fp16.h>", "  #\tinclude\t<cuda/std/array>", "#include<cuda_fp16.h>",
          "// we include \"this\"\nint include;", "int includes = 1; // #1 include", "/* includes \"a.h\" */ int a;",
          "#define include_all 1"}) {
        EXPECT_FALSE(may_include_files(source)) << source;
    }
}

TEST_F(kernel_compile_test, ADamagedCacheIsNoError) {
    static_cast<void>(kernel::from_source(kernel_source, "axpy"));
    int damaged = 0;
    for (const auto& each : fs::directory_iterator(folder)) {
        fs::resize_file(each.path(), fs::file_size(each.path()) / 2);
        ++damaged;
    }
    EXPECT_EQ(damaged, 1);
    EXPECT_EQ(kernel::from_source(kernel_source, "axpy").name(), "axpy");
    ::setenv("WEIR_CACHE_DIR", "/dev/null/nowhere", 1);
    EXPECT_EQ(kernel::from_source(kernel_source, "axpy").name(), "axpy");
}

TEST_F(kernel_compile_test, WithoutExternCTheNameIsAnExpression) {
    const std::string source = R"(
template <class T, int N> __global__ void fill(T* y, T value) {
    for (int i = 0; i < N; ++i) {
        y[i] = value;
    }
}
namespace inner { __global__ void twice(int* y) { y[0] *= 2; } }
)";
    const stream on(cuda());
    array y = empty({8}, dtype::int32, on);
    launch(on, kernel::from_source(source, "fill<int, 8>"), {1, 1}, out(y.view<std::int32_t>()), 5);
    launch(on, kernel::from_source(source, "inner::twice"), {1, 1}, inout(y.view<std::int32_t>()));
    const std::vector<std::int32_t> values = values_of<std::int32_t>(y);
    EXPECT_EQ(values[0], 10);
    EXPECT_EQ(values[7], 5);
}

TEST_F(kernel_compile_test, AMistakeIsToldWithItsLineAndTheLog) {
    const std::string wrong = "extern \"C\" __global__ void axpy(float* x) {\n    *x = 1;\n    *x = unknown_name;\n}\n";
    const std::string message = refusal<argument_error>(wrong, "axpy");
    EXPECT_THAT(message, StartsWith("the kernel axpy does not compile: axpy.cu(3): error: ")) << message;
    EXPECT_THAT(message, HasSubstr("unknown_name"));
}

TEST_F(kernel_compile_test, ANameThatTheSourceLacksIsToldWithThoseItHas) {
    EXPECT_THAT(refusal<argument_error>(kernel_source, "axpi"),
                StartsWith("the source has no kernel axpi; it has axpy, fill, nothing"));
    EXPECT_THAT(refusal<argument_error>("template <class T> __global__ void fill(T* y) { *y = 1; }", "full<int>"),
                StartsWith("the source has no kernel full<int>; it has fill"));
    EXPECT_THAT(refusal<argument_error>("template <class T> __global__ void fill(T* y) { *y = 1; }", "fill<unknown>"),
                StartsWith("the kernel fill<unknown> does not compile"));
    EXPECT_THAT(refusal<argument_error>(kernel_source, ""), HasSubstr("its name is empty"));
}

TEST_F(kernel_compile_test, OptionsAreChecked) {
    EXPECT_THAT(refusal<argument_error>(kernel_source, "axpy", {"-DN=1\n-DM=2"}),
                AllOf(HasSubstr("an option for the kernel axpy has a line break"), HasSubstr("each option as a text")));
    EXPECT_THAT(refusal<argument_error>(kernel_source, "axpy", {"--no-such-option"}), HasSubstr("--no-such-option"));
}

TEST_F(kernel_compile_test, KernelsAreForCudaDevicesAlone) {
    for (const device where : {cpu(), cpu_inline(), sim()}) {
        const std::string message = message_of<argument_error>(
            [&] { static_cast<void>(kernel::from_source(kernel_source, "axpy", {}, where)); });
        EXPECT_THAT(message, AllOf(HasSubstr("the kernel axpy cannot be made for " + where.name()),
                                   HasSubstr("parallel_for and host_task")));
    }
}

TEST_F(kernel_compile_test, PtxAndCubinsAreLoaded) {
    const std::string name = "axpy";
    const std::vector<std::string> virtual_code = {"-arch=compute_80"};
    const auto ptx = backend::cuda::compile(context(), {kernel_source, name, virtual_code});
    const auto cubin = backend::cuda::compile(context(), {kernel_source, name, {}});
    const std::span<const std::byte> bytes = std::as_bytes(std::span(cubin.image));
    axpy_arrays of(cuda());
    for (const kernel& each : {kernel::from_ptx(ptx.image, name), kernel::from_cubin(bytes, name)}) {
        launch(of.on, each, {4, 256}, in(of.x.view<float>()), inout(of.y.view<float>()), 1.0F, 1000LL);
    }
    EXPECT_THAT(values_of<float>(of.y), Each(5.0F));
    EXPECT_THAT(message_of<argument_error>([&] { static_cast<void>(kernel::from_cubin(bytes, "axpi")); }),
                StartsWith("the code has no kernel axpi"));
    EXPECT_THAT(message_of<argument_error>([&] { static_cast<void>(kernel::from_ptx(ptx.image, "axpi")); }),
                StartsWith("the PTX has no kernel axpi"));
    EXPECT_THAT(message_of<argument_error>([&] { static_cast<void>(kernel::from_cubin({}, "axpy")); }),
                HasSubstr("is empty"));
    EXPECT_THAT(message_of<argument_error>([&] { static_cast<void>(kernel::from_ptx("no PTX at all", "axpy")); }),
                AllOf(StartsWith("the code of the kernel axpy cannot be loaded into"),
                      AnyOf(HasSubstr("CUDA_ERROR_INVALID_PTX"), HasSubstr("CUDA_ERROR_INVALID_IMAGE"))));
    const std::string rubbish(
        "\x7f"
        "ELF rubbish");
    const std::span<const char> no_code(rubbish);
    EXPECT_THAT(
        message_of<argument_error>([&] { static_cast<void>(kernel::from_cubin(std::as_bytes(no_code), name)); }),
        HasSubstr("is cut off: it says that it has 64 bytes or more, and there are 12"));
    std::string endless = rubbish + std::string(100, '\xff');  // its table of sections lies at the end of all memory
    const std::span<const char> no_code_either(endless);
    EXPECT_THAT(
        message_of<argument_error>([&] { static_cast<void>(kernel::from_cubin(std::as_bytes(no_code_either), name)); }),
        HasSubstr("is cut off: it says that it has 18446744073709551615 bytes or more"));
}

TEST_F(kernel_compile_test, AFunctionOfOthersIsAKernel) {
    const kernel own = kernel::from_source(kernel_source, "axpy");
    const kernel same = kernel::from_function(own.handle());
    EXPECT_EQ(same.name(), "axpy");
    axpy_arrays of(cuda());
    launch(of.on, same, {4, 256}, in(of.x.view<float>()), inout(of.y.view<float>()), 1.0F, 1000LL);
    EXPECT_THAT(values_of<float>(of.y), Each(3.0F));
    EXPECT_THAT(message_of<argument_error>([] { static_cast<void>(kernel::from_function(nullptr)); }),
                HasSubstr("needs a CUfunction, and got null"));
}

TEST_F(kernel_compile_test, KernelsAreLoadedWhenTheyAreMade) {
    if (!fake_cuda::in_use()) {
        GTEST_SKIP() << "counts calls of the fake driver";
    }
    const auto before = fake_cuda::calls("cuFuncLoad");
    const kernel nothing = kernel::from_source(kernel_source, "nothing");
    EXPECT_EQ(fake_cuda::calls("cuFuncLoad"), before + 1);
    const kernel same = kernel::from_function(nothing.handle());
    EXPECT_EQ(fake_cuda::calls("cuFuncLoad"), before + 2) << "that may be a handle that nothing was loaded for so far";
    const stream on(cuda());
    fake_cuda::forget_calls();
    launch(on, nothing, {1, 1});
    on.synchronize();
    EXPECT_EQ(fake_cuda::calls("cuLaunchKernelEx"), 1U);
    EXPECT_EQ(fake_cuda::calls("cuFuncLoad") + fake_cuda::calls("cuModuleLoadDataEx") +
                  fake_cuda::calls("cuModuleGetFunction") + fake_cuda::calls("cuFuncGetAttribute"),
              0U);
}

TEST_F(kernel_compile_test, AnOlderDriverDoesWithoutWhatLaterOnesAdd) {
    if (!fake_cuda::in_use()) {
        GTEST_SKIP() << "counts calls of the fake driver";
    }
    static_cast<void>(cuda());
    // Lives for ever, as all contexts do.
    static backend::cuda::driver_api api = *backend::cuda::machine_driver().api;
    api.function_load = nullptr;
    api.function_parameter = nullptr;
    api.function_name = nullptr;
    static auto* const older = new backend::cuda::device_context(api, 0);
    const std::string name = "axpy";
    const auto program = backend::cuda::compile(*older, {kernel_source, name, {}});
    auto code = std::make_unique<backend::cuda::loaded_module>(*older, program.image, name);
    fake_cuda::forget_calls();
    const backend::cuda::function_handle function = code->find(name);
    EXPECT_EQ(fake_cuda::calls("cuFuncGetAttribute"), 1U) << "asked about a function, an older driver loads it";
    const backend::cuda::device_kernels by(*older);
    const detail::kernel_code made(cuda(), by, name, std::move(code), function);
    EXPECT_FALSE(made.parameter_bytes()) << "nothing is known of them, and nothing checked";
    EXPECT_EQ(made.max_threads(), 1024);
}

TEST_F(kernel_compile_test, NoCallOfTheDriverFailsWhereItTellsHowManyParametersThereAre) {
    if (!fake_cuda::in_use()) {
        GTEST_SKIP() << "counts calls of the fake driver";
    }
    static_cast<void>(cuda());
    const auto asked_by = [](const backend::cuda::driver_api& api) {
        // Live for ever, as all contexts do.
        static auto& kept = *new std::vector<std::unique_ptr<backend::cuda::device_context>>;
        kept.push_back(std::make_unique<backend::cuda::device_context>(api, 0));
        backend::cuda::device_context* const context = kept.back().get();
        const std::string name = "axpy";
        const auto program = backend::cuda::compile(*context, {kernel_source, name, {}});
        auto code = std::make_unique<backend::cuda::loaded_module>(*context, program.image, name);
        const backend::cuda::function_handle function = code->find(name);
        fake_cuda::forget_calls();
        const backend::cuda::device_kernels by(*context);
        const detail::kernel_code made(cuda(), by, name, std::move(code), function);
        EXPECT_EQ(made.parameter_bytes().value_or(std::vector<std::size_t>()).size(), 4U);
        return fake_cuda::calls("cuFuncGetParamInfo");
    };
    backend::cuda::driver_api api = *backend::cuda::machine_driver().api;
    ASSERT_NE(api.function_parameter_count, nullptr);
    static const backend::cuda::driver_api newer = api;
    EXPECT_EQ(asked_by(newer), 4U);
    api.function_parameter_count = nullptr;
    static const backend::cuda::driver_api older = api;
    EXPECT_EQ(asked_by(older), 5U) << "control: the last call fails";
}

TEST_F(kernel_compile_test, WhatFailsInTheDriverOrTheCompilerIsADeviceError) {
    if (!fake_cuda::in_use()) {
        GTEST_SKIP() << "the fake fails on purpose";
    }
    static_cast<void>(cuda());
    fake_cuda::fail_next_compilation(11);
    EXPECT_THAT(refusal<device_error>(kernel_source, "axpy"),
                HasSubstr("nvrtcCompileProgram failed: NVRTC_ERROR_INTERNAL_ERROR"));
    const std::size_t modules = fake_cuda::live(fake_thing::modules);
    for (const char* const call : {"cuModuleLoadDataEx", "cuModuleGetFunction", "cuFuncLoad", "cuFuncGetAttribute"}) {
        fake_cuda::fail(call, 1, 801);
        EXPECT_THAT(refusal<device_error>(kernel_source, "axpy"), HasSubstr(call));
        EXPECT_EQ(fake_cuda::live(fake_thing::modules), modules) << "nothing is left behind by " << call;
    }
    fake_cuda::fail_no_more();
    EXPECT_EQ(kernel::from_source(kernel_source, "axpy").name(), "axpy");
}

TEST_F(kernel_compile_test, KernelsOfWeirsOwnAreMadeOnce) {
    const std::string source = "extern \"C\" __global__ void mine(int* x) { *x = 1; }";
    const auto before = fake_cuda::in_use() ? fake_cuda::compilations() : 0;
    ::setenv("WEIR_CACHE_DIR", "/dev/null/none", 1);
    backend::cuda::device_context& in = context();
    std::vector<backend::cuda::function_handle> found(8);
    {
        std::atomic<int> ready{0};
        std::vector<std::jthread> threads;
        for (auto& each : found) {
            threads.emplace_back([&] {
                ++ready;
                while (ready.load() < static_cast<int>(found.size())) {
                    std::this_thread::yield();
                }
                each = backend::cuda::compiled(in, source, "mine");
            });
        }
    }
    EXPECT_NE(found[0], nullptr);
    EXPECT_THAT(found, Each(found[0]));
    const std::vector<std::string> options = {"-DX"};
    EXPECT_NE(backend::cuda::compiled(in, source, "mine", options), found[0]);
    if (fake_cuda::in_use()) {
        EXPECT_EQ(fake_cuda::compilations(), before + 2);
    }
    EXPECT_THAT(message_of<device_error>([&] { static_cast<void>(backend::cuda::compiled(in, "rubbish", "mine")); }),
                HasSubstr("mine.cu(1): error"));
}

/// Whether the number of the fake driver's modules falls to `count` within that time.
bool modules_get_down_to(std::size_t count, std::chrono::milliseconds patience = std::chrono::seconds(5)) {
    const auto end = std::chrono::steady_clock::now() + patience;
    while (fake_cuda::live(fake_thing::modules) > count && std::chrono::steady_clock::now() < end) {
        std::this_thread::yield();
    }
    return fake_cuda::live(fake_thing::modules) == count;
}

TEST_F(kernel_compile_test, ADroppedKernelIsUnloadedOnceItsLaunchesAreOver) {
    if (!fake_cuda::in_use()) {
        GTEST_SKIP() << "counts what the fake driver has";
    }
    const stream on(cuda());
    array y = empty({1000}, dtype::int32, on);
    runtime::reaper::wait_until_empty();
    const std::size_t before = fake_cuda::live(fake_thing::modules);
    {
        const fake_gate gate;
        {
            const kernel fill = kernel::from_source(kernel_source, "fill");
            launch(on, fill, {4, 256}, out(y.view<std::int32_t>()), 7, 1000);
        }
        EXPECT_FALSE(modules_get_down_to(before, std::chrono::milliseconds(20))) << "its launch is not over";
    }
    EXPECT_THAT(values_of<std::int32_t>(y), Each(7));
    EXPECT_TRUE(modules_get_down_to(before)) << "though no other kernel is made";
}

TEST_F(kernel_compile_test, ADroppedKernelIsUnloadedThoughTheDeviceIsNeverIdle) {
    if (!fake_cuda::in_use()) {
        GTEST_SKIP() << "counts what the fake driver has";
    }
    const stream on(cuda());
    const stream busy(cuda());
    array y = empty({1000}, dtype::int32, on);
    array z = empty({1000}, dtype::int32, busy);
    const kernel fill = kernel::from_source(kernel_source, "fill");
    cuda().synchronize();
    runtime::reaper::wait_until_empty();
    const std::size_t before = fake_cuda::live(fake_thing::modules);
    std::optional<kernel> dropped = kernel::from_source(kernel_source, "fill");
    launch(on, *dropped, {4, 256}, out(y.view<std::int32_t>()), 7, 1000);
    on.synchronize();
    dropped.reset();
    runtime::reaper::wait_until_empty();  // it has processed what was enqueued up to now
    const fake_gate gate(busy.state(detail::key).queue->handle());
    launch(busy, fill, {4, 256}, out(z.view<std::int32_t>()), 7, 1000);
    const kernel other = kernel::from_source(kernel_source, "axpy");
    EXPECT_TRUE(modules_get_down_to(before + 1)) << "the other one alone";
}

TEST_F(kernel_compile_test, ADroppedKernelStaysForALaunchThatIsStillHeldOnTheHost) {
    if (!fake_cuda::in_use()) {
        GTEST_SKIP() << "counts what the fake driver has";
    }
    const stream on(cuda());
    const stream host(cpu());
    array y = empty({1000}, dtype::int32, on);
    std::optional<kernel> fill = kernel::from_source(kernel_source, "fill");
    const std::size_t before = fake_cuda::live(fake_thing::modules);
    {
        weir::testing::gate held;
        held.hold(host);
        const event opened = host.record();
        fake_cuda::forget_calls();
        launch(weir::on(on).after(opened), *fill, {4, 256}, out(y.view<std::int32_t>()), 7, 1000);
        fill.reset();
        const kernel other = kernel::from_source(kernel_source, "axpy");
        EXPECT_EQ(fake_cuda::calls("cuLaunchKernelEx"), 0U) << "work of the CPU comes first (rule O9)";
        EXPECT_EQ(fake_cuda::live(fake_thing::modules), before + 1);
    }
    EXPECT_THAT(values_of<std::int32_t>(y), Each(7));
}

TEST_F(kernel_compile_test, LibrariesAreFoundWherePythonsPackagesPutThem) {
    if (!fake_cuda::in_use()) {
        GTEST_SKIP() << "takes the fake NVRTC as a library that is there";
    }
    const fs::path file = std::getenv("WEIR_NVRTC_LIBRARY");
    const auto name = [] {
        return backend::nvidia_library::name{"the thing",
                                             "WEIR_SNDFILE_LIBRARY",
                                             {"libthing.so.9", "libthing.so.8"},
                                             {"cu13", "thing"},
                                             "the package thing"};
    };
    EXPECT_THAT(message_of<missing_library>([&] { backend::nvidia_library{name()}; }),
                AllOf(HasSubstr("cannot find the thing (libthing.so.9)"), HasSubstr("install the package thing"),
                      HasSubstr("WEIR_SNDFILE_LIBRARY"), HasSubstr("WEIR_LIBRARY_PATH")));
    const fs::path site = folder / "site-packages";
    fs::create_directories(site / "nvidia/thing/lib");
    fs::create_symlink(file, site / "nvidia/thing/lib/libthing.so.8");
    ::setenv("WEIR_LIBRARY_PATH", ("/nowhere::" + site.string()).c_str(), 1);
    const backend::nvidia_library found(name());
    EXPECT_EQ(found.file(), (site / "nvidia/thing/lib/libthing.so.8").string());
    EXPECT_EQ(fs::path(found.folder()), fs::canonical(file).parent_path());
    EXPECT_NE(found.try_find("nvrtcVersion"), nullptr);
    int (*function)() = nullptr;
    EXPECT_THAT(message_of<missing_library>([&] { found.find("nvrtcNothing", function); }),
                HasSubstr("has no function nvrtcNothing"));
    fs::create_directories(site / "nvidia/cu13/lib");
    fs::create_symlink(file, site / "nvidia/cu13/lib/libthing.so.9");
    EXPECT_EQ(backend::nvidia_library(name()).file(), (site / "nvidia/cu13/lib/libthing.so.9").string())
        << "the first name is taken first";
    ::setenv("WEIR_SNDFILE_LIBRARY", "/nowhere/libthing.so", 1);
    EXPECT_THAT(message_of<missing_library>([&] { backend::nvidia_library{name()}; }),
                HasSubstr("cannot open /nowhere/libthing.so, which WEIR_SNDFILE_LIBRARY names"));
    ::unsetenv("WEIR_SNDFILE_LIBRARY");
    ::unsetenv("WEIR_LIBRARY_PATH");
}

}  // namespace
}  // namespace weir::test
