// C functions over an index space (rules K1, K2, K4), on every device that runs code of the host.
#include "weir/index_function.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>

#include "backend/shared_loop.hpp"
#include "support/messages.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using test::message_of;
using ::testing::HasSubstr;

constexpr std::int64_t count = 1000;

template <class T>
T value_at(void* const* arguments, int position) {
    return *static_cast<T*>(arguments[position]);
}

/// float64 a, in float64* x, inout float64* y.
int axpy(std::int64_t begin, std::int64_t end, void* const* arguments) {
    const auto a = value_at<double>(arguments, 0);
    const auto* const x = value_at<const double*>(arguments, 1);
    auto* const y = value_at<double*>(arguments, 2);
    for (std::int64_t i = begin; i < end; ++i) {
        y[i] += a * x[i];
    }
    return 0;
}

/// int64 work, inout int64* visits.
int visit(std::int64_t begin, std::int64_t end, void* const* arguments) {
    const auto work = value_at<std::int64_t>(arguments, 0);
    auto* const visits = value_at<std::int64_t*>(arguments, 1);
    for (std::int64_t i = begin; i < end; ++i) {
        const auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(work);
        while (work != 0 && std::chrono::steady_clock::now() < until) {
        }
        ++visits[i];
    }
    return 0;
}

/// int32 status.
int fail(std::int64_t /*begin*/, std::int64_t /*end*/, void* const* arguments) {
    return value_at<std::int32_t>(arguments, 0);
}

class IndexFunction : public ::testing::TestWithParam<const char*> {
protected:
    [[nodiscard]] static device here() { return device::from_name(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Devices, IndexFunction, ::testing::Values("cpu", "cpu:inline", "sim:0"), [](const auto& each) {
    std::string name = each.param;
    std::replace(name.begin(), name.end(), ':', '_');
    return name;
});

TEST_P(IndexFunction, K2ItGetsTheAddressesOfNumbersAndOfTheAddressesOfArrays) {
    const stream s(here());
    const array x = full(count, 3.0, dtype::float64, s);
    array y = ones(count, dtype::float64, s);
    const event done =
        launch_event(on(s).label("axpy"), axpy, count, 2.0, in(x.view<double>()), inout(y.view<double>()));
    done.synchronize();
    const auto values = y.read<double>();
    EXPECT_EQ(std::count(values.begin(), values.end(), 7.0), count);
    launch(s, axpy, range(1, 3), 1.0, in<double>(x), inout<double>(y));
    EXPECT_EQ(y.read<double>()[0], 7.0);
    EXPECT_EQ(y.read<double>()[2], 10.0);
}

TEST_P(IndexFunction, K2EachIndexIsVisitedOnce) {
    const stream s(here());
    for (const auto& [indices, work] :
         {std::pair<std::int64_t, std::int64_t>{0, 0}, {1, 0}, {7, 0}, {2'000'003, 0}, {300, 3000}, {40, 30'000}}) {
        array visits = zeros(std::max<std::int64_t>(indices, 1), dtype::int64, s);
        launch(s, visit, indices, work, inout<std::int64_t>(visits));
        const auto seen = visits.read<std::int64_t>();
        EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), indices) << indices << " indices";
    }
}

TEST_P(IndexFunction, K4AFunctionThatFailsFailsItsOperation) {
    const stream s(here());
    const completion done = launch(on(s).label("fail"), fail, count, std::int32_t{3});
    EXPECT_THAT(message_of<operation_error>([&] { done.synchronize(); }),
                ::testing::AllOf(HasSubstr("\"fail\""), HasSubstr("the function returned 3")));
    EXPECT_THAT(message_of<argument_error>([&] { launch(s, nullptr, count); }), HasSubstr("the function is null"));
}

TEST(IndexFunction, O1AFunctionComesAfterWhatWritesItsOperands) {
    for (const ordering_mode mode : {ordering_mode::automatic, ordering_mode::manual}) {
        const stream writer;
        const stream reader;
        array x = zeros(count, dtype::float64, writer);
        array y = zeros(count, dtype::float64, writer);
        writer.synchronize();
        testing::gate held;
        held.hold(writer);
        const ordering_scope scope(mode);
        fill(writer, x, 5);
        const completion done = launch(reader, axpy, count, 1.0, in<double>(x), inout<double>(y));
        if (mode == ordering_mode::manual) {
            done.synchronize();  // the control: left to its own order, it reads what was there before
        } else {
            EXPECT_FALSE(done.done());
        }
        held.open();
        writer.synchronize();
        done.synchronize();
        EXPECT_EQ(y.read<double>()[0], mode == ordering_mode::manual ? 0.0 : 5.0);
    }
}

std::atomic<int> inside{0};
std::atomic<bool> met{false};
constexpr std::chrono::seconds patience{60};

/// The first call takes so long that the rest is shared; then each waits until two threads are inside at once.
int meet(std::int64_t begin, std::int64_t /*end*/, void* const* /*arguments*/) {
    const auto started = std::chrono::steady_clock::now();
    if (begin == 0) {
        while (std::chrono::steady_clock::now() < started + std::chrono::milliseconds(1)) {
        }
        return 0;
    }
    if (++inside >= 2) {
        met = true;
    }
    while (!met && std::chrono::steady_clock::now() < started + patience) {
        std::this_thread::yield();
    }
    --inside;
    return met ? 0 : 1;
}

TEST(IndexFunction, SeveralThreadsShareTheIndicesOfOneOperation) {
    if (backend::loop_threads() < 2) {
        GTEST_SKIP() << "the CPU has one thread here";
    }
    const stream s;
    launch(s, meet, count).synchronize();
    EXPECT_TRUE(met);
}

TEST(IndexFunction, OnTheInlineDeviceTheCallingThreadDoesAll) {
    const stream s(cpu_inline());
    launch(
        s,
        [](std::int64_t, std::int64_t, void* const* arguments) {
            return value_at<std::thread::id>(arguments, 0) == std::this_thread::get_id() ? 0 : 1;
        },
        2'000'000, std::this_thread::get_id())
        .synchronize();
}

}  // namespace
}  // namespace weir
