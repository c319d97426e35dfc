// Arrow's C data interface and C device data interface (rules X4, L4; scenarios A8, A10, B10), by a client that is written from the
// specification.
#include "weir/arrow.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "memory/quarantine.hpp"
#include "runtime/lifetime/reaper.hpp"
#include "support/fake_cuda.hpp"
#include "support/messages.hpp"
#include "support/producer.hpp"
#include "unit/cuda_support.hpp"
#include "weir/error.hpp"
#include "weir/launch.hpp"
#include "weir/testing.hpp"

namespace weir::exchange {
namespace {

using weir::test::cuda_context;
using weir::test::fake_cuda;

static_assert(sizeof(arrow::schema) == 72 && sizeof(arrow::array) == 80 && sizeof(arrow::device_array) == 128);
static_assert(offsetof(arrow::array, buffers) == 40 && offsetof(arrow::array, release) == 64);
static_assert(offsetof(arrow::device_array, device_id) == 80 && offsetof(arrow::device_array, device_type) == 88 &&
              offsetof(arrow::device_array, sync_event) == 96);

/// A producer of one column, which counts its releases.
struct column_producer {
    std::vector<float> elements = {0, 1, 2, 3, 4, 5, 6, 7};
    std::vector<std::uint8_t> validity = {0xFF};
    std::array<const void*, 2> buffers{};
    std::atomic<int> released{0};
    arrow::schema type;
    arrow::device_array column;

    column_producer() {
        type.format = "f";
        type.release = [](arrow::schema* self) { self->release = nullptr; };
        buffers = {nullptr, elements.data()};
        column.array.length = 8;
        column.array.n_buffers = 2;
        column.array.buffers = buffers.data();
        column.array.private_data = this;
        column.array.release = [](arrow::array* self) {
            static_cast<column_producer*>(self->private_data)->released.fetch_add(1);
            self->release = nullptr;
        };
    }
    ~column_producer() { runtime::reaper::wait_until_empty(); }
    column_producer(const column_producer&) = delete;
    column_producer& operator=(const column_producer&) = delete;
    [[nodiscard]] weir::array taken() { return from_arrow(arrow_array(column), type); }
};

TEST(Arrow, X4AnExportIsTheSameMemoryInTheStructureOfTheSpecification) {
    const stream on;
    weir::array x = arange(0, 6, 1, dtype::int64, on);
    const arrow_schema type = to_arrow_schema(x.dtype());
    EXPECT_STREQ(type->format, "l");
    EXPECT_EQ(type->flags & 2, 0) << "not nullable";
    const arrow_array out = to_arrow(x.slice(1, 5));  // blocks until it is written
    EXPECT_EQ(out->device_type, 1);
    EXPECT_EQ(out->device_id, -1);
    EXPECT_EQ(out->sync_event, nullptr);
    EXPECT_EQ(out->array.length, 4);
    EXPECT_EQ(out->array.null_count, 0);
    EXPECT_EQ(out->array.offset, 0);
    ASSERT_EQ(out->array.n_buffers, 2);
    EXPECT_EQ(out->array.buffers[0], nullptr);
    EXPECT_EQ(static_cast<const std::int64_t*>(out->array.buffers[1])[0], 1);
    EXPECT_EQ(out->array.buffers[1], static_cast<const void*>(x.slice(1, 5).device_data()));
}

TEST(Arrow, L4TheReleaseMayHappenOnceAndAfterAMove) {
    std::atomic<int> let_go{0};
    std::array<double, 4> memory{1, 2, 3, 4};
    arrow::device_array moved;
    {
        const weir::array x(buffer::wrap(memory.data(), sizeof memory, cpu(), [&] { let_go.fetch_add(1); }),
                            dtype::float64, {4});
        arrow_array out = to_arrow(x);
        out.move_to(moved);
        EXPECT_FALSE(out) << "the structure that was moved from counts as released";
    }
    runtime::reaper::wait_until_empty();
    EXPECT_EQ(let_go, 0);
    EXPECT_EQ(static_cast<const double*>(moved.array.buffers[1])[3], 4);
    moved.array.release(&moved.array);
    EXPECT_EQ(moved.array.release, nullptr);
    runtime::reaper::wait_until_empty();
    EXPECT_EQ(let_go, 1);
}

TEST(Arrow, X4WhatIsNoColumnOfNumbersIsNotExported) {
    const stream on;
    EXPECT_THAT(test::message_of<exchange_error>([&] {
                    static_cast<void>(to_arrow(zeros({2, 2}, dtype::float32, on)));
                }),
                ::testing::HasSubstr("export x.reshape({-1}), or slices"));
    EXPECT_THROW(static_cast<void>(to_arrow(zeros({}, dtype::float32, on))), exchange_error);
    EXPECT_THROW(static_cast<void>(to_arrow(zeros({8}, dtype::float32, on)[slice{0, 8, 2}])), exchange_error);
    for (const dtype type : {dtype::bool_, dtype::complex64, dtype::bfloat16}) {
        EXPECT_THROW(static_cast<void>(to_arrow(zeros({2}, type, on))), exchange_error) << name_of(type);
        EXPECT_THROW(static_cast<void>(to_arrow_schema(type)), exchange_error) << name_of(type);
    }
    on.synchronize();
}

TEST(Arrow, X4TypesGoOutAndIn) {
    const stream on;
    for (const dtype type : {dtype::int8, dtype::uint8, dtype::int16, dtype::uint16, dtype::int32, dtype::uint32,
                             dtype::int64, dtype::uint64, dtype::float16, dtype::float32, dtype::float64}) {
        weir::array x = zeros({4}, type, on);
        const weir::array again = from_arrow(to_arrow(x), *to_arrow_schema(type));
        EXPECT_EQ(again.dtype(), type);
        EXPECT_EQ(again.device_data(), x.device_data());
    }
}

TEST(Arrow, X4AnEmptyColumnNeedsNoMemory) {
    const stream on;
    EXPECT_EQ(from_arrow(to_arrow(zeros({0}, dtype::float32, on)), *to_arrow_schema(dtype::float32)).size(), 0);
}

TEST(Arrow, X4AnEmptyColumnIsOnTheDeviceThatItNames) {
    const stream on(sim(0));
    const weir::array back = from_arrow(to_arrow(zeros({0}, dtype::float32, on)), *to_arrow_schema(dtype::float32));
    EXPECT_EQ(back.device(), sim(0));
    EXPECT_EQ(back.dtype(), dtype::float32);
}

TEST(Arrow, X4AnImportIsTheSameMemoryFromItsOffsetOn) {
    column_producer from;
    from.column.array.offset = 3;
    from.column.array.length = 4;
    const weir::array x = from.taken();
    EXPECT_EQ(x.shape(), shape({4}));
    EXPECT_EQ(x.read<float>()[0], 3);
    EXPECT_EQ(x.device_data(), reinterpret_cast<std::byte*>(from.elements.data() + 3));
    EXPECT_EQ(from.column.array.release, nullptr) << "it was moved";
}

/// Consumers hand on what they hold in columns of their own.
TEST(Arrow, A10MemoryOfWeirsThatComesBackIsKnown) {
    const stream a;
    const stream b;
    weir::array x = arange(0, 8, 1, dtype::float32, a);
    column_producer consumer;
    std::optional<arrow_array> held(to_arrow(x.slice(2, 7)));
    const auto hand_on = [&] {
        consumer.buffers[1] = x.slice(2, 7).device_data();
        consumer.column.array.length = 3;
        consumer.column.array.offset = 1;
        return consumer.taken();
    };
    const weir::array back = hand_on();
    EXPECT_EQ(consumer.released, 1) << "the buffer is kept, and not the column";
    EXPECT_EQ(back.buffer().unique_id(), x.buffer().unique_id());
    EXPECT_EQ(back.device_data(), x.slice(3, 6).device_data());

    held.reset();
    runtime::reaper::wait_until_empty();
    testing::gate reads;
    reads.hold(a);
    const weir::array copied = copy(a, back);
    const completion written = fill(b, x, 9);  // on another stream, after the read
    EXPECT_FALSE(written.done());
    reads.open();
    written.synchronize();
    EXPECT_EQ(copied.read<float>()[0], 3) << "read before it is written";

    column_producer other;
    const weir::array unknown = other.taken();
    EXPECT_NE(unknown.buffer().unique_id(), x.buffer().unique_id()) << "control";
}

TEST(Arrow, A10AnImportIsNeverWritten) {
    column_producer from;
    weir::array x = from.taken();
    const stream on;
    EXPECT_THROW(fill(on, x, 1.0F), argument_error);
    EXPECT_THROW(static_cast<void>(x.write<float>()), argument_error);
    EXPECT_EQ(from.elements[0], 0);
}

TEST(Arrow, A10AWriteWhileAConsumerHasTheColumnIsOverWhenItsCallReturns) {
    const stream on;
    weir::array x = zeros({4}, dtype::float32, on);
    const arrow_array out = to_arrow(x, {std::make_shared<test::library_without_queues>()});
    fill(on, x, 1.0F);
    EXPECT_TRUE(x.ready());
}

TEST(Arrow, L4AnImportIsReleasedOnceAfterTheLastAccess) {
    column_producer from;
    testing::gate held;
    const stream on;
    weir::array y;
    {
        const weir::array x = from.taken();
        held.hold(on);
        y = copy(on, x);
    }
    EXPECT_EQ(from.released, 0) << "an access is pending";
    held.open();
    on.synchronize();
    runtime::reaper::wait_until_empty();
    EXPECT_EQ(from.released, 1);
    EXPECT_EQ(y.read<float>()[7], 7);
}

TEST(Arrow, X4ElementsThatAreNullAreRefused) {
    column_producer counted;
    counted.column.array.null_count = 1;
    counted.buffers[0] = counted.validity.data();
    EXPECT_THROW(static_cast<void>(counted.taken()), exchange_error);
    EXPECT_EQ(counted.released, 1);

    column_producer uncounted;
    uncounted.column.array.null_count = -1;
    uncounted.validity = {0xFB};
    uncounted.buffers[0] = uncounted.validity.data();
    EXPECT_THROW(static_cast<void>(uncounted.taken()), exchange_error);
}

TEST(Arrow, X4UncountedNullsAreCountedInTheSliceAlone) {
    column_producer from;
    from.column.array.null_count = -1;
    from.column.array.offset = 3;
    from.column.array.length = 5;
    from.validity = {0xF8};  // the first three are null, and not among these
    from.buffers[0] = from.validity.data();
    EXPECT_EQ(from.taken().read<float>()[0], 3);
}

TEST(Arrow, X4BitsAreCopiedIntoBytes) {
    column_producer from;
    from.type.format = "b";
    const std::array<std::uint8_t, 2> bits{0b10110000, 0b00000001};
    from.buffers[1] = bits.data();
    from.column.array.offset = 4;
    from.column.array.length = 5;
    const weir::array x = from.taken();
    EXPECT_EQ(from.released, 1) << "what was copied is not needed";
    const auto seen = x.read<bool>();
    const std::vector<bool> found{seen[0], seen[1], seen[2], seen[3], seen[4]};
    EXPECT_EQ(found, (std::vector<bool>{true, true, false, true, true}));
    EXPECT_TRUE(arrow_needs_copy(from.type));
}

/// Columns that make no sense, or that Weir does not read.
struct hostile_column {
    const char* what;
    void (*spoil)(column_producer&);
};
class HostileArrow : public ::testing::TestWithParam<hostile_column> {};

TEST_P(HostileArrow, B10IsRefusedAndReleased) {
    column_producer from;
    GetParam().spoil(from);
    EXPECT_THROW(static_cast<void>(from.taken()), exchange_error) << GetParam().what;
    EXPECT_EQ(from.released, 1);
}

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
/// The column has a validity bitmap whose nulls the reader has to count.
void count_nulls(column_producer& of) {
    of.column.array.null_count = -1;
    of.buffers[0] = of.validity.data();
}
/// An address with so few bytes behind it that the elements of a test do not fit.
const void* last_addresses() { return reinterpret_cast<const void*>(std::numeric_limits<std::uintptr_t>::max() - 63); }
arrow::schema* no_children[1] = {nullptr};
arrow::schema other_schema;
arrow::array other_array;

INSTANTIATE_TEST_SUITE_P(
    Columns, HostileArrow,
    ::testing::Values(
        hostile_column{"NegativeLength", [](column_producer& p) { p.column.array.length = -1; }},
        hostile_column{"NegativeOffset", [](column_producer& p) { p.column.array.offset = -1; }},
        hostile_column{"HugeLength", [](column_producer& p) { p.column.array.length = largest; }},
        hostile_column{"HugeOffset", [](column_producer& p) { p.column.array.offset = largest; }},
        hostile_column{"HugeBytes", [](column_producer& p) { p.column.array.length = largest / 4; }},
        hostile_column{"HugeOffsetWithUncountedNulls",
                       [](column_producer& p) {
                           p.column.array.offset = largest - 1;
                           p.column.array.length = 10;
                           count_nulls(p);
                       }},
        hostile_column{"HugeBytesWithUncountedNulls",
                       [](column_producer& p) {
                           p.column.array.length = largest / 4;
                           count_nulls(p);
                       }},
        hostile_column{"NoMemoryWithUncountedNulls",
                       [](column_producer& p) {
                           p.buffers[1] = nullptr;
                           p.column.array.offset = largest / 8;
                           count_nulls(p);
                       }},
        hostile_column{"ElementsBeyondTheAddresses",
                       [](column_producer& p) {
                           p.buffers[1] = last_addresses();
                           p.column.array.length = 1 << 20;
                       }},
        hostile_column{"BitsBeyondTheAddresses",
                       [](column_producer& p) {
                           p.type.format = "b";
                           p.buffers[1] = last_addresses();
                           p.column.array.length = 1 << 20;
                       }},
        hostile_column{"ValidityBeyondTheAddresses",
                       [](column_producer& p) {
                           count_nulls(p);
                           p.buffers[0] = last_addresses();
                           p.column.array.length = 1 << 20;
                       }},
        hostile_column{"MoreNullsThanElements", [](column_producer& p) { p.column.array.null_count = 9; }},
        hostile_column{"NullCountOfMinus2", [](column_producer& p) { p.column.array.null_count = -2; }},
        hostile_column{"OneBuffer", [](column_producer& p) { p.column.array.n_buffers = 1; }},
        hostile_column{"ManyBuffers", [](column_producer& p) { p.column.array.n_buffers = largest; }},
        hostile_column{"NoBuffers", [](column_producer& p) { p.column.array.buffers = nullptr; }},
        hostile_column{"NoMemory", [](column_producer& p) { p.buffers[1] = nullptr; }},
        hostile_column{"Children", [](column_producer& p) { p.column.array.n_children = 1; }},
        hostile_column{"Dictionary", [](column_producer& p) { p.column.array.dictionary = &other_array; }},
        hostile_column{"UnknownDevice", [](column_producer& p) { p.column.device_type = 99; }},
        hostile_column{"NegativeDevice",
                       [](column_producer& p) {
                           p.column.device_type = 2;
                           p.column.device_id = -1;
                       }},
        hostile_column{"HugeDevice",
                       [](column_producer& p) {
                           p.column.device_type = 12;
                           p.column.device_id = largest;
                       }},
        hostile_column{"EventOnTheCpu", [](column_producer& p) { p.column.sync_event = &p; }},
        hostile_column{"ReleasedSchema", [](column_producer& p) { p.type.release = nullptr; }},
        hostile_column{"NoFormat", [](column_producer& p) { p.type.format = nullptr; }},
        hostile_column{"EmptyFormat", [](column_producer& p) { p.type.format = ""; }},
        hostile_column{"UnknownFormat", [](column_producer& p) { p.type.format = "?"; }},
        hostile_column{"Struct", [](column_producer& p) { p.type.format = "+s"; }},
        hostile_column{"List", [](column_producer& p) { p.type.format = "+l"; }},
        hostile_column{"Texts", [](column_producer& p) { p.type.format = "u"; }},
        hostile_column{"Times", [](column_producer& p) { p.type.format = "tsu:UTC"; }},
        hostile_column{"Decimals", [](column_producer& p) { p.type.format = "d:19,10"; }},
        hostile_column{"NullsAlone", [](column_producer& p) { p.type.format = "n"; }},
        hostile_column{"DictionaryInTheSchema", [](column_producer& p) { p.type.dictionary = &other_schema; }},
        hostile_column{"ChildrenInTheSchema",
                       [](column_producer& p) {
                           p.type.n_children = 1;
                           p.type.children = no_children;
                       }}),
    [](const auto& one) { return one.param.what; });

TEST(Arrow, B10AReleasedColumnIsRefused) {
    column_producer from;
    static_cast<void>(from.taken());
    EXPECT_THROW(static_cast<void>(from.taken()), exchange_error);
}

TEST(Arrow, X4ASimulatedDeviceIsAnExtension) {
    const stream on(sim(0));
    weir::array x = full({4}, 2.0F, dtype::float32, on);
    arrow_array out = to_arrow(x);
    EXPECT_EQ(out->device_type, 12);
    EXPECT_EQ(out->device_id, 0);
    EXPECT_EQ(out->sync_event, nullptr);
    EXPECT_TRUE(x.ready()) << "there are no events: it has blocked";
    const weir::array again = from_arrow(std::move(out), *to_arrow_schema(dtype::float32));
    EXPECT_EQ(again.device(), sim(0));
    EXPECT_EQ(again.device_data(), x.device_data());
}

/// On a CUDA device, or the fake one.
class ArrowCuda : public ::testing::Test {
protected:
    ArrowCuda() {
        const test::gpu::in_context here(in_);
        in_.expect(in_.api().stream_create(&theirs_, 1, 0), "cuStreamCreate");
        in_.expect(in_.api().event_create(&event_, 2), "cuEventCreate");
    }
    ~ArrowCuda() override {
        runtime::reaper::wait_until_empty();
        cuda().synchronize();
        const test::gpu::in_context here(in_);
        in_.api().event_destroy(event_);
        in_.api().stream_destroy(theirs_);
    }
    [[nodiscard]] bool is_over(void* event) const {
        const test::gpu::in_context here(in_);
        return in_.api().event_query(static_cast<test::gpu::event_handle>(event)) == test::gpu::success;
    }
    void record_theirs() {
        const test::gpu::in_context here(in_);
        in_.expect(in_.api().event_record(event_, theirs_), "cuEventRecord");
    }
    /// A column whose elements are there once `event_` is over, if it says so.
    [[nodiscard]] weir::array imported(bool with_event) {
        handle_ = event_;
        arrow_array out = to_arrow(made_);
        arrow::device_array column;
        out.move_to(column);
        column.sync_event = with_event ? static_cast<void*>(&handle_) : nullptr;
        return from_arrow(arrow_array(column), *to_arrow_schema(dtype::float64));
    }
    /// Whether an operation that reads an import waits for the producer's stream.
    [[nodiscard]] bool read_waits(bool with_event) {
        test::device_flag flag;
        flag.hold(theirs_);
        record_theirs();
        const weir::array x = imported(with_event);
        const stream s(cuda());
        weir::array y = test::make(s, 0);
        const completion read = test::step(s, y, x);
        const stream third(cuda());
        test::make(third, 0);
        third.synchronize();
        const bool waits = with_event ? !read.done() : !test::gets_over(read);
        flag.raise();
        s.synchronize();
        return waits;
    }

    const test::gpu::context& in_ = cuda_context();
    test::gpu::stream_handle theirs_ = nullptr;
    test::gpu::event_handle event_ = nullptr;
    void* handle_ = nullptr;
    weir::array made_ = [] {
        const stream s(cuda());
        weir::array x = test::make(s, 1);
        s.synchronize();
        return x;
    }();
};

TEST_F(ArrowCuda, A8AnExportNamesAnEventThatIsOverWhenPendingWritesAre) {
    const stream s(cuda());
    test::device_flag held;
    test::hold(s, held, made_);
    const arrow_array out = to_arrow(made_);
    EXPECT_EQ(out->device_type, 2);
    EXPECT_EQ(out->device_id, 0);
    ASSERT_NE(out->sync_event, nullptr);
    void* const event = *static_cast<void**>(out->sync_event);
    EXPECT_FALSE(is_over(event)) << "and the host has not waited";
    held.raise();
    s.synchronize();
    while (!is_over(event)) {
    }
}

TEST_F(ArrowCuda, A8WithoutPendingWritesThereIsNoEvent) { EXPECT_EQ(to_arrow(made_)->sync_event, nullptr); }

TEST_F(ArrowCuda, A8AnImportComesAfterItsEvent) { EXPECT_TRUE(read_waits(true)); }

TEST_F(ArrowCuda, A8ControlWithoutAnEventNothingIsWaitedFor) { EXPECT_FALSE(read_waits(false)); }

TEST_F(ArrowCuda, X4AnEventThatTheDriverDoesNotTakeIsAnErrorAndTheColumnIsReleased) {
    WEIR_NEEDS_FAKE();
    arrow_array out = to_arrow(made_);
    arrow::device_array column;
    out.move_to(column);
    handle_ = nullptr;
    column.sync_event = &handle_;
    EXPECT_EQ(from_arrow(arrow_array(column), *to_arrow_schema(dtype::float64)).size(), test::elements)
        << "a producer may have no event in the place that it names: nothing is waited for";
}

TEST_F(ArrowCuda, L5MemoryThatAConsumerHadGoesThroughQuarantine) {
    safe_point();
    arrow_array out = to_arrow(made_);
    made_ = weir::array();
    out = arrow_array();
    runtime::reaper::wait_until_empty();
    EXPECT_GT(memory::stats(cuda()).quarantined, 0U);
    safe_point();
    while (memory::stats(cuda()).quarantined != 0) {
    }
}

}  // namespace
}  // namespace weir::exchange
