// The list of devices, and their descriptions before they are used (docs/devices.md).
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <unordered_set>
#include <vector>

#include "support/fake_cuda.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using test::fake_cuda;

std::vector<device> gpus() {
    std::vector<device> all = devices();
    std::erase_if(all, [](const device& one) { return one.kind() != device_kind::cuda; });
    return all;
}

class Devices : public ::testing::Test {
protected:
    void SetUp() override {
        if (!fake_cuda::in_use()) {
            GTEST_SKIP() << "needs the counters of the fake driver";
        }
        fake_cuda::forget_calls();
    }
    void TearDown() override {
        if (fake_cuda::in_use()) {
            fake_cuda::set_attribute(33, 0);
        }
    }

    static unsigned long long contexts_made() { return fake_cuda::calls("cuDevicePrimaryCtxRetain"); }
};

TEST_F(Devices, AreListedNamedComparedAndDescribedWithoutAContext) {
    fake_cuda::set_attribute(33, 0x3b);  // the PCI bus
    const std::vector<device> found = gpus();
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0].name(), "cuda:0");
    EXPECT_EQ(found[1].to_string(), "<weir.device cuda:1>");
    EXPECT_EQ(found[1].id(), 1);
    EXPECT_EQ(found, gpus());
    EXPECT_NE(found[0], found[1]);
    EXPECT_EQ((std::unordered_set<device>{found[0], found[1], gpus()[0]}.size()), 2U);
    const device_description told = found[1].describe();
    EXPECT_EQ(told.model, "Device of threads 1");
    EXPECT_EQ(told.architecture, "sm_90");
    EXPECT_GT(told.memory_bytes, 0U);
    EXPECT_EQ(told.pci_id, "0000:3b:00.0");
    EXPECT_EQ(told.reaches, std::vector<device>{found[0]});
    found[1].synchronize();  // it has no work
    EXPECT_EQ(contexts_made(), 0U);
}

TEST_F(Devices, TheFirstUseOfAListedDeviceOpensThatOneAlone) {
    const device second = gpus()[1];
    ASSERT_EQ(contexts_made(), 0U);
    const stream s(second);
    EXPECT_EQ(contexts_made(), 1U);
    EXPECT_EQ(s.device(), second);
    EXPECT_EQ(second, cuda(1));
    second.synchronize();
    EXPECT_EQ(contexts_made(), 1U);
    static_cast<void>(cuda(0));
    EXPECT_EQ(contexts_made(), 2U);
}

TEST(AllDevices, DescribeTheHostAndSimulatedDevices) {
    EXPECT_GT(cpu().describe().memory_bytes, 0U);
    EXPECT_EQ(cpu().describe().pci_id, "");
    EXPECT_EQ(sim(3).describe().model, "simulated");
    const std::vector<device> all = devices();
    EXPECT_EQ(std::count(all.begin(), all.end(), sim(3)), 1);
    EXPECT_EQ(std::count(all.begin(), all.end(), cpu()), 1);
}

}  // namespace
}  // namespace weir
