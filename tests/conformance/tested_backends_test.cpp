// The conformance suite runs on every backend: its devices exist, and its exclusions are of tests that fail.
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "support/devices.hpp"
#include "weir/weir.hpp"

namespace weir::test {
namespace {

TEST(TestedBackends, TheCudaDeviceOpensWhereADriverIsNamed) {
    if (std::getenv("WEIR_CUDA_DRIVER") == nullptr) {
        GTEST_SKIP() << "names no driver, and this machine need not have one";
    }
    std::string why_not;
    const std::optional<device> found = find_device("cuda:0", why_not);
    ASSERT_TRUE(found) << "no test runs on a CUDA device: " << why_not;
    EXPECT_EQ(found->kind(), device_kind::cuda);
    EXPECT_EQ(full(4, 1, dtype::float64, stream(*found)).read<double>()[3], 1);
}

TEST(TestedBackends, ControlADeviceThatIsNotThereIsNotFound) {
    std::string why_not;
    EXPECT_FALSE(find_device("cuda:1000", why_not));
    EXPECT_NE(why_not, "");
}

WEIR_CONFORMANCE(TestedBackends, EachHasADeviceThatWorks) {
    EXPECT_EQ(full(4, 1, dtype::float64, stream(here())).read<double>()[3], 1);
}

/// Fails in the child that tries whether an excluded test passes.
WEIR_CONFORMANCE(TestedBackends, DoesNotPassWhereItIsTried) {
    EXPECT_EQ(std::getenv("WEIR_TRYING_AN_EXCLUDED_TEST"), nullptr);
}

constexpr const char* file = "conformance/tested_backends_test.cpp";

TEST(Exclusions, ATestThatPassesIsAStaleOne) {
    expect_not_to_pass({file, "TestedBackends.DoesNotPassWhereItIsTried", "cpu", "control"});
    EXPECT_NONFATAL_FAILURE(expect_not_to_pass({file, "TestedBackends.EachHasADeviceThatWorks", "cpu", "of a reason"}),
                            "it passes: take it out of the exclusions. It was excluded because of a reason");
}

TEST(Exclusions, ATestThatIsNotThereIsADeadOne) {
    EXPECT_EQ(reason_why_dead({file, "TestedBackends.EachHasADeviceThatWorks", "sim", "control"}), "");
    EXPECT_EQ(reason_why_dead({file, "TestedBackends.EachHadADevice", "sim", "its name was another"}),
              "there is no such test in its file");
    EXPECT_EQ(reason_why_dead({"conformance/no_test.cpp", "TestedBackends.EachHasADeviceThatWorks", "sim", "it moved"}),
              "there is no such file");
    EXPECT_EQ(reason_why_dead({file, "TestedBackends.EachHasADeviceThatWorks", "simulated", "misspelt"}),
              "there is no such backend");
    for (const exclusion& one : exclusions) {
        EXPECT_EQ(reason_why_dead(one), "") << one.test;
    }
}

}  // namespace
}  // namespace weir::test
