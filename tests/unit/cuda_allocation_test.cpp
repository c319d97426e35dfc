// The memory that a stream of a CUDA device gets when another stream still uses free memory: an event may come too late to wait for that
// use alone (rule L1).
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include "unit/cuda_support.hpp"

namespace weir::test {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

bool has_own_end(const completion& one) {
    return cuda().state(detail::key).driver().has_own_end({one.timeline(detail::key), one.epoch(detail::key)});
}

TEST(L1CudaEnds, AnOperationHasAnEndOfItsOwnWhereAnEventWasRecordedRightBehindIt) {
    WEIR_NEEDS_FAKE();
    const stream a(cuda());
    const stream b(cuda());
    array x = make(a, 1);
    array y = make(b, 0);
    cuda().synchronize();
    const fake_gate held(handle_of(a));
    const completion first = step_in_place(a, x);
    const completion second = step_in_place(a, x);
    EXPECT_FALSE(has_own_end(first));
    step(b, y, x);  // waits for the second one: an event is recorded behind it
    EXPECT_TRUE(has_own_end(second));
    EXPECT_FALSE(has_own_end(first)) << "that event covers the second one, too";
}

/// The device has 8 MiB. A held stream still uses the first half, and does more after that.
class L1CudaAtTheLimit : public ::testing::Test {
protected:
    void SetUp() override {
        WEIR_NEEDS_FAKE();
        x = make(first, 1);
        cuda().synchronize();
        memory::trim(cuda());
        before = memory::stats(cuda());
        memory::limit(cuda(), before.live + before.cached + 8 * mib);
    }
    void TearDown() override {
        if (fake_cuda::in_use()) {
            memory::limit(cuda(), before.limit);
        }
    }
    static array megabytes(std::size_t count, const stream& on) {
        return empty(static_cast<std::int64_t>(count * mib), dtype::uint8, on);
    }
    void use_and_go_on() const {
        fill(first, megabytes(4, first), 1);
        step_in_place(first, x);
    }
    [[nodiscard]] std::uint64_t over_waited() const { return memory::stats(cuda()).over_waited - before.over_waited; }

    stream first{cuda()};
    stream second{cuda()};
    array x;
    memory::statistics before;
};

TEST_F(L1CudaAtTheLimit, AWaitThatCoversLaterWorkIsTheLastResortAndIsCounted) {
    const fake_gate held(handle_of(first));
    use_and_go_on();
    array other = megabytes(4, second);
    EXPECT_EQ(over_waited(), 0U) << "there was other memory";
    array late = megabytes(4, second);
    EXPECT_EQ(over_waited(), 1U);
}

TEST_F(L1CudaAtTheLimit, WhereTheLastUseHasAnEventTheWaitCoversNoLaterWork) {
    array live = megabytes(4, second);
    fake_gate held(handle_of(first));
    fill(first, megabytes(4, first), 1);
    second.wait(first);  // an event is recorded behind the fill
    device_flag later;
    later.hold(static_cast<gpu::stream_handle>(handle_of(first)));
    step_in_place(first, x);
    const stream third(cuda());
    array taken = megabytes(4, third);
    const completion filled = fill(third, taken, 2);
    EXPECT_EQ(over_waited(), 0U);
    fake_cuda::settle(handle_of(third));
    EXPECT_FALSE(filled.done()) << "the former owner's use is not over";
    held.open();
    EXPECT_TRUE(gets_over(filled)) << "what came later in the other stream is not waited for";
    EXPECT_FALSE(first.done());
    later.raise();
}

}  // namespace
}  // namespace weir::test
