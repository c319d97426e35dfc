// Memory that others own: tracked like any other, released once its last access is over (rule L4).
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "runtime/lifetime/reaper.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using testing::gate;

constexpr std::int64_t count = 512;

class L4Wrap : public ::testing::Test {
protected:
    array wrapped() {
        return {buffer::wrap(memory.data(), sizeof(memory), cpu(), [this] { ++released; }), dtype::float64, count};
    }
    static void settle() { runtime::reaper::wait_until_empty(); }

    alignas(64) std::array<double, count> memory{};
    std::atomic<int> released{0};
    const stream s;
};

TEST_F(L4Wrap, IsTheOwnersMemoryAndNotThePools) {
    const memory::statistics before = weir::memory::stats();
    {
        array x = wrapped();
        EXPECT_EQ(x.buffer().data(), reinterpret_cast<std::byte*>(memory.data()));
        EXPECT_EQ(x.buffer().bytes(), sizeof(memory));
        EXPECT_EQ(x.device().name(), "cpu");
        fill(s, x, 7);
        EXPECT_EQ(x.read<double>()[count - 1], 7);
        EXPECT_EQ(memory[0], 7);
        EXPECT_EQ(weir::memory::stats().live, before.live);
    }
    EXPECT_EQ(released, 1) << "nothing is pending: at once";
    weir::memory::trim();
    EXPECT_EQ(released, 1);
}

TEST_F(L4Wrap, IsOrderedAsAnyOtherMemory) {
    const stream other;
    gate held;
    array x = wrapped();
    held.hold(s);
    fill(s, x, 3);
    array y = zeros(count, dtype::float64, other);
    copy(other, y, x);  // read after write, on another stream
    EXPECT_FALSE(x.ready());
    held.open();
    EXPECT_EQ(y.read<double>()[0], 3);
}

TEST_F(L4Wrap, ControlWithoutOrderingTheReaderIsTooEarly) {
    const stream other;
    gate held;
    array x = wrapped();
    held.hold(s);
    const ordering_scope manual(ordering_mode::manual);
    fill(s, x, 3);
    array y = zeros(count, dtype::float64, other);
    copy(other, y, x).synchronize();
    EXPECT_EQ(y.read<double>()[0], 0);
    held.open();
    s.synchronize();
}

TEST_F(L4Wrap, IsLetGoOfAfterTheLastAccessAndNotBefore) {
    const stream other;
    gate first;
    gate second;
    array y = zeros(count, dtype::float64, other);
    first.hold(s);
    second.hold(other);
    array x = wrapped();
    const completion written = fill(s, x, 3);
    copy(other, y, x);
    x = {};
    EXPECT_EQ(released, 0);
    first.open();
    written.synchronize();
    EXPECT_EQ(released, 0) << "a reader is left";
    second.open();
    settle();
    EXPECT_EQ(released, 1);
    EXPECT_EQ(y.read<double>()[0], 3);
}

TEST_F(L4Wrap, ControlFreedOnAnotherStreamItGoesTooEarly) {
    // A release in the order of a stream that does not know the reader, as a deleter without a stream would do it.
    gate held;
    array y = zeros(count, dtype::float64, s);
    s.synchronize();
    held.hold(s);
    array x = wrapped();
    copy(s, y, x);
    const stream unaware;
    access(unaware, [this](native_stream) { ++released; }).synchronize();
    EXPECT_EQ(released, 1) << "the reader has not run yet";
    held.open();
    s.synchronize();
    x = {};
}

TEST_F(L4Wrap, TheHostsViewKeepsIt) {
    std::optional<host_view<const double>> view;
    {
        array x = wrapped();
        fill(s, x, 2);
        view.emplace(x.read<double>());
    }
    EXPECT_EQ(released, 0);
    EXPECT_EQ((*view)[0], 2);
    view.reset();
    EXPECT_EQ(released, 1);
}

TEST_F(L4Wrap, TheOwnerMayBeAnythingThatMoves) {
    auto shared = std::make_shared<int>(1);
    auto only = std::make_unique<int>(2);
    const std::weak_ptr<int> watched = shared;
    const std::function<void()> function = [this] { ++released; };
    {
        const buffer a = buffer::wrap(memory.data(), 64, cpu(), std::move(shared));
        const buffer b = buffer::wrap(&memory[8], 64, cpu(), std::move(only));
        const buffer c = buffer::wrap(&memory[16], 64, cpu(), function);
        const buffer d = buffer::wrap(&memory[24], 64, cpu(), nullptr);  // lives as long as its owner says
        const buffer copied = c;
        EXPECT_NE(a.unique_id(), b.unique_id());
        EXPECT_FALSE(watched.expired());
    }
    EXPECT_TRUE(watched.expired());
    EXPECT_EQ(released, 1);
}

TEST_F(L4Wrap, AnOwnerThatThrowsHarmsNothing) {
    {
        const buffer a = buffer::wrap(memory.data(), 64, cpu(), [] { throw std::runtime_error("no"); });
        const buffer b = buffer::wrap(memory.data(), 64, cpu(), [] { throw 3; });
    }
    gate held;
    held.hold(s);
    array x(buffer::wrap(memory.data(), sizeof(memory), cpu(),
                         [this] {
                             ++released;
                             throw std::runtime_error("no");
                         }),
            dtype::float64, count);
    fill(s, x, 1);
    x = {};
    held.open();
    settle();
    EXPECT_EQ(released, 1);
}

TEST_F(L4Wrap, AnOwnerMayUseWeir) {
    const stream other;
    array y = zeros(count, dtype::float64, other);
    gate held;
    held.hold(s);
    array x(buffer::wrap(memory.data(), sizeof(memory), cpu(),
                         [&] {
                             fill(other, y, 5);
                             array again = wrapped();
                             fill(other, again, 6);
                         }),
            dtype::float64, count);
    fill(s, x, 1);
    x = {};
    held.open();
    settle();
    EXPECT_EQ(released, 1);
    EXPECT_EQ(y.read<double>()[0], 5);
    EXPECT_EQ(memory[0], 6);
}

TEST_F(L4Wrap, BadRangesAreRefusedAndTheOwnerIsNotCalled) {
    const auto owner = [this] { ++released; };
    EXPECT_THROW((void)buffer::wrap(nullptr, 8, cpu(), owner), argument_error);
    EXPECT_THROW((void)buffer::wrap(memory.data(), ~std::size_t{0} - 8, cpu(), owner), argument_error);
    EXPECT_EQ(released, 0);
    const buffer odd = buffer::wrap(reinterpret_cast<std::byte*>(memory.data()) + 4, 64, cpu(), owner);
    try {
        array x(odd, dtype::float64, 2);
        FAIL() << "the elements would be misaligned";
    } catch (const argument_error& refused) {
        EXPECT_NE(std::string(refused.what()).find("multiple of 8"), std::string::npos) << refused.what();
    }
    EXPECT_EQ(array(odd, dtype::float64, 2, 4).size(), 2);
    EXPECT_EQ(array(odd, dtype::float32, 2).size(), 2);
}

TEST_F(L4Wrap, NoBytesAreNoMemory) {
    const buffer none = buffer::wrap(nullptr, 0, cpu(), [this] { ++released; });
    EXPECT_EQ(released, 1);
    EXPECT_FALSE(none);
}

/// Eight threads wrap memory, use it on any stream and drop it: each is released once, after its writer.
TEST_F(L4Wrap, EightThreadsWrapUseAndDrop) {
    constexpr int each = 200;
    const std::vector<stream> streams(4);
    std::atomic<int> gone{0};
    std::atomic<int> early{0};
    std::vector<std::thread> threads;
    for (unsigned id = 0; id < 8; ++id) {
        threads.emplace_back([&, id] {
            for (unsigned i = 0; i < each; ++i) {
                const double value = 1 + id * 1000.0 + i;
                auto owned = std::make_unique<std::array<double, 64>>();
                double* const data = owned->data();
                array x(buffer::wrap(data, 64 * sizeof(double), cpu(),
                                     [&, value, owned = std::move(owned)] {
                                         early += (*owned)[63] == value ? 0 : 1;
                                         ++gone;
                                     }),
                        dtype::float64, 64);
                fill(streams[(id + i) % 4], x, 0);
                fill(streams[(id + 3 * i) % 4], x, value);
            }
        });
    }
    for (std::thread& one : threads) {
        one.join();
    }
    settle();
    EXPECT_EQ(gone, 8 * each);
    EXPECT_EQ(early, 0);
}

TEST_F(L4Wrap, ChecksSeeItAsTheySeeAnyMemory) {
    check_scope scope({.assume_manual = true});
    const stream other;
    array x = wrapped();
    fill(s, x, 1);
    fill(other, x, 2);
    s.synchronize();
    other.synchronize();
    ASSERT_EQ(scope.report().size(), 1U);
    EXPECT_EQ(scope.report().races()[0].kind, "WAW");
    EXPECT_NE(scope.report().races()[0].first.array.find("memory_wrap_test.cpp"), std::string::npos);
}

}  // namespace
}  // namespace weir
