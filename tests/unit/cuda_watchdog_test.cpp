// For streams of a CUDA device, as for others, the watchdog reports why the host waits so long.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "unit/cuda_support.hpp"
#include "weir/watchdog.hpp"

namespace weir::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Each report goes to `told`, and opens the gate: so the wait of a thread is seen, however slow the machine is.
class CudaWatchdog : public ::testing::Test {
protected:
    void SetUp() override { WEIR_NEEDS_FAKE(); }
    void TearDown() override { set_watchdog(std::chrono::seconds(60)); }
    void watch(fake_gate& held, std::chrono::milliseconds patience = std::chrono::milliseconds(4)) {
        set_watchdog(patience, [this, &held](const std::string& text) {
            told.push_back(text);
            held.open();
        });
    }
    static std::string rest_behind(const std::string& text, const std::string& part) {
        const std::size_t at = text.find(part);
        return at == std::string::npos ? "" : text.substr(at);
    }

    std::vector<std::string> told;
    stream a{cuda(), {.name = "the first"}};
    stream b{cuda(), {.name = "the other"}};
    array x = make(a, 1);
    array y = make(b, 0);
};

TEST_F(CudaWatchdog, TellsTheWayFromTheHostToWhatTheDeviceDoesNotEnd) {
    cuda().synchronize();
    fake_gate held(handle_of(a));
    step_in_place(on(a).label("makes it"), x);
    const completion last = step(on(b).label("takes it"), y, x);
    watch(held);
    last.synchronize();
    ASSERT_THAT(told, ElementsAre(AllOf(HasSubstr("\"takes it\""), HasSubstr("stream \"the other\" of cuda:0"))));
    EXPECT_THAT(rest_behind(told[0], "waits for\n"),
                AllOf(HasSubstr("\"makes it\""), HasSubstr("stream \"the first\" of cuda:0")));
}

TEST_F(CudaWatchdog, ControlWhatGetsOverIsNotReported) {
    fake_gate held(handle_of(a));
    watch(held, std::chrono::minutes(1));  // on a busy machine the wait can take a while
    step_in_place(b, y).synchronize();
    EXPECT_THAT(told, ElementsAre());
}

}  // namespace
}  // namespace weir::test
