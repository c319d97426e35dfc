// The demonstration's acts, at a small size: the same program without order, ordered by hand, and by Weir.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <set>
#include <string>

#include "cli/demo/difference.hpp"
#include "cli/demo/reference.hpp"
#include "cli/demo/runs.hpp"
#include "cli/demo/schedule.hpp"
#include "cli/demo/work.hpp"
#include "support/effort.hpp"
#include "weir/error.hpp"

namespace weir::demo {
namespace {

using ::testing::HasSubstr;

/// A steady tone with a click four times a second.
recording music(int rate, int channels, double seconds) {
    recording sound{rate, channels, {}};
    const auto length = static_cast<std::int64_t>(seconds * rate);
    for (std::int64_t i = 0; i < length; ++i) {
        const double time = static_cast<double>(i) / rate;
        const double tone = 0.3 * std::sin(2 * std::numbers::pi * 440 * time);
        const double click = i % (rate / 4) < 8 ? 0.5 : 0;
        for (int channel = 0; channel < channels; ++channel) {
            sound.samples.push_back(static_cast<float>(tone + (channel == 0 ? click : -click)));
        }
    }
    return sound;
}

class Demo : public ::testing::TestWithParam<int> {
protected:
    const recording sound = music(8000, 2, 8);
    const recording right = reference_result(sound);

    [[nodiscard]] bool is_right(const recording& result) const { return compare(result, right).samples == 0; }
};

INSTANTIATE_TEST_SUITE_P(Streams, Demo, ::testing::Values(4, 5, 6, 8, 10));

TEST_P(Demo, WithoutOrderingTheResultIsWrong) {
    const recording broken = run_delayed(sound, GetParam());
    EXPECT_FALSE(is_right(broken));
    EXPECT_EQ(compare(run_delayed(sound, GetParam()), broken).samples, 0) << "and the same in each run";
}

TEST_P(Demo, UnderCheckItIsRightAndBothLinesAreNamed) {
    const checked_run checked = run_checked(sound, GetParam(), way::unordered);
    EXPECT_TRUE(is_right(checked.result));
    ASSERT_FALSE(checked.report.empty());
    for (const race& one : checked.report) {
        EXPECT_THAT(one.first.file, HasSubstr("pipeline.cpp"));
        EXPECT_THAT(one.second.file, HasSubstr("pipeline.cpp"));
        EXPECT_NE(one.first.line, one.second.line);
        EXPECT_THAT(one.mend, HasSubstr(".record();"));
        EXPECT_THAT(one.mend, HasSubstr(".wait(e);"));
    }
}

TEST_P(Demo, OrderedByHandItIsRightAndCheckIsSilent) {
    const checked_run checked = run_checked(sound, GetParam(), way::by_hand);
    EXPECT_TRUE(is_right(checked.result));
    EXPECT_TRUE(checked.report.empty()) << checked.report.to_string();
}

TEST_P(Demo, OrderedByWeirItIsTheSameWithNoMoreWaits) {
    EXPECT_EQ(compare(run(sound, GetParam(), way::by_weir), run(sound, GetParam(), way::by_hand)).samples, 0);
    const checked_run checked = run_checked(sound, GetParam(), way::by_weir);
    EXPECT_TRUE(is_right(checked.result));
    EXPECT_TRUE(checked.report.empty()) << checked.report.to_string();
    const trace_summary hand = count_waits(sound, GetParam(), way::by_hand);
    const trace_summary weir = count_waits(sound, GetParam(), way::by_weir);
    EXPECT_EQ(weir.operations, hand.operations);
    EXPECT_LE(weir.waits_issued, hand.waits_issued);
    EXPECT_EQ(weir.waits_issued, weir.waits_minimal);
}

TEST(DemoAlone, OneStreamNeedsNoWait) {
    const recording sound = music(8000, 1, 2);
    EXPECT_EQ(compare(run(sound, 1, way::by_weir), reference_result(sound)).samples, 0);
    EXPECT_EQ(count_waits(sound, 1, way::by_weir).waits_issued, 0U);
}

TEST(DemoOnDevices, ASimulatedOneGivesTheSameBits) {
    const recording sound = music(8000, 2, 3);
    const recording right = reference_result(sound);
    const placement there(6, sim());
    EXPECT_EQ(compare(run(sound, there, way::by_weir), right).samples, 0);
    EXPECT_EQ(compare(run(sound, there, way::by_hand), right).samples, 0);
    EXPECT_NE(compare(run_delayed(sound, there), right).samples, 0);
}

TEST(DemoOnDevices, CudaIsRightWithinTheTolerance) {
    const recording sound = music(8000, 2, test::sanitized ? 0.25 : 1);
    const recording right = reference_result(sound);
    const placement there(6, cuda());
    const float tolerance = work::tolerance(cuda());
    const recording by_weir = run(sound, there, way::by_weir);
    EXPECT_EQ(compare(by_weir, right, tolerance).samples, 0);
    EXPECT_EQ(compare(run(sound, there, way::by_hand), by_weir).samples, 0) << "to the last bit";
    EXPECT_NE(compare(run_delayed(sound, there), right, tolerance).samples, 0);
    const checked_run checked = run_checked(sound, there, way::unordered);
    EXPECT_EQ(compare(checked.result, right, tolerance).samples, 0);
    EXPECT_FALSE(checked.report.empty());
    const trace_summary hand = count_waits(sound, there, way::by_hand);
    const trace_summary weir = count_waits(sound, there, way::by_weir);
    EXPECT_EQ(weir.operations, hand.operations);
    EXPECT_LE(weir.waits_issued, hand.waits_issued);
}

TEST(DemoDifference, ToleranceIsForNumbers) {
    const auto one = [](float sample) { return recording{8000, 1, {sample}}; };
    EXPECT_EQ(compare(one(0.5F), one(0.5F + 1e-6F), 1e-5F).samples, 0);
    EXPECT_EQ(compare(one(0.5F), one(0.5F + 1e-6F)).samples, 1);
    EXPECT_EQ(compare(one(0.5F), one(0.5F + 2e-5F), 1e-5F).samples, 1);
    const float none = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(compare(one(none), one(0.5F), 1e-5F).samples, 1);
    EXPECT_TRUE(std::isinf(compare(one(none), one(0.5F), 1e-5F).furthest));
}

TEST(DemoFilter, TakesTheClicksOutAndLeavesTheTone) {
    const recording sound = music(8000, 1, 4);
    const recording result = reference_result(sound);
    // In the second half, once the filter has adapted to the tone: between clicks, and at them.
    double tone = 0;
    double click = 0;
    for (std::int64_t i = 16000; i < 30000; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const double wanted = 0.3 * std::sin(2 * std::numbers::pi * 440 * static_cast<double>(i) / 8000);
        (i % 2000 < 8 ? click : tone) =
            std::max(i % 2000 < 8 ? click : tone, std::abs(static_cast<double>(result.samples[at]) - wanted));
    }
    EXPECT_LT(tone, 0.15);
    EXPECT_LT(click, 0.25) << "half of what it was, or less";
}

TEST(DemoLayout, SamplesThatAreNotFilteredComeBack) {
    // Fading in and out and adding up restores the recording, at its ends, too.
    const recording sound = music(8000, 2, 1);
    const layout cut(sound);
    const kernels compute(cut);
    const std::vector<float> samples = with_silence(sound, cut);
    std::vector<float> frames(static_cast<std::size_t>(cut.batch() * cut.frame));
    std::vector<float> here(static_cast<std::size_t>(cut.step() * cut.channels));
    std::vector<float> next(here.size());
    std::vector<float> all;
    for (std::int64_t block = 0; block < cut.blocks; ++block) {
        for (std::size_t frame = 0; frame < static_cast<std::size_t>(cut.batch()); ++frame) {
            compute.window(frame, std::span(samples).subspan(static_cast<std::size_t>(block) * here.size()), frames);
        }
        compute.overlap_add(0, frames, here, next);
        compute.overlap_add(1, frames, here, next);
        all.insert(all.end(), here.begin(), here.end());
        here = std::exchange(next, std::vector<float>(here.size()));
    }
    const recording back = without_silence(all, cut);
    ASSERT_EQ(back.samples.size(), sound.samples.size());
    for (std::size_t i = 0; i < back.samples.size(); ++i) {
        ASSERT_NEAR(back.samples[i], sound.samples[i], 1e-5) << i;
    }
}

TEST(DemoLayout, AFrameIsTheLeast) {
    EXPECT_THROW(layout(music(8000, 1, 0.05)), argument_error);
    EXPECT_EQ(layout(music(8000, 1, 0.2)).blocks, 1);
}

}  // namespace
}  // namespace weir::demo
