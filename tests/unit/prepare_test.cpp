// What is loaded on a CUDA device before its first use (rule K6): operations then neither compile nor load anything, which could wait for
// a stream that only the host sets going. With WEIR_CUDA_DRIVER and WEIR_NVRTC_LIBRARY set to a GPU's the same program runs there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <thread>
#include <vector>

#include "kernel_gate.hpp"
#include "support/array_values.hpp"
#include "support/fake_cuda.hpp"
#include "support/messages.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using test::fake_cuda;
using test::kernel_gate;
using test::message_of;
using test::values_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// Every operation of Weir's own on packed arrays of one type.
void use_packed(const stream& s, dtype type) {
    const use current(s);
    const array x = full({6}, 3, type, s);
    const array y = full({6}, 2, type, s);
    const scalar two(2);
    for (const binary_operation what :
         {binary_operation::add, binary_operation::subtract, binary_operation::multiply, binary_operation::divide,
          binary_operation::equal, binary_operation::not_equal, binary_operation::less, binary_operation::less_equal,
          binary_operation::greater, binary_operation::greater_equal}) {
        static_cast<void>(compute(s, what, x, y));
        static_cast<void>(compute(s, what, x, two));
        static_cast<void>(compute(s, what, two, y));
    }
    if (is_integer(type)) {
        static_cast<void>(x * 0.5);
        static_cast<void>(0.5 - x);
        static_cast<void>(x < 0.5);
        static_cast<void>(x & y);
        static_cast<void>(x | two);
        static_cast<void>(two ^ y);
        static_cast<void>(~x);
    }
    array z = -x;
    z += y;
    const array chosen = select(s, x < y, x, y);
    static_cast<void>(select(s, x < y, x, two));
    for (const reduction what : {reduction::sum, reduction::mean, reduction::min, reduction::max}) {
        static_cast<void>(reduce(s, what, x));
        static_cast<void>(reduce(s, what, reshape(s, x, {2, 3}), along({0})));
        static_cast<void>(reduce(s, what, reshape(s, x, {2, 3}), along({1})));
    }
    for (const dtype other : {dtype::bool_, dtype::int32, dtype::int64, dtype::float32, dtype::float64}) {
        static_cast<void>(astype(s, x, other));
    }
    static_cast<void>(arange(0, 9, 1, type, s));
    static_cast<void>(copy(s, x));
    static_cast<void>(copy(s, x[{slice{{}, {}, 2}}]));
    array filled = zeros({6}, type, s);
    array part = filled[{slice{{}, {}, 2}}];
    fill(s, part, 1);
}

/// The same for arrays with strides.
void use_strided(const stream& s, dtype type) {
    const use current(s);
    const array grid = full({6, 8}, 3, type, s);
    const array part = grid[{slice{{}, {}, 2}, slice{1, 7, 3}}];
    const array row = grid[{0, slice{{}, {}, 4}}];
    static_cast<void>(part + row);
    static_cast<void>(part * 2);
    static_cast<void>(2 - part);
    static_cast<void>(row < row);
    static_cast<void>(-part);
    static_cast<void>(select(s, part < row, part, row));
    static_cast<void>(compute(s, binary_operation::power, grid, 2));
    static_cast<void>(astype(s, part, dtype::float64));
    for (const reduction what : {reduction::sum, reduction::mean, reduction::min, reduction::max}) {
        static_cast<void>(reduce(s, what, part));
        static_cast<void>(reduce(s, what, part, along({0})));
        static_cast<void>(reduce(s, what, row));
    }
}

class Prepare : public ::testing::Test {
protected:
    void SetUp() override {
        // Memory, too, is taken from the driver at the first use of a stream.
        static_cast<void>(full({1000}, 0, dtype::float64, s_));
        s_.synchronize();
    }

    /// Calls `work` while a stream is held on a driver that waits for it when it loads code.
    template <class Work>
    void expect_no_load(const Work& work) {
        kernel_gate gate;
        const stream held(cuda());
        gate.hold(held);
        if (fake_cuda::in_use()) {
            const fake_cuda::waiting_loads as_on_a_gpu;
            const auto compilations = fake_cuda::compilations();
            fake_cuda::forget_calls();
            std::atomic<bool> is_done{false};
            std::thread other([&] {
                work();
                is_done.store(true);
            });
            while (!is_done.load() && fake_cuda::waiting_loads::now() == 0) {
                std::this_thread::yield();
            }
            EXPECT_TRUE(is_done.load()) << "an operation waits for the held stream";
            if (!is_done.load()) {
                gate.open();
            }
            other.join();
            EXPECT_EQ(fake_cuda::calls("cuModuleLoadDataEx"), 0U);
            EXPECT_EQ(fake_cuda::calls("cuFuncLoad"), 0U);
            EXPECT_EQ(fake_cuda::compilations(), compilations);
        } else {
            work();
        }
        s_.synchronize();
        gate.open();
        held.synchronize();
    }

    stream s_{cuda()};
};

TEST_F(Prepare, K6PackedArraysOfTheUsualTypesLoadNothing) {
    cuda().prepare();
    expect_no_load([&] {
        for (const dtype type : {dtype::int32, dtype::int64, dtype::float32, dtype::float64}) {
            use_packed(s_, type);
        }
        const use current(s_);
        const array yes = full({6}, true, dtype::bool_, s_);
        static_cast<void>(yes & yes);
        static_cast<void>(yes ^ true);
        static_cast<void>(~yes);
        static_cast<void>(reduce(s_, reduction::sum, yes));
        static_cast<void>(random({6}, 1, dtype::float32, s_));
        static_cast<void>(random({6}, 1, dtype::float64, s_));
        static_cast<void>(copy(s_, full({4}, 1, dtype::complex128, s_)[{slice{{}, {}, 2}}]));
    });
}

TEST_F(Prepare, K6LargeReductionsTakeSeveralKernelsAndLoadNothing) {
    cuda().prepare();
    const array x = full({100000}, 1, dtype::float32, s_);
    std::optional<array> sum;
    expect_no_load([&] { sum = reduce(s_, reduction::sum, x); });
    EXPECT_EQ(values_of<float>(to(s_, *sum, cpu())), std::vector<float>{100000});
}

TEST_F(Prepare, K6ATypeThatTheProgramNamesLoadsNothing) {
    cuda().prepare({dtype::float16});
    expect_no_load([&] {
        use_packed(s_, dtype::float16);
        use_strided(s_, dtype::float16);
    });
}

/// Operators between arrays of two types, packed and with strides.
void use_mixed(const stream& s, dtype one, dtype other) {
    const use current(s);
    const array x = full({6, 8}, 3, one, s);
    const array y = full({6, 8}, 2, other, s);
    const array part = x[{slice{{}, {}, 2}, slice{1, 7, 3}}];
    const array row = y[{0, slice{{}, {}, 4}}];
    for (const binary_operation what : {binary_operation::add, binary_operation::subtract, binary_operation::multiply,
                                        binary_operation::divide, binary_operation::equal, binary_operation::less}) {
        static_cast<void>(compute(s, what, x, y));
        static_cast<void>(compute(s, what, y, x));
        static_cast<void>(compute(s, what, part, row));
        static_cast<void>(compute(s, what, row, part));
    }
    static_cast<void>(select(s, x < y, x, y));
    static_cast<void>(select(s, x < y, y, x));
}

TEST_F(Prepare, K6TwoTypesThatTheProgramNamesLoadNothingBesideEachOther) {
    cuda().prepare({dtype::int32, dtype::float32});
    expect_no_load([&] { use_mixed(s_, dtype::int32, dtype::float32); });
    cuda().prepare({dtype::uint64, dtype::int32});
    const array x = full({6}, 3, dtype::uint64, s_);
    const array y = full({6}, 2, dtype::int32, s_);
    expect_no_load([&] { static_cast<void>(compute(s_, binary_operation::add, x, y)); });
}

TEST_F(Prepare, IsDoneOnce) {
    cuda().prepare({dtype::float16});
    if (!fake_cuda::in_use()) {
        GTEST_SKIP() << "only the fake driver counts calls";
    }
    fake_cuda::forget_calls();
    cuda().prepare();
    cuda().prepare({dtype::float16});
    EXPECT_EQ(fake_cuda::calls("cuModuleLoadDataEx"), 0U);
}

// The negative control of the tests above.
TEST_F(Prepare, ATypeThatNothingPreparedWaits) {
    if (!fake_cuda::in_use()) {
        GTEST_SKIP() << "a driver may also load without waiting";
    }
    kernel_gate gate;
    const stream held(cuda());
    gate.hold(held);
    const fake_cuda::waiting_loads as_on_a_gpu;
    const array x = full({6}, 3, dtype::uint8, s_);
    std::optional<array> y;
    std::thread other([&] { y = x + x; });
    while (fake_cuda::waiting_loads::now() == 0) {
        std::this_thread::yield();
    }
    gate.open();
    other.join();
    EXPECT_EQ(values_of<std::uint8_t>(to(s_, *y, cpu())), std::vector<std::uint8_t>(6, 6));
}

TEST_F(Prepare, ResultsAreThoseOfKernelsThatWereCompiledAlone) {
    cuda().prepare();
    const use current(s_);
    const array x = arange(0, 5, 1, dtype::float32, s_);
    EXPECT_EQ(values_of<float>(to(s_, x + x, cpu())), (std::vector<float>{0, 2, 4, 6, 8}));
    EXPECT_EQ(values_of<float>(to(s_, 1 - x, cpu())), (std::vector<float>{1, 0, -1, -2, -3}));
    EXPECT_EQ(values_of<float>(to(s_, x * 3, cpu())), (std::vector<float>{0, 3, 6, 9, 12}));
    EXPECT_EQ(values_of<float>(to(s_, reduce(s_, reduction::mean, x), cpu())), std::vector<float>{2});
    EXPECT_EQ(values_of<float>(to(s_, reduce(s_, reduction::max, x), cpu())), std::vector<float>{4});
    EXPECT_EQ(values_of<std::int64_t>(to(s_, astype(s_, x, dtype::int64), cpu())),
              (std::vector<std::int64_t>{0, 1, 2, 3, 4}));
}

TEST_F(Prepare, RefusesTypesWithoutArithmetic) {
    EXPECT_THAT(message_of<argument_type_error>([] { cuda().prepare({dtype(dtype_code::opaque, 32)}); }),
                AllOf(HasSubstr("prepare"), HasSubstr("only moved"), HasSubstr("leave it out")));
}

TEST(PrepareElsewhere, OtherDevicesHaveNothingToLoad) {
    cpu().prepare({dtype::complex64});
    sim(0).prepare();
    cpu_inline().prepare({dtype::float16});
}

}  // namespace
}  // namespace weir
