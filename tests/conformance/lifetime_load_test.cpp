// Many arrays, many threads (rules L1, O8): memory stays bounded, and no array ever shows another one's contents.
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "support/devices.hpp"
#include "support/effort.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using test::here;
using test::repeated;
using test::streams_here;

using testing::gate;

WEIR_CONFORMANCE(L1Load, AMillionArraysLiveInFlatMemory) {
    const stream s{here()};
    { array first = empty(1000, dtype::float32, s); }
    const memory::statistics before = memory::stats(here());
    for (int i = 0; i < repeated(1'000'000); ++i) {
        array x = empty(1 + i % 1000, dtype::float32, s);
    }
    const memory::statistics after = memory::stats(here());
    EXPECT_EQ(after.live, before.live);
    EXPECT_LE(after.cached + after.pending, before.cached + before.pending + (std::size_t{2} << 20));
}

WEIR_CONFORMANCE(L1Load, ArraysInUseWhenDroppedLiveInFlatMemoryToo) {
    const stream s{here()};
    const stream other{here()};
    here().synchronize();
    memory::trim(here());
    const memory::statistics before = memory::stats(here());
    for (int i = 0; i < repeated(20'000); ++i) {
        array x = full(1 + i % 1000, 1, dtype::float32, s);
        array y = empty(x.shape(), dtype::float32, other);
        copy(other, y, x);
        if (i % 64 == 0) {
            other.synchronize();  // limits the pending operations: so many arrays may be in use at once
        }
    }
    s.synchronize();
    other.synchronize();
    const memory::statistics after = memory::stats(here());
    EXPECT_EQ(after.pending, 0U);
    EXPECT_LE(after.cached, before.cached + (std::size_t{8} << 20));
}

WEIR_CONFORMANCE(L1Load, EightThreadsOnFourStreamsNeverSeeEachOthersValues) {
    const std::vector<stream> streams = streams_here(4);
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (unsigned id = 0; id < 8; ++id) {
        threads.emplace_back([&, id] {
            std::mt19937 random(id);
            const auto any_stream = [&]() -> const stream& { return streams[random() % streams.size()]; };
            for (int round = 0; round < 300; ++round) {
                const double value = id * 1000.0 + round;
                const std::int64_t size = 1 + static_cast<std::int64_t>(random() % 3000);
                array x = full(size, value, dtype::float64, any_stream());
                array y = empty(size, dtype::float64, any_stream());
                copy(any_stream(), y, x);
                x = {};
                if (round % 4 == 0) {
                    const auto elements = y.read<double>();
                    for (const double one : elements) {
                        wrong += one == value ? 0 : 1;
                    }
                }
                if (round % 100 == 0) {
                    memory::trim(here());
                }
            }
        });
    }
    for (std::thread& one : threads) {
        one.join();
    }
    EXPECT_EQ(wrong, 0);
    here().synchronize();
    EXPECT_EQ(memory::stats(here()).pending, 0U);
}

}  // namespace
}  // namespace weir
