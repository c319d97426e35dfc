// What the host pays for one operation, and what that price depends on. A gate holds the streams, so that only the enqueueing is
// measured, and no operation ever completes: the least favourable case for the record of pending operations.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "contest.hpp"
#include "weir/testing.hpp"
#include "weir/weir.hpp"

namespace weir::bench {

namespace {

constexpr std::size_t count = 4000;

struct held_streams {
    std::vector<stream> streams;
    std::vector<array> arrays;
    array shared;
    std::unique_ptr<testing::gate> gate;

    held_streams(std::size_t stream_count, std::size_t array_count) {
        for (std::size_t i = 0; i < stream_count; ++i) {
            streams.emplace_back();
        }
        for (std::size_t i = 0; i < array_count; ++i) {
            arrays.push_back(empty(64, dtype::float64, streams[i % stream_count]));
        }
        shared = empty(64, dtype::float64, streams[0]);
    }
    void hold() {
        gate = std::make_unique<testing::gate>();
        for (const stream& one : streams) {
            gate->hold(one);
        }
    }
    void let_go() {
        gate.reset();
        for (const stream& one : streams) {
            one.synchronize();
        }
    }
};

template <class Enqueue>
contestant held(std::string name, std::size_t streams, std::size_t arrays, Enqueue enqueue) {
    const auto with = std::make_shared<held_streams>(streams, arrays);
    return {std::move(name), count,
            [with, enqueue] {
                for (std::size_t i = 0; i < count; ++i) {
                    enqueue(*with, i);
                }
            },
            [with] { with->hold(); }, [with] { with->let_go(); }};
}

template <std::size_t... I>
contestant operands(std::index_sequence<I...>) {
    return held(std::to_string(sizeof...(I)) + " operands", 1, sizeof...(I), [](held_streams& with, std::size_t) {
        access(
            with.streams[0], [](native_stream, auto...) {}, inout<double>(with.arrays[I])...);
    });
}

void touch(const stream& on, array x) {
    access(
        on, [](native_stream, std::span<double>) {}, inout<double>(x));
}

contestant own_arrays(std::size_t streams) {
    return held(std::to_string(streams) + " streams", streams, streams, [](held_streams& with, std::size_t i) {
        const std::size_t which = i % with.streams.size();
        touch(with.streams[which], with.arrays[which]);
    });
}

contestant shared_operand(std::size_t streams) {
    return held(std::to_string(streams) + " streams", streams, streams, [](held_streams& with, std::size_t i) {
        const std::size_t which = i % with.streams.size();
        access(
            with.streams[which], [](native_stream, std::span<const double>, std::span<double>) {},
            in<double>(with.shared), inout<double>(with.arrays[which]));
    });
}

contestant handed_on(std::size_t streams) {
    return held(std::to_string(streams) + " streams", streams, 0,
                [](held_streams& with, std::size_t i) { touch(with.streams[i % with.streams.size()], with.shared); });
}

contestant live_arrays(std::size_t arrays) {
    return held(std::to_string(arrays) + " arrays", 1, arrays, [](held_streams& with, std::size_t i) {
        // Strides through all of them, the same way each time.
        touch(with.streams[0], with.arrays[i * 7919 % with.arrays.size()]);
    });
}

std::vector<make_contestant> each(contestant (*make)(std::size_t), const std::vector<std::size_t>& sizes) {
    std::vector<make_contestant> all;
    for (const std::size_t size : sizes) {
        all.emplace_back([make, size] { return make(size); });
    }
    return all;
}

const contest operand_contest(
    "enqueue/operands", "the host's part of an operation, by the number of its operands", comparison::with_first,
    {[] { return operands(std::make_index_sequence<1>()); }, [] { return operands(std::make_index_sequence<2>()); },
     [] { return operands(std::make_index_sequence<4>()); }, [] { return operands(std::make_index_sequence<8>()); }});
const contest own_contest("enqueue/streams", "the host's part, by the number of streams, each with an array of its own",
                          comparison::with_first, each(own_arrays, {2, 10, 100, 1000}));
const contest shared_contest("enqueue/streams_shared_operand",
                             "the same, and all streams read one more array, which nothing writes",
                             comparison::with_first, each(shared_operand, {2, 10, 100, 1000}));
const contest handed_contest("enqueue/streams_handed_on", "one array handed on from stream to stream",
                             comparison::with_first, each(handed_on, {2, 10, 100, 1000}));
const contest arrays_contest("enqueue/arrays", "the host's part, by the number of live arrays", comparison::with_first,
                             each(live_arrays, {1, 10, 100, 1000, 10000}));

}  // namespace

}  // namespace weir::bench
