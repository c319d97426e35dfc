// DLPack's C exchange table in C++ (rules X1, X7; scenario A18): work streams, versions, ownership; and the uses of memory that
// consumers report (used_on, end_exports, pin).
#include "weir/exchange_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/lifetime/reaper.hpp"
#include "support/producer.hpp"
#include "weir/borrow.hpp"
#include "weir/dlpack.hpp"
#include "weir/error.hpp"
#include "weir/launch.hpp"
#include "weir/memory.hpp"
#include "weir/pin.hpp"
#include "weir/sharing.hpp"
#include "weir/testing.hpp"

namespace weir::exchange {
namespace {

class WorkStreams : public ::testing::TestWithParam<const char*> {
protected:
    ~WorkStreams() override { runtime::reaper::wait_until_empty(); }
    [[nodiscard]] array settled() const {
        array x = full({64}, 0.0F, dtype::float32, stream(on_));
        on_.synchronize();
        return x;
    }
    /// Whether a write to `x` comes after what is put into `theirs`.
    [[nodiscard]] bool write_waits_for(const stream& theirs, array x) const {
        testing::gate held;
        held.hold(theirs);
        const stream other(on_);
        fill(other, x, 1.0F);
        const event written = other.record();
        const bool waits = !is_complete(written);
        held.open();
        other.synchronize();
        return waits;
    }
    /// Whether what is put into `theirs` now comes after a pending write.
    template <class Action>
    [[nodiscard]] bool waits_for_write(const stream& theirs, array x, Action&& action) const {
        testing::gate held;
        const stream writer(on_);
        held.hold(writer);
        fill(writer, x, 1.0F);
        action();
        const event reached = theirs.record();
        const bool waits = !is_complete(reached);
        held.open();
        writer.synchronize();
        theirs.synchronize();
        return waits;
    }

    /// Whether `what` completes while the gate is held. The device has the time of many operations for it: only what waits for the gate does not.
    [[nodiscard]] bool is_complete(const event& what) const {
        const stream third(on_);
        array y = full({64}, 0.0F, dtype::float32, third);
        for (int round = 0; round < 2000 && !what.done(); ++round) {
            fill(third, y, 1.0F);
            third.synchronize();
        }
        return what.done();
    }

    device on_ = device::from_name(GetParam());
};

TEST_P(WorkStreams, A18TheWorkStreamWaitsForPendingWritesAndTheHostDoesNot) {
    const stream work(on_);
    array x = settled();
    dlpack_tensor out;
    EXPECT_TRUE(waits_for_write(work, x, [&] { out = to_dlpack(work, x, {}); }));
}

TEST_P(WorkStreams, A18ControlWithoutAWorkStreamNothingWaits) {
    const stream work(on_);
    array x = settled();
    dlpack_tensor out;
    EXPECT_FALSE(waits_for_write(work, x, [&] { out = to_dlpack(x); }));
}

TEST_P(WorkStreams, A18AConstArrayIsOnlyReadInTheWorkStream) {
    const stream work(on_);
    array x = settled();
    const dlpack_tensor out = to_dlpack(work, std::as_const(x), {});
    EXPECT_EQ(out->flags & dlpack::read_only, dlpack::read_only);
    EXPECT_TRUE(write_waits_for(work, x)) << "a reader may be at work there";
}

TEST_P(WorkStreams, A18LaterOperationsComeAfterTheWorkStreamUntilTheConsumerLetsGo) {
    const stream work(on_);
    array x = settled();
    dlpack_tensor out = to_dlpack(work, x, {});
    EXPECT_TRUE(write_waits_for(work, x));
    out.reset();
    runtime::reaper::wait_until_empty();
    EXPECT_FALSE(write_waits_for(work, x));
}

TEST_P(WorkStreams, A18AStreamThatIsNamedLaterIsOrderedAsWell) {
    const stream first(on_);
    const stream second(on_);
    array x = settled();
    const dlpack_tensor out = to_dlpack(first, x, {});
    EXPECT_FALSE(write_waits_for(second, x)) << "nobody was told of it yet";
    EXPECT_TRUE(waits_for_write(second, x, [&] { announce_work_stream(second); }));
    EXPECT_TRUE(write_waits_for(second, x));
    EXPECT_TRUE(write_waits_for(first, x)) << "the consumer may still be at work there";
}

TEST_P(WorkStreams, A18WhatAConsumerHasGivenBackIsNotOrderedWithStreamsNamedLater) {
    const stream first(on_);
    const stream second(on_);
    array x = settled();
    to_dlpack(first, x, {}).reset();
    runtime::reaper::wait_until_empty();
    EXPECT_FALSE(waits_for_write(second, x, [&] { announce_work_stream(second); }));
}

TEST_P(WorkStreams, X7AnExportThatHasEndedIsNotOrderedAnyMore) {
    const stream work(on_);
    array x = settled();
    dlpack_tensor out = to_dlpack(work, x, {});
    end_exports(x.buffer());
    EXPECT_FALSE(write_waits_for(work, x));
    testing::gate held;
    held.hold(work);
    out.reset();  // adds no use either: its end was reported
    runtime::reaper::wait_until_empty();
    const stream other(on_);
    fill(other, x, 3.0F);
    other.synchronize();  // would never return
    held.open();
}

INSTANTIATE_TEST_SUITE_P(Devices, WorkStreams, ::testing::Values("cpu", "sim:0"),
                         [](const auto& one) { return std::string(one.param).substr(0, 3); });

dlpack::exchange_table table_of_version(std::uint32_t major, const dlpack::exchange_table_header* previous = nullptr) {
    dlpack::exchange_table made;
    made.header = {{major, 3}, previous};
    return made;
}

TEST(ExchangeTable, A18OlderTablesAreLookedFor) {
    const dlpack::exchange_table first = table_of_version(1);
    const dlpack::exchange_table second = table_of_version(2, &first.header);
    const dlpack::exchange_table third = table_of_version(3, &second.header);
    EXPECT_EQ(readable_table(&first.header), &first);
    EXPECT_EQ(readable_table(&third.header), &first);
}

TEST(ExchangeTable, A18WithoutAReadableVersionThereIsNone) {
    const dlpack::exchange_table other = table_of_version(2);
    EXPECT_EQ(readable_table(&other.header), nullptr);
    EXPECT_EQ(readable_table(nullptr), nullptr);
    dlpack::exchange_table circle = table_of_version(2);
    circle.header.previous = &circle.header;
    EXPECT_EQ(readable_table(&circle.header), nullptr) << "a chain that never ends";
}

TEST(ExchangeTable, A18OwnTensorsAreKnownAgain) {
    const stream on;
    array x = full({3}, 1.0F, dtype::float32, on);
    on.synchronize();
    dlpack_tensor out = to_dlpack(on, x, {});
    const std::optional<array> same = exported_array(*out);
    ASSERT_TRUE(same);
    EXPECT_EQ(same->device_data(), x.device_data());
    std::int64_t other_shape[] = {1};
    std::int64_t* const shape_of_it = std::exchange(out->what.shape, other_shape);
    EXPECT_FALSE(exported_array(*out)) << "its holder has made another tensor of it";
    out->what.shape = shape_of_it;
    dlpack::managed_tensor_versioned foreign;
    EXPECT_FALSE(exported_array(foreign));
}

TEST(Pin, X7KeepsMemoryReservedUntilItIsReleased) {
    std::atomic<int> let_go{0};
    std::array<double, 4> memory{};
    pin held = [&] {
        const array x(buffer::wrap(memory.data(), sizeof memory, cpu(), [&] { let_go.fetch_add(1); }), dtype::float64,
                      {4});
        return pin(x.buffer());
    }();
    runtime::reaper::wait_until_empty();
    EXPECT_EQ(let_go, 0);
    held.release();
    held.release();
    runtime::reaper::wait_until_empty();
    EXPECT_EQ(let_go, 1);
    EXPECT_FALSE(held);
}

TEST(Pin, X7TwoThreadsMayReleaseIt) {
    std::atomic<int> let_go{0};
    std::array<double, 4> memory{};
    constexpr int rounds = 10;
    for (int round = 0; round < rounds; ++round) {
        std::vector<pin> held;
        {
            const buffer of = buffer::wrap(memory.data(), sizeof memory, cpu(), [&] { let_go.fetch_add(1); });
            for (int i = 0; i < 100'000; ++i) {
                held.emplace_back(of);
            }
        }
        // The thread that is behind finds pins that are released, and is soon at the same pin as the other one.
        std::atomic<int> begun{0};
        const auto release_all = [&] {
            ++begun;
            while (begun != 2) {
            }
            for (pin& one : held) {
                one.release();
            }
        };
        std::thread other(release_all);
        release_all();
        other.join();
        EXPECT_TRUE(std::none_of(held.begin(), held.end(), [](const pin& one) { return static_cast<bool>(one); }));
    }
    runtime::reaper::wait_until_empty();
    EXPECT_EQ(let_go, rounds);
}

TEST(Pin, X7WhatIsNotReleasedIsKeptForGood) {
    static std::atomic<int> let_go{0};
    static std::array<double, 4> memory{};
    {
        const array x(buffer::wrap(memory.data(), sizeof memory, cpu(), [] { let_go.fetch_add(1); }), dtype::float64,
                      {4});
        const pin lost(x.buffer());
    }
    runtime::reaper::wait_until_empty();
    EXPECT_EQ(let_go, 0);
}

TEST(Pin, X7AnEmptyBufferHasNothingToReserve) {
    pin nothing{buffer()};
    EXPECT_NO_THROW(nothing.release());
    EXPECT_FALSE(nothing);
}

}  // namespace
}  // namespace weir::exchange
