// What has the conformance suite run on every backend: its devices are there.
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

}  // namespace
}  // namespace weir::test
