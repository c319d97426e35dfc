// WEIR_NVTX: named ranges around the enqueueing of operations. A process decides once, so each test runs this program again,
// with a library or a tool of the tests that writes down its calls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "support/scratch_folder.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Nvtx, DISABLED_a_program) {
    const stream s(cpu());
    array x = empty({4}, dtype::float64, s);
    parallel_for(
        on(s).label("outer"), x.size(), [](std::size_t i, std::span<double> to) { to[i] = 1; }, out(x.view<double>()));
    host_task(on(s).label("second"), [] {});
    s.synchronize();
}

struct outcome {
    std::string calls;
    std::string said;
};

std::string contents(const std::string& file) {
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
}

/// Runs the program in this environment.
outcome run_with(const std::string& environment) {
    std::array<char, 4096> self{};
    EXPECT_GT(readlink("/proc/self/exe", self.data(), self.size() - 1), 0);
    const test::scratch_folder folder;
    const std::string log = folder / "calls";
    const std::string command = "env -u NVTX_INJECTION64_PATH -u WEIR_NVTX WEIR_FAKE_NVTX_LOG='" + log + "' " +
                                environment + " '" + self.data() +
                                "' --gtest_also_run_disabled_tests --gtest_filter=Nvtx.DISABLED_a_program 2>&1";
    std::FILE* const child = popen(command.c_str(), "r");
    if (child == nullptr) {
        ADD_FAILURE() << "cannot run " << command;
        return {};
    }
    outcome found;
    std::array<char, 4096> part{};
    while (std::fgets(part.data(), static_cast<int>(part.size()), child) != nullptr) {
        found.said += part.data();
    }
    EXPECT_EQ(pclose(child), 0) << found.said;
    found.calls = contents(log);
    return found;
}

const std::string library = "WEIR_NVTX_LIBRARY='" WEIR_FAKE_NVTX_FILE "'";
const std::string tool = "NVTX_INJECTION64_PATH='" WEIR_FAKE_NVTX_FILE "'";

TEST(Nvtx, V2LabelledOperationsAreRangesOfTheLibrary) {
    EXPECT_EQ(run_with("WEIR_NVTX=1 " + library).calls,
              "library push outer\nlibrary pop \nlibrary push second\nlibrary pop \n");
}

TEST(Nvtx, V2AProfilersToolComesFirst) {
    EXPECT_EQ(run_with("WEIR_NVTX=1 " + tool + " " + library).calls,
              "tool push outer\ntool pop \ntool push second\ntool pop \n");
}

TEST(Nvtx, V2ControlWithoutItNothingIsCalled) {
    for (const char* const off : {"", "WEIR_NVTX= ", "WEIR_NVTX=0 "}) {
        const outcome found = run_with(off + tool + " " + library);
        EXPECT_EQ(found.calls, "") << off;
        EXPECT_THAT(found.said, Not(HasSubstr("WEIR_NVTX"))) << off;
    }
}

TEST(Nvtx, V2SaysWhatIsMissing) {
    EXPECT_THAT(
        run_with("WEIR_NVTX=1 WEIR_NVTX_LIBRARY=/no/such/library.so NVTX_INJECTION64_PATH=/no/such/tool.so").said,
        HasSubstr("weir: WEIR_NVTX=1: there are no NVTX ranges, for there is nothing that takes them"));
    const outcome wrong = run_with("WEIR_NVTX=yes " + library);
    EXPECT_THAT(wrong.said, HasSubstr("weir: WEIR_NVTX=yes: there are no NVTX ranges; say 1"));
    EXPECT_EQ(wrong.calls, "");
}

}  // namespace
}  // namespace weir
