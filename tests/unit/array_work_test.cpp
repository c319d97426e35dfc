// The library's own operations on arrays, and what keeps things alive (rule L2).
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <vector>

#include "runtime/lifetime/reaper.hpp"
#include "support/effort.hpp"
#include "support/time_limit.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using test::time_limit;
using testing::gate;

std::span<const std::byte> bytes_of(const std::vector<double>& values) { return std::as_bytes(std::span(values)); }

template <class T>
bool all_are(const array& x, T value) {
    const auto elements = x.read<T>();
    return std::all_of(elements.begin(), elements.end(), [&](const T& one) { return one == value; });
}

TEST(Creation, FillsWithTheValueInEachType) {
    const stream s;
    EXPECT_TRUE(all_are<float>(full(100, 1.5, dtype::float32, s), 1.5F));
    EXPECT_TRUE(all_are<double>(zeros({10, 10}, dtype::float64, s), 0.0));
    EXPECT_TRUE(all_are<std::complex<float>>(full(100, {1, 2}, dtype::complex64, s), {1, 2}));
    EXPECT_TRUE(all_are<std::complex<double>>(full(100, {1, 2}, dtype::complex128, s), {1, 2}));
    EXPECT_TRUE(all_are<double>(full(shape(), 7, dtype::float64, s), 7.0));
}

TEST(Creation, AnImaginaryPartNeedsAComplexType) {
    const stream s;
    EXPECT_THROW((void)full(3, {1, 2}, dtype::float32, s), argument_error);
    EXPECT_THROW(fill(s, empty(3, dtype::float64, s), {0, 1}), argument_error);
}

TEST(Creation, NeedsAnOpenStream) {
    stream s;
    s.close();
    EXPECT_THROW((void)empty(3, dtype::float32, s), state_error);
    EXPECT_NO_THROW((void)buffer(0, s));  // takes no memory, so that there is nothing to order
}

TEST(Copy, CopiesAcrossStreams) {
    const stream a;
    const stream b;
    array x = full({3, 4}, 2, dtype::float64, a);
    array y = zeros(12, dtype::float64, b);
    copy(b, y.reshape({3, 4}), x);
    EXPECT_TRUE(all_are(y, 2.0));
}

TEST(Copy, OverlappingRangesAsMemmoveDoes) {
    const stream s;
    array x = empty(10, dtype::float64, s);
    {
        const auto host = x.write<double>();
        std::iota(host.begin(), host.end(), 0.0);
    }
    copy(s, x.slice(1, 10), x.slice(0, 9));
    const auto host = x.read<double>();
    EXPECT_EQ(host[0], 0.0);
    EXPECT_EQ(host[1], 0.0);
    EXPECT_EQ(host[9], 8.0);
}

TEST(L2, TheSourceOfACopyFromTheHostMayChangeAtOnce) {
    const stream s;
    gate held;
    held.hold(s);
    array x = empty(3, dtype::float64, s);
    std::vector<double> source{1, 2, 3};
    copy_from_host(s, x, bytes_of(source));
    source = {7, 7, 7};
    held.open();
    const auto host = x.read<double>();
    EXPECT_EQ(host[0], 1.0);
    EXPECT_EQ(host[1], 2.0);
    EXPECT_EQ(host[2], 3.0);
}

TEST(L2, KeptObjectsGoAfterTheEventAndNotBefore) {
    const stream s;
    gate held;
    held.hold(s);
    auto object = std::make_shared<int>(1);
    auto other = std::make_shared<int>(2);
    const std::weak_ptr<int> watched = object;
    const completion work = parallel_for(s, 1, [](auto) {});
    keep_alive(work, std::move(object), other);
    EXPECT_EQ(watched.use_count(), 1);
    EXPECT_EQ(other.use_count(), 2);
    held.open();
    runtime::reaper::wait_until_empty();
    EXPECT_TRUE(watched.expired());
    EXPECT_EQ(other.use_count(), 1);
}

TEST(L2, WhatIsOverAlreadyKeepsNothing) {
    const stream s;
    auto object = std::make_shared<int>(1);
    const completion work = parallel_for(s, 1, [](auto) {});
    work.synchronize();
    keep_alive(work, object);
    EXPECT_EQ(object.use_count(), 1);
    keep_alive(event(), object);  // never recorded
    EXPECT_EQ(object.use_count(), 1);
}

TEST(L2, KeptObjectsMayBeMoveOnlyAndMayBeArrays) {
    const time_limit limit(test::sanitized ? 120 : 30, "the reaper");
    const stream s;
    array x = zeros(100, dtype::float64, s);
    s.synchronize();
    runtime::reaper::wait_until_empty();
    const std::size_t live = memory::stats().live;
    gate held;
    held.hold(s);
    parallel_for(s, 1, [](auto) {});
    const event last = s.record();
    std::atomic<int> gone{0};
    const auto goes = [&gone](const int* one) {
        ++gone;
        delete one;  // NOLINT(cppcoreguidelines-owning-memory): the deleter of a unique_ptr
    };
    keep_alive(last, std::unique_ptr<int, decltype(goes)>(new int(3), goes), std::move(x));
    EXPECT_EQ(gone, 0);
    EXPECT_EQ(memory::stats().live, live) << "the array is kept";
    held.open();
    runtime::reaper::wait_until_empty();
    EXPECT_EQ(gone, 1);
    EXPECT_LT(memory::stats().live, live) << "and let go of";
}

}  // namespace
}  // namespace weir
