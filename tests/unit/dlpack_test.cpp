// DLPack structures in and out (rules L4, X1): geometry, types, and when the deleter is called.
#include "weir/dlpack.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "exchange/tensor_layout.hpp"
#include "runtime/lifetime/reaper.hpp"
#include "support/beside.hpp"
#include "support/producer.hpp"
#include "weir/error.hpp"
#include "weir/exchange_table.hpp"
#include "weir/launch.hpp"
#include "weir/ordering.hpp"
#include "weir/testing.hpp"

namespace weir::exchange {
namespace {

/// A producer of one tensor, which counts the calls of its deleter.
struct producer {
    std::vector<float> elements = {0, 1, 2, 3, 4, 5, 6, 7};
    std::vector<std::int64_t> shape = {2, 4};
    std::vector<std::int64_t> strides = {4, 1};
    std::atomic<int> deleted{0};
    dlpack::managed_tensor_versioned managed;

    producer() {
        managed.context = this;
        managed.deleter = [](dlpack::managed_tensor_versioned* self) {
            static_cast<producer*>(self->context)->deleted.fetch_add(1);
        };
        managed.what.data = elements.data();
        managed.what.type = {2, 32, 1};
        describe();
    }
    ~producer() { runtime::reaper::wait_until_empty(); }  // an export of an import may keep it until then
    producer(const producer&) = delete;
    producer& operator=(const producer&) = delete;
    void describe() {
        managed.what.dimensions = static_cast<std::int32_t>(shape.size());
        managed.what.shape = shape.data();
        managed.what.strides = strides.data();
    }
    [[nodiscard]] dlpack_tensor tensor() { return dlpack_tensor(&managed); }
};

TEST(Dlpack, X1AnImportIsTheSameMemory) {
    producer from;
    array x = from_dlpack(from.tensor());
    EXPECT_EQ(x.shape(), shape({2, 4}));
    EXPECT_EQ(x.dtype(), dtype::float32);
    from.elements[5] = 50;
    EXPECT_EQ(x.read<float>()[5], 50);
    {
        const stream on;
        fill(on, x, 7.0F);
        on.synchronize();
    }
    EXPECT_EQ(from.elements[0], 7);
}

TEST(Dlpack, X1AByteOffsetIsHonoured) {
    producer from;
    from.shape = {3};
    from.strides = {1};
    from.managed.what.byte_offset = 4 * sizeof(float);
    from.describe();
    EXPECT_EQ(from_dlpack(from.tensor()).read<float>()[0], 4);
}

TEST(Dlpack, X1StridesMayBeNegativeMissingOrZero) {
    producer from;
    from.shape = {4};
    from.strides = {-2};
    from.managed.what.byte_offset = 6 * sizeof(float);
    from.describe();
    array backwards = from_dlpack(from.tensor());
    EXPECT_EQ(backwards.read<float>()[0], 6);
    EXPECT_EQ(backwards.read<float>()[3], 0);

    producer packed;
    packed.describe();
    packed.managed.what.strides = nullptr;
    EXPECT_TRUE(from_dlpack(packed.tensor()).is_contiguous());

    producer broadcast;
    broadcast.shape = {3, 2};
    broadcast.strides = {0, 1};
    broadcast.describe();
    array many = from_dlpack(broadcast.tensor());
    EXPECT_FALSE(many.has_own_elements());
    EXPECT_EQ(many.read<float>()[5], 1);
}

TEST(Dlpack, B8StridesThatLeadToNoElementAreAnyNumber) {
    for (const std::int64_t odd : {std::int64_t{0}, std::int64_t{-7}, std::numeric_limits<std::int64_t>::max()}) {
        producer from;
        from.shape = {2, 1, 4};
        from.strides = {4, odd, 1};
        from.describe();
        array x = from_dlpack(from.tensor());
        EXPECT_EQ(x.shape(), shape({2, 1, 4}));
        EXPECT_EQ(x.read<float>()[7], 7) << odd;

        producer of_none;
        of_none.shape = {0, 3};
        of_none.strides = {odd, odd};
        of_none.describe();
        EXPECT_EQ(from_dlpack(of_none.tensor()).size(), 0) << odd;
    }
}

TEST(Dlpack, X1ElementsOfLessThanAByteTakeWholeBytesTogether) {
    producer from;
    from.shape = {9};
    from.strides = {1};
    from.describe();
    from.managed.what.type = {0, 4, 1};
    const array x = from_dlpack(from.tensor());
    EXPECT_EQ(x.dtype(), dtype::int4);
    EXPECT_EQ(x.buffer().bytes(), 5U);
}

TEST(Dlpack, X1StructuresWithoutAVersionGoOutAndIn) {
    array x = arange(0, 8, 1, dtype::float32);
    cpu().synchronize();  // a structure that no package was named for is ordered by the program
    dlpack_tensor_unversioned out = without_version(to_dlpack(x));
    EXPECT_EQ(out->what.data, x.device_data());
    EXPECT_TRUE(exported_array(*out)) << "it is known again";
    const array y = from_dlpack(with_version(std::move(out)));
    EXPECT_EQ(y.read<float>()[7], 7);

    producer from;
    dlpack::managed_tensor old;
    old.what = from.managed.what;
    old.context = &from;
    old.deleter = [](dlpack::managed_tensor* self) { static_cast<producer*>(self->context)->deleted.fetch_add(1); };
    EXPECT_FALSE(exported_array(old));
    {
        const array in = from_dlpack(with_version(dlpack_tensor_unversioned(&old)));
        EXPECT_EQ(in.read<float>()[3], 3);
        EXPECT_EQ(from.deleted, 0);
    }
    runtime::reaper::wait_until_empty();
    EXPECT_EQ(from.deleted, 1);
}

TEST(Dlpack, X1WhatIsReadOnlyHasNoStructureWithoutAVersion) {
    producer from;
    from.managed.flags = dlpack::read_only;
    EXPECT_THROW(static_cast<void>(without_version(from.tensor())), exchange_error);
    EXPECT_EQ(from.deleted, 1);
    EXPECT_THROW(static_cast<void>(without_version(nullptr)), argument_error);
    EXPECT_THROW(static_cast<void>(with_version(nullptr)), argument_error);
}

TEST(Dlpack, X1AnImportWithoutElementsIsOnItsDevice) {
    producer from;
    from.shape = {0, 4};
    from.describe();
    from.managed.what.on = {dlpack::device_type::extension, 0};
    from.managed.what.data = nullptr;
    const array x = from_dlpack(from.tensor());
    EXPECT_EQ(x.device(), sim(0));
    EXPECT_EQ(x.size(), 0);
    EXPECT_EQ(from.deleted, 1);
}

TEST(Dlpack, L4TheDeleterIsCalledOnceAfterTheLastAccess) {
    producer from;
    testing::gate held;
    const stream on;
    {
        array x = from_dlpack(from.tensor());
        held.hold(on);
        fill(on, x, 1.0F);
    }
    EXPECT_EQ(from.deleted, 0) << "an access is pending";
    held.open();
    on.synchronize();
    runtime::reaper::wait_until_empty();
    EXPECT_EQ(from.deleted, 1);
}

TEST(Dlpack, L4AnImportThatFailsCallsTheDeleterOnce) {
    producer from;
    from.shape = {-1, 4};
    from.describe();
    EXPECT_THROW(static_cast<void>(from_dlpack(from.tensor())), exchange_error);
    EXPECT_EQ(from.deleted, 1);
}

TEST(Dlpack, X1AnotherMajorVersionIsGivenBackUnread) {
    producer from;
    from.managed.version = {2, 0};
    from.managed.what.shape = reinterpret_cast<std::int64_t*>(1);  // reading it would end the program
    EXPECT_THROW(static_cast<void>(from_dlpack(from.tensor())), exchange_error);
    EXPECT_EQ(from.deleted, 1);
}

TEST(Dlpack, X1AnExportHasTheAddressInDataAndOffset0) {
    const stream on;
    array x = arange(0, 12, 1, dtype::int64, on).reshape({3, 4});
    on.synchronize();
    const dlpack_tensor out = to_dlpack(x[{1, slice{1, 4, 2}}]);
    const dlpack::tensor& what = out->what;
    EXPECT_EQ(what.byte_offset, 0U);
    EXPECT_EQ(what.dimensions, 1);
    EXPECT_EQ(what.shape[0], 2);
    EXPECT_EQ(what.strides[0], 2);
    std::int64_t first = 0;
    std::memcpy(&first, what.data, sizeof first);
    EXPECT_EQ(first, 5);
}

TEST(Dlpack, L4AnExportKeepsTheMemoryUntilItsDeleterIsCalled) {
    const stream on;
    std::atomic<int> let_go{0};
    std::array<double, 4> memory{1, 2, 3, 4};
    dlpack_tensor out;
    {
        array x(buffer::wrap(memory.data(), sizeof memory, cpu(), [&] { let_go.fetch_add(1); }), dtype::float64, {4});
        out = to_dlpack(x);
    }
    runtime::reaper::wait_until_empty();
    EXPECT_EQ(let_go, 0);
    out.reset();
    runtime::reaper::wait_until_empty();
    EXPECT_EQ(let_go, 1);
}

TEST(Dlpack, X1AllTypesGoOutAndIn) {
    const stream on;
    for (const dtype type : all_dtypes()) {
        array x = empty({4}, type, on);
        on.synchronize();
        EXPECT_EQ(from_dlpack(to_dlpack(x)).dtype(), type) << name_of(type);
    }
}

TEST(Dlpack, X1WhatIsReadOnlyIsReadAndNeverWrittenInEitherOrdering) {
    producer from;
    from.managed.flags = dlpack::read_only;
    array x = from_dlpack(from.tensor(), std::make_shared<test::library_without_queues>());
    const stream on;
    EXPECT_EQ(copy(on, x).read<float>()[5], 5);
    for (const ordering_mode mode : {ordering_mode::automatic, ordering_mode::manual}) {
        const ordering_scope ordered(mode);
        EXPECT_THROW(fill(on, x, 1.0F), argument_error);
        EXPECT_THROW(static_cast<void>(x.write<float>()), argument_error);
    }
    EXPECT_EQ(from.elements[5], 5);
    EXPECT_EQ(to_dlpack(x)->flags & dlpack::read_only, dlpack::read_only);
}

TEST(Dlpack, X1AConstArrayGoesOutReadOnly) {
    const array x = zeros({4}, dtype::float32, stream(cpu_inline()));
    array same = x;
    EXPECT_EQ(to_dlpack(same)->flags & dlpack::read_only, 0U) << "control";
    EXPECT_EQ(to_dlpack(array(x))->flags & dlpack::read_only, 0U) << "a temporary array";
    const dlpack_tensor out = to_dlpack(x);
    EXPECT_EQ(out->flags & dlpack::read_only, dlpack::read_only);
    EXPECT_TRUE(exported_array(*to_dlpack(same))) << "control";
    EXPECT_FALSE(exported_array(*out)) << "the array itself could be written";
    EXPECT_THROW(static_cast<void>(without_version(to_dlpack(x))), exchange_error);
}

TEST(Dlpack, X7WhileAConsumerWithoutQueuesHasTheMemoryACallThatWritesReturnsWhenItIsOver) {
    const stream on;
    array x = zeros({4}, dtype::float32, on);
    on.synchronize();
    dlpack_tensor out = to_dlpack(x, {std::make_shared<test::library_without_queues>()});
    {
        testing::gate before;
        before.hold(on);
        test::beside call([&] { fill(on, x, 1.0F); });
        EXPECT_TRUE(call.waits()) << "the consumer may look at any time";
        before.open();
    }
    EXPECT_TRUE(x.ready());
    EXPECT_EQ(static_cast<const float*>(out->what.data)[3], 1);
    out.reset();
    runtime::reaper::wait_until_empty();
    testing::gate held;
    held.hold(on);
    fill(on, x, 2.0F);  // would never return while the consumer had the memory
    held.open();
}

/// Tensors with invalid contents, each with a word that its message must contain.
struct hostile {
    const char* what;
    void (*spoil)(producer&);
};
constexpr std::int64_t large = std::numeric_limits<std::int64_t>::max();

class HostileDlpack : public ::testing::TestWithParam<hostile> {};

TEST_P(HostileDlpack, B10IsRefusedAndGivenBack) {
    producer from;
    GetParam().spoil(from);
    EXPECT_THROW(static_cast<void>(from_dlpack(from.tensor())), exchange_error) << GetParam().what;
    EXPECT_EQ(from.deleted, 1);
}

void without_shape(producer& p) { p.managed.what.shape = nullptr; }
void negative_dimensions(producer& p) { p.managed.what.dimensions = -1; }
void without_memory(producer& p) { p.managed.what.data = nullptr; }
void huge_extent(producer& p) { p.shape[0] = large; }
void huge_stride(producer& p) { p.strides[0] = large; }
void lowest_stride(producer& p) { p.strides[0] = -large - 1; }
void huge_offset(producer& p) { p.managed.what.byte_offset = ~0ULL; }
void below_address_0(producer& p) { p.strides[0] = -(std::int64_t{1} << 60); }
void many_elements_in_no_space(producer& p) {
    p.shape = {large, large};
    p.strides = {0, 0};
    p.describe();
}
void unknown_type(producer& p) { p.managed.what.type = {77, 32, 1}; }
void float8_of_16_bits(producer& p) { p.managed.what.type = {7, 16, 1}; }
void no_lanes(producer& p) { p.managed.what.type = {2, 32, 0}; }
void padded(producer& p) { p.managed.flags = dlpack::is_subbyte_type_padded; }
void unknown_device(producer& p) { p.managed.what.on.type = static_cast<dlpack::device_type>(99); }
void negative_device(producer& p) { p.managed.what.on.id = -1; }
void read_only_without_package(producer& p) { p.managed.flags = dlpack::read_only; }

INSTANTIATE_TEST_SUITE_P(
    Tensors, HostileDlpack,
    ::testing::Values(hostile{"WithoutShape", without_shape}, hostile{"NegativeDimensions", negative_dimensions},
                      hostile{"WithoutMemory", without_memory}, hostile{"HugeExtent", huge_extent},
                      hostile{"HugeStride", huge_stride}, hostile{"LowestStride", lowest_stride},
                      hostile{"HugeOffset", huge_offset}, hostile{"BelowAddress0", below_address_0},
                      hostile{"ManyElementsInNoSpace", many_elements_in_no_space}, hostile{"UnknownType", unknown_type},
                      hostile{"Float8Of16Bits", float8_of_16_bits}, hostile{"NoLanes", no_lanes},
                      hostile{"Padded", padded}, hostile{"UnknownDevice", unknown_device},
                      hostile{"NegativeDevice", negative_device},
                      hostile{"ReadOnlyWithoutPackage", read_only_without_package}),
    [](const auto& one) { return one.param.what; });

}  // namespace
}  // namespace weir::exchange
