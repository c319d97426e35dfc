// The cache of compiled kernels distinguishes more than the arguments of a call: driver, compiler, architecture. And the message if
// there is no compiler. In processes of their own, since a process opens a compiler once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>

#include "support/scratch_folder.hpp"
#include "unit/kernel_support.hpp"
#include "weir/error.hpp"

namespace weir::test {
namespace {

namespace fs = std::filesystem;
using ::testing::ExitedWithCode;

/// A cache that a test shares with the processes that it starts.
class KernelCompilerDeathTest : public ::testing::Test {
protected:
    KernelCompilerDeathTest() {
        ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
        if (std::getenv(shared) == nullptr) {
            scratch_.emplace();
            ::setenv(shared, scratch_->path().c_str(), 1);
        }
        folder_ = std::getenv(shared);
        ::setenv("WEIR_CACHE_DIR", folder_.c_str(), 1);
    }
    ~KernelCompilerDeathTest() override { ::unsetenv(shared); }

    /// Ends the process with the number of kernels that were compiled for a call.
    [[noreturn]] static void compile() {
        const auto before = fake_cuda::compilations();
        try {
            static_cast<void>(kernel::from_source(kernel_source, "nothing"));
        } catch (const argument_error&) {
            // The fake loads no code for another architecture than its own.
        }
        std::_Exit(static_cast<int>(fake_cuda::compilations() - before));
    }
    [[noreturn]] static void compile_where(const char* variable, const std::string& value) {
        ::setenv(variable, value.c_str(), 1);
        compile();
    }
    /// On a device of this compute capability.
    [[noreturn]] static void compile_for(int major, int minor) {
        fake_cuda::set_attribute(75, major);
        fake_cuda::set_attribute(76, minor);
        compile();
    }
    [[noreturn]] static void compile_without(const std::string& library) {
        ::setenv("WEIR_NVRTC_LIBRARY", library.c_str(), 1);
        try {
            static_cast<void>(kernel::from_source(kernel_source, "nothing"));
        } catch (const missing_library& thrown) {
            std::fprintf(stderr, "%s", thrown.what());
            std::_Exit(3);
        }
        std::_Exit(0);
    }

    /// Into the cache, which is empty.
    static void compile_once() {
        EXPECT_EXIT(compile(), ExitedWithCode(1), "");
        EXPECT_EXIT(compile(), ExitedWithCode(0), "") << "control: another process finds it";
    }

    fs::path folder_;

private:
    static constexpr const char* shared = "WEIR_TEST_SHARED_CACHE";
    std::optional<scratch_folder> scratch_;
};

#define WEIR_NEEDS_FAKE_NVRTC                                                                          \
    if (!fake_cuda::in_use()) {                                                                        \
        GTEST_SKIP() << "counts what the fake NVRTC compiles, and has the fakes be of other versions"; \
    }

TEST_F(KernelCompilerDeathTest, AnotherDriverFindsNothingInTheCache) {
    WEIR_NEEDS_FAKE_NVRTC
    compile_once();
    EXPECT_EXIT(compile_where("WEIR_FAKE_CUDA_VERSION", "13010"), ExitedWithCode(1), "");
    EXPECT_EXIT(compile_where("WEIR_FAKE_CUDA_VERSION", "13010"), ExitedWithCode(0), "") << "control";
}

TEST_F(KernelCompilerDeathTest, AnotherCompilerFindsNothingInTheCache) {
    WEIR_NEEDS_FAKE_NVRTC
    compile_once();
    for (const char* const version : {"13.1", "12.0", "12.1"}) {
        EXPECT_EXIT(compile_where("WEIR_FAKE_NVRTC_VERSION", version), ExitedWithCode(1), "") << version;
        EXPECT_EXIT(compile_where("WEIR_FAKE_NVRTC_VERSION", version), ExitedWithCode(0), "") << "control " << version;
    }
    const fs::path other = folder_ / "libnvrtc.other.so";
    std::error_code is_there;  // for the processes that this starts
    fs::create_symlink(std::getenv("WEIR_NVRTC_LIBRARY"), other, is_there);
    EXPECT_EXIT(compile_where("WEIR_NVRTC_LIBRARY", other), ExitedWithCode(1), "") << "of the same version";
    EXPECT_EXIT(compile(), ExitedWithCode(0), "") << "the others' are no harm";
}

TEST_F(KernelCompilerDeathTest, AnotherArchitectureFindsNothingInTheCache) {
    WEIR_NEEDS_FAKE_NVRTC
    compile_once();
    EXPECT_EXIT(compile_for(8, 0), ExitedWithCode(1), "");
    EXPECT_EXIT(compile_for(8, 6), ExitedWithCode(1), "");
    EXPECT_EXIT(compile_for(8, 6), ExitedWithCode(0), "") << "control";
    EXPECT_EXIT(compile_for(9, 0), ExitedWithCode(0), "") << "control: that of the fake";
}

TEST_F(KernelCompilerDeathTest, OtherHeadersBesideTheCompilerFindNothingInTheCache) {
    WEIR_NEEDS_FAKE_NVRTC
    const fs::path library = folder_ / "toolkit/lib/libnvrtc.so";
    const fs::path header = folder_ / "toolkit/include/cuda_runtime.h";
    std::error_code is_there;  // for the processes that this starts
    fs::create_directories(library.parent_path(), is_there);
    fs::create_directories(header.parent_path(), is_there);
    fs::copy_file(std::getenv("WEIR_NVRTC_LIBRARY"), library, is_there);
    const auto install = [&](const std::string& text) {
        std::string before;
        std::getline(std::ifstream(header), before);
        if (before != text) {  // each process that this starts reaches this line
            std::ofstream(header) << text;
        }
    };
    install("// one version");
    EXPECT_EXIT(compile_where("WEIR_NVRTC_LIBRARY", library), ExitedWithCode(1), "");
    EXPECT_EXIT(compile_where("WEIR_NVRTC_LIBRARY", library), ExitedWithCode(0), "") << "control";
    install("// another version");
    EXPECT_EXIT(compile_where("WEIR_NVRTC_LIBRARY", library), ExitedWithCode(1), "");
}

TEST_F(KernelCompilerDeathTest, AMissingOneIsNamedWithWhatToInstall) {
    EXPECT_EXIT(compile_without("/there/is/no/such/file.so"), ExitedWithCode(3),
                "cannot open /there/is/no/such/file.so, which WEIR_NVRTC_LIBRARY names");
    EXPECT_EXIT(compile_without("libm.so.6"), ExitedWithCode(3),
                "libm.so.6 has no function nvrtcVersion: it is not NVRTC");
    const bool has_toolkit = fs::exists("/usr/local/cuda");  // it may have NVRTC
    if (std::getenv("WEIR_LIBRARY_PATH") == nullptr && !has_toolkit && fake_cuda::in_use()) {
        EXPECT_EXIT(compile_without(""), ExitedWithCode(3),
                    "cannot find NVRTC.*install the CUDA toolkit's NVRTC.*libnvrtc12.*nvidia-cuda-nvrtc");
    }
    const char* const there = std::getenv("WEIR_NVRTC_LIBRARY");
    EXPECT_EXIT(compile_without(there != nullptr ? there : ""), ExitedWithCode(0), "") << "control: with the library";
}

}  // namespace
}  // namespace weir::test
