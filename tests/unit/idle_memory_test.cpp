// How much of the host's memory arrays and streams keep once their work is over (rule O10).
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weir/testing.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

/// Bytes of the heap in use. Large allocations, such as the pool's chunks, are not in it.
std::int64_t heap_in_use() { return static_cast<std::int64_t>(mallinfo2().uordblks); }

constexpr std::int64_t idle_arrays = 100'000;

/// How many bytes of the heap an array keeps that was used on `stream_count` streams in turn, once everything is over.
double bytes_of_an_idle_array(std::size_t stream_count) {
    const std::vector<stream> streams(stream_count);
    std::vector<array> arrays;
    for (std::int64_t i = 0; i < idle_arrays; ++i) {
        arrays.push_back(empty(1, dtype::float64, streams[0]));
        access(
            streams[0], [](native_stream, auto) {}, inout<double>(arrays.back()));
    }
    cpu().synchronize();
    const std::int64_t before = heap_in_use();
    std::optional<testing::gate> held;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
        if (i % 1000 == 0) {
            held.emplace();  // so that nothing completes before other streams wait for it
            for (const stream& one : streams) {
                held->hold(one);
            }
        }
        for (std::size_t turn = 0; turn < 2; ++turn) {
            access(
                streams[(i + turn) % streams.size()], [](native_stream, auto) {}, inout<double>(arrays[i]));
        }
        if (i % 1000 == 999) {
            held.reset();
            cpu().synchronize();
        }
    }
    return static_cast<double>(heap_in_use() - before) / static_cast<double>(idle_arrays);
}

TEST(IdleMemory, O10ArraysThatSeveralStreamsUsedTakeLittleMoreThanThoseOfOne) {
    const double of_one = bytes_of_an_idle_array(1);
    const double of_four = bytes_of_an_idle_array(4);
    RecordProperty("bytes_of_one", std::to_string(of_one));
    RecordProperty("bytes_of_four", std::to_string(of_four));
    EXPECT_GT(of_four, 0) << "each has a clock of its own, or the test shows nothing";
    EXPECT_LE(of_four - of_one, 160) << "a clock of a cache line, and what the heap adds";
}

TEST(IdleMemory, S4TenThousandStreamsLeaveNothingBehind) {
    const stream first;
    const auto use_and_drop = [&](std::size_t count) {
        const std::vector<stream> streams(count);
        array x = zeros(1, dtype::float64, first);
        for (const stream& one : streams) {
            array of_its_own = empty(1, dtype::float64, one);
            access(
                one, [](native_stream, auto, auto) {}, inout<double>(x), inout<double>(of_its_own));
        }
        cpu().synchronize();
    };
    const auto settled_heap = [&] {
        cpu().synchronize();
        memory::trim(cpu());
        return heap_in_use();
    };
    use_and_drop(1000);  // fills what is kept for as many streams as there were at once
    const std::int64_t before = settled_heap();
    for (int i = 0; i < 10; ++i) {
        use_and_drop(1000);
    }
    EXPECT_LE(settled_heap() - before, 10'000 * 64)
        << "what is left of a stream is smaller than anything that it is made of";
}

TEST(IdleMemory, L1ThePoolKeepsNoListsForStreamsThatAreGone) {
    memory::trim(cpu());
    const std::int64_t before = heap_in_use();
    {
        const std::vector<stream> streams(2000);
        for (const stream& one : streams) {
            access(
                one, [](native_stream, auto) {}, inout<double>(empty(1, dtype::float64, one)));
        }
        cpu().synchronize();
    }
    memory::trim(cpu());
    EXPECT_LE((heap_in_use() - before) / 2000, 1024) << "the pool's lists alone are more";
}

}  // namespace
}  // namespace weir
