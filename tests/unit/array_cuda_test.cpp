// Arrays on a CUDA device: every operation has the result that it has on the CPU, bit for bit where results are rounded once. With
// the fake driver, kernels take long to compile, so some types stand for all (array_kernels_test.cpp has all types). With
// WEIR_CUDA_DRIVER and WEIR_NVRTC_LIBRARY set to a GPU's libraries, the same program tries all types there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstdlib>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "array/loops.hpp"
#include "support/array_values.hpp"
#include "support/fake_cuda.hpp"

namespace weir {
namespace {

using test::differences;
using test::fake_cuda;
using test::fake_gate;
using test::interesting;
using test::make_array;
using test::values_of;
using ::testing::ElementsAre;

std::vector<dtype> types(const std::vector<dtype>& some) {
    return fake_cuda::in_use() ? some : std::vector<dtype>(arithmetic_dtypes().begin(), arithmetic_dtypes().end());
}

class ArraysOnCuda : public ::testing::Test {
protected:
    /// The same elements on the device.
    [[nodiscard]] array there(const array& x) const { return to(device_, x, cuda()); }
    void expect_same(const array& seen, const array& wanted, const std::string& what) const {
        // Memory of the host is not used by accident. An array without elements has no device.
        ASSERT_TRUE(seen.device() == cuda() || seen.size() == 0) << what;
        ASSERT_EQ(seen.dtype(), wanted.dtype()) << what;
        ASSERT_EQ(seen.shape(), wanted.shape()) << what;
        EXPECT_EQ(differences(to(device_, seen, cpu()), wanted), 0U) << what;
    }

    stream host_{cpu()};
    stream device_{cuda()};
};

constexpr int operations = static_cast<int>(binary_operation::bitwise_xor) + 1;

TEST_F(ArraysOnCuda, BinaryOperations) {
    for (int number = 0; number < operations; ++number) {
        const auto what = static_cast<binary_operation>(number);
        for (const dtype type : types({dtype::int32, dtype::float16})) {
            const loops::binary_loop how = loops::find(what, type);
            const bool is_real_power = what == binary_operation::power && kind_of(how.a) >= dtype_kind::real;
            if (how.run == nullptr || is_real_power) {
                continue;
            }
            array x = interesting(host_, type, 1);
            array given = interesting(host_, type, 2);
            array y = what == binary_operation::power ? astype(host_, given > 1, type) : given;
            expect_same(compute(device_, what, there(x), there(y)), compute(host_, what, x, y),
                        "operation " + std::to_string(number) + " of " + std::string(name_of(type)));
        }
    }
}

TEST_F(ArraysOnCuda, UnaryOperationsAndSelect) {
    for (const dtype type : types({dtype::int8, dtype::complex64})) {
        array x = interesting(host_, type, 1);
        array y = interesting(host_, type, 2);
        if (type != dtype::bool_) {
            expect_same(compute(device_, unary_operation::negative, there(x)),
                        compute(host_, unary_operation::negative, x), "negative");
        }
        if (kind_of(type) < dtype_kind::real) {
            expect_same(compute(device_, unary_operation::invert, there(x)), compute(host_, unary_operation::invert, x),
                        "invert");
        }
        expect_same(select(device_, there(y), there(x), there(y)), select(host_, y, x, y), "select");
    }
}

TEST_F(ArraysOnCuda, NumbersAndMixedTypes) {
    array x = interesting(host_, dtype::float32, 1);
    array i = interesting(host_, dtype::int16, 2);
    expect_same(multiply(device_, 2.5, there(x)), multiply(host_, 2.5, x), "a real number");
    expect_same(divide(device_, there(i), 3), divide(host_, i, 3), "an integer");
    expect_same(add(device_, there(i), std::complex<double>(1, 2)), add(host_, i, std::complex<double>(1, 2)),
                "complex");
    expect_same(add(device_, there(i), there(x)), add(host_, i, x), "two types");
    array a = interesting(host_, dtype::uint64, 3);
    array b = interesting(host_, dtype::int64, 4);
    expect_same(compute(device_, binary_operation::less, there(a), there(b)),
                compute(host_, binary_operation::less, a, b), "integers with and without sign");
    expect_same(compute(device_, binary_operation::greater_equal, there(b), there(a)),
                compute(host_, binary_operation::greater_equal, b, a), "integers with and without sign");
    const use current(device_);
    array y = there(x);
    y += 1;
    y *= there(x);
    expect_same(y, (x + 1) * x, "in place");
}

TEST_F(ArraysOnCuda, OperandsThatShareMemory) {
    const auto both = [&](const std::string& what, auto change) {
        array far = there(arange(0, 64, 1, dtype::int32, host_));
        array near = arange(0, 64, 1, dtype::int32, host_);
        change(device_, far);
        change(host_, near);
        expect_same(far, near, what);
    };
    constexpr auto plus = binary_operation::add;
    both("itself", [](const stream& on, array& x) { compute(on, plus, x, x, x); });
    both("itself and a number", [](const stream& on, array& x) { compute(on, plus, 5, x, x); });
    both("what lies before", [](const stream& on, const array& x) {
        compute(on, plus, x[slice{8, 40}], x[slice{0, 32}], x[slice{8, 40}]);
    });
    both("what lies behind", [](const stream& on, const array& x) {
        compute(on, plus, x[slice{8, 40}], 1, x[slice{0, 32}]);
    });
    both("what lies beside", [](const stream& on, const array& x) {
        compute(on, plus, x[slice{0, 32}], x[slice{32, 64}], x[slice{0, 32}]);
    });
    both("the same bytes, of another type", [](const stream& on, const array& x) {
        compute(on, plus, array(x.buffer(), dtype::uint8, 64), 1, array(x.buffer(), dtype::int16, 64));
    });
}

TEST_F(ArraysOnCuda, WhatIsComputedOfInvalidElementsIsInvalid) {
    array x = there(make_array<std::int32_t>(host_, 3, {2, 3, 4}));
    array y = copy(device_, x);
    array z = copy(device_, x);
    host_task(
        device_, [](std::span<std::byte>) { throw std::runtime_error("for the test"); }, inout(x));
    EXPECT_THROW(device_.synchronize(), operation_error);
    compute(device_, binary_operation::add, x, 1, x);
    compute(device_, binary_operation::add, x, 1, y);
    compute(device_, binary_operation::add, z, 1, z);
    EXPECT_THROW((void)x.read<std::int32_t>(), operation_error) << "in place";
    EXPECT_THROW((void)y.read<std::int32_t>(), operation_error) << "of it";
    EXPECT_THAT(values_of<std::int32_t>(z), ElementsAre(3, 4, 5)) << "control: others are not";
    compute(device_, binary_operation::add, z, 1, x);
    EXPECT_THAT(values_of<std::int32_t>(x), ElementsAre(4, 5, 6)) << "control: overwritten, it is valid again";
}

TEST_F(ArraysOnCuda, PowersAreCloseToTheHosts) {
    const auto close = [&](dtype type, double bound) {
        array x = make_array<double>(host_, 5, {0.5, 1.75, 3, 10, 0.01});
        array y = make_array<double>(host_, {3, 1}, {2, -1.5, 0.25});
        const array base =
            is_complex(type) ? astype(host_, x, type) * std::complex<double>(0.6, 0.8) : astype(host_, x, type);
        array exponent = astype(host_, y, type);
        array wanted = astype(host_, power(host_, base, exponent), dtype::complex128);
        const array seen =
            astype(host_, to(device_, power(device_, there(base), there(exponent)), cpu()), dtype::complex128);
        const auto a = values_of<std::complex<double>>(wanted);
        const auto b = values_of<std::complex<double>>(seen);
        ASSERT_EQ(a.size(), 15U);
        for (std::size_t i = 0; i < a.size(); ++i) {
            EXPECT_LE(std::abs(a[i] - b[i]), bound * std::abs(a[i])) << name_of(type) << " " << i;
        }
    };
    close(dtype::float32, 6 * 0x1p-23);  // the host's own error besides
    close(dtype::float64, 6 * 0x1p-52);
    close(dtype::complex64, 16 * 0x1p-23);
    close(dtype::complex128, 16 * 0x1p-52);
    const auto at = [&](double base, double exponent) {
        return values_of<std::complex<double>>(
            to(device_, power(device_, there(full(1, base, dtype::complex128, host_)), exponent), cpu()))[0];
    };
    EXPECT_EQ(at(0, 0), std::complex<double>(1, 0));
    EXPECT_EQ(at(0, 2), std::complex<double>(0, 0));
}

TEST_F(ArraysOnCuda, IntegersToANegativePowerFailTheOperation) {
    array x = there(make_array<std::int32_t>(host_, 3, {2, 3, 4}));
    array good = power(device_, x, there(make_array<std::int32_t>(host_, 3, {0, 3, 1})));
    EXPECT_THAT(values_of<std::int32_t>(good), ElementsAre(1, 27, 4));
    device_.synchronize();
    array bad = power(device_, x, there(make_array<std::int32_t>(host_, 3, {1, -1, 1})));
    EXPECT_THROW(device_.synchronize(), operation_error);
    EXPECT_THROW((void)bad.read<std::int32_t>(), operation_error) << "the result is invalid";
    EXPECT_THAT(values_of<std::int32_t>(good), ElementsAre(1, 27, 4)) << "control: others are not";
    EXPECT_THROW((void)power(device_, x, -1), argument_error);
}

TEST_F(ArraysOnCuda, Conversions) {
    std::vector<std::pair<dtype, dtype>> pairs = {{dtype::float32, dtype::float16},  {dtype::float16, dtype::float64},
                                                  {dtype::float64, dtype::bfloat16}, {dtype::int64, dtype::float16},
                                                  {dtype::float32, dtype::int8},     {dtype::complex64, dtype::uint64},
                                                  {dtype::int8, dtype::complex128},  {dtype::bfloat16, dtype::bool_}};
    if (!fake_cuda::in_use()) {
        for (const dtype from : arithmetic_dtypes()) {
            for (const dtype to : arithmetic_dtypes()) {
                pairs.emplace_back(from, to);
            }
        }
    }
    for (const auto& [from, to] : pairs) {
        array x = interesting(host_, from, 3);
        expect_same(astype(device_, there(x), to), astype(host_, x, to),
                    std::string(name_of(from)) + " to " + std::string(name_of(to)));
    }
}

TEST_F(ArraysOnCuda, CopiesOfAnyStrides) {
    array table = arange(0, 600, 1, dtype::int32, host_).reshape({20, 30});
    array x = there(table);
    expect_same(contiguous(device_, x.t()), contiguous(host_, table.t()), "transposed");
    expect_same(reshape(device_, x[{slice{{}, {}, -2}, slice{1, {}, 3}}], {4, 25}),
                reshape(host_, table[{slice{{}, {}, -2}, slice{1, {}, 3}}], {4, 25}), "backwards");
    array y = there(zeros({20, 30}, dtype::float64, host_));
    array z = zeros({20, 30}, dtype::float64, host_);
    copy(device_, y[{slice{{}, {}, 2}}], x[3]);
    copy(host_, z[{slice{{}, {}, 2}}], table[3]);
    expect_same(y, z, "converted and broadcast to every second row");
    for (const bool packed : {false, true}) {
        array a = there(table);
        array b = copy(host_, table);
        const auto moved = [&](const array& of) {
            return packed ? of[slice{1, {}}] : of[{slice{1, {}}, slice{2, {}}}];
        };
        const auto from = [&](const array& of) { return packed ? of[slice{0, -1}] : of[{slice{0, -1}, slice{0, -2}}]; };
        copy(device_, moved(a), from(a));
        copy(host_, moved(b), from(b));
        expect_same(a, b, "what overlaps, as if it had been copied first");
        copy(device_, a, a[{slice{{}, {}, -1}, slice{{}, {}, -1}}]);
        copy(host_, b, b[{slice{{}, {}, -1}, slice{{}, {}, -1}}]);
        expect_same(a, b, "backwards into itself");
        compute(device_, binary_operation::add, a, a[0], a);
        compute(host_, binary_operation::add, b, b[0], b);
        expect_same(a, b, "an operand that the results overwrite");
    }
    const std::vector<std::int32_t> packed = {7, 8, 9};
    array narrow = there(zeros({3, 2}, dtype::int32, host_));
    copy_from_host(device_, narrow.t()[1], std::as_bytes(std::span(packed)));
    EXPECT_THAT(values_of<std::int32_t>(narrow), ElementsAre(0, 7, 0, 8, 0, 9));
}

TEST_F(ArraysOnCuda, MovesBetweenDevicesWithAnyStridesOnAStreamOfEither) {
    array x = arange(0, 30, 1, dtype::int32, host_).reshape({5, 6});
    array wanted = astype(host_, x.t()[slice{{}, {}, 2}], dtype::float32);
    for (const stream_ref& on : {stream_ref(host_), stream_ref(device_)}) {
        array moved = to(on, x.t(), cuda());
        expect_same(moved, contiguous(host_, x.t()), "there");
        array back = zeros({3, 5}, dtype::float32, host_);
        copy(on, back, moved[slice{{}, {}, 2}]);
        EXPECT_EQ(differences(back, wanted), 0U) << "and back, converted";
        array part = there(zeros({3, 10}, dtype::float32, host_));
        copy(on, part[{ellipsis, slice{{}, {}, 2}}], x.t()[slice{{}, {}, 2}]);
        expect_same(contiguous(device_, part[{ellipsis, slice{{}, {}, 2}}]), wanted, "there, to every second column");
    }
    array simulated = to(stream(sim(0)), there(x), sim(0));
    EXPECT_EQ(values_of<std::int32_t>(simulated), values_of<std::int32_t>(x));
}

TEST_F(ArraysOnCuda, MovesFromOneGpuToAnother) {
    const auto all = devices();
    const auto is_gpu = [](const device& one) { return one.kind() == device_kind::cuda; };
    if (std::count_if(all.begin(), all.end(), is_gpu) < 2) {
        GTEST_SKIP() << "there is one GPU";
    }
    array x = arange(0, 30, 1, dtype::int32, host_).reshape({5, 6});
    array wanted = contiguous(host_, x.t());
    const stream other(cuda(1));
    for (const stream_ref& on : {stream_ref(device_), stream_ref(other)}) {
        array far = to(on, there(x).t(), cuda(1));
        EXPECT_EQ(far.device(), cuda(1));
        EXPECT_EQ(differences(to(other, add(other, far, 1), cpu()), add(host_, wanted, 1)), 0U);
    }
    EXPECT_THROW((void)add(device_, to(other, x, cuda(1)), 1), argument_error);
}

TEST_F(ArraysOnCuda, FillsOfEachTypePackedAndNot) {
    for (const dtype type : arithmetic_dtypes()) {
        for (const scalar& value : {scalar(1), scalar(0)}) {
            array packed = full({3, 5}, value, type, device_);
            expect_same(packed, full({3, 5}, value, type, host_), std::string(name_of(type)));
        }
        if (!fake_cuda::in_use() || type == dtype::int8 || type == dtype::complex64 || type == dtype::complex128) {
            array x = zeros({4, 6}, type, device_);
            array y = zeros({4, 6}, type, host_);
            fill(device_, x[{slice{1, 3}, slice{0, {}, 2}}], 1);
            fill(host_, y[{slice{1, 3}, slice{0, {}, 2}}], 1);
            expect_same(x, y, std::string(name_of(type)));
        }
    }
}

TEST_F(ArraysOnCuda, CountsAndRandomNumbers) {
    expect_same(arange(-5, 300, 7, dtype::int8, device_), arange(-5, 300, 7, dtype::int8, host_), "integers");
    expect_same(arange(0.1, 20, 0.7, dtype::float32, device_), arange(0.1, 20, 0.7, dtype::float32, host_), "reals");
    for (const dtype type : {dtype::float32, dtype::float64}) {
        for (const std::int64_t count : {1, 3, 4099}) {
            expect_same(random(count, 11, type, device_), random(count, 11, type, host_), "random");
        }
    }
}

TEST_F(ArraysOnCuda, ShapesOfAllKinds) {
    for (const shape& extents : {shape(), shape({0}), shape({3, 0, 2}), shape({1, 1}), shape({2, 1, 3, 1, 2, 2})}) {
        array x = random(extents, 5, dtype::float32, host_);
        array y = there(x);
        expect_same(add(device_, y, y), add(host_, x, x), extents.to_string());
        expect_same(copy(device_, y), x, extents.to_string());
    }
    array deep = random({3, 2, 3, 2, 3, 2}, 6, dtype::float32, host_);
    const std::vector<std::int64_t> order = {5, 0, 3, 1, 4, 2};
    expect_same(add(device_, there(deep).transpose(order), 1), add(host_, deep.transpose(order), 1), "six dimensions");
    array large = random(300000, 7, dtype::float32, host_);
    expect_same(add(device_, there(large), there(large)[0]), add(host_, large, large[0]),
                "more than a launch has threads");
}

TEST_F(ArraysOnCuda, ReadingStridedElementsOnTheHost) {
    array x = there(arange(0, 12, 1, dtype::int32, host_).reshape({3, 4}));
    EXPECT_THAT(values_of<std::int32_t>(x.t()[1]), ElementsAre(1, 5, 9));
    EXPECT_THAT(values_of<std::int32_t>(x[{2, 3}]), ElementsAre(11));
    EXPECT_THAT(values_of<std::int32_t>(x[{slice{{}, {}, -1}, slice{0, 2}}]), ElementsAre(8, 9, 4, 5, 0, 1));
}

TEST_F(ArraysOnCuda, ReadingMoreStridedElementsThanTheStagingMemoryHolds) {
    array x = arange(0, 1200000, 1, dtype::int32, device_).reshape({2, 600, 1000}).transpose({2, 0, 1});
    array column = x[{slice{}, 1, slice{0, {}, 2}}];
    device_.synchronize();
    if (fake_cuda::in_use()) {
        fake_cuda::forget_calls();
    }
    const auto values = values_of<std::int32_t>(x);
    ASSERT_EQ(values.size(), 1200000U);
    for (std::int32_t i = 0; i < 1000; ++i) {
        for (std::int32_t row = 0; row < 1200; ++row) {
            ASSERT_EQ(values[static_cast<std::size_t>(i * 1200 + row)], row * 1000 + i);
        }
    }
    if (fake_cuda::in_use()) {
        // Not all calls: those of the watcher depend on how long the copies take.
        EXPECT_LT(fake_cuda::calls("cuLaunchKernelEx") + fake_cuda::calls("cuMemcpyAsync") +
                      fake_cuda::calls("cuMemcpyDtoHAsync_v2"),
                  100U)
            << "by kernels, not element by element";
        EXPECT_GT(fake_cuda::calls("cuLaunchKernelEx"), 0U);
    }
    EXPECT_EQ(values_of<std::int32_t>(column)[301], 600000 + 2 * 1000 + 1) << "element (1, 1) of (1000, 300)";
}

TEST_F(ArraysOnCuda, OperandsOfOtherDevicesAreRefused) {
    array here = zeros({3}, dtype::float32, host_);
    array y = there(here);
    EXPECT_THROW((void)add(device_, y, here), argument_error);
    EXPECT_THROW((void)add(host_, y, here), argument_error);
    EXPECT_THROW((void)sum(device_, here), argument_error);
    EXPECT_THROW((void)astype(host_, y, dtype::int8), argument_error);
    EXPECT_THROW(fill(device_, here, 1), argument_error);
}

// The following tests ask the fake driver.

TEST_F(ArraysOnCuda, KernelsAreCompiledOnceAndWhereTheOperationIsEnqueued) {
    if (!fake_cuda::in_use()) {
        GTEST_SKIP() << "asks the fake driver";
    }
    array x = zeros({100}, dtype::uint16, device_);
    static_cast<void>(compute(device_, binary_operation::bitwise_xor, x, 5));
    device_.synchronize();
    const auto before = fake_cuda::compilations();
    const auto loaded = fake_cuda::live(test::fake_thing::modules);
    static_cast<void>(compute(device_, binary_operation::bitwise_xor, x, 6));
    static_cast<void>(compute(device_, binary_operation::bitwise_xor, x[slice{0, 50}], 7));
    device_.synchronize();
    EXPECT_EQ(fake_cuda::compilations(), before);
    EXPECT_EQ(fake_cuda::live(test::fake_thing::modules), loaded);
    static_cast<void>(compute(device_, binary_operation::bitwise_xor, x[slice{{}, {}, 2}], 7));
    EXPECT_EQ(fake_cuda::live(test::fake_thing::modules), loaded + 1) << "control: strides need another one, at once";
}

TEST_F(ArraysOnCuda, AKernelThatDoesNotCompileFailsTheCall) {
    if (!fake_cuda::in_use()) {
        GTEST_SKIP() << "asks the fake driver";
    }
    array x = full({10}, 3, dtype::uint32, device_);
    array out = zeros({10}, dtype::uint32, device_);
    device_.synchronize();
    // No earlier run of this test has left the kernel in the cache.
    const char* const set = std::getenv("WEIR_CACHE_DIR");
    const std::string cache = set != nullptr ? set : "";
    ::setenv("WEIR_CACHE_DIR", "/dev/null/none", 1);
    fake_cuda::fail_next_compilation(6);
    EXPECT_THROW(compute(device_, binary_operation::bitwise_or, x, 4, out), device_error);
    EXPECT_EQ(values_of<std::uint32_t>(out)[9], 0U) << "nothing was enqueued";
    compute(device_, binary_operation::bitwise_or, x, 4, out);
    EXPECT_EQ(values_of<std::uint32_t>(out)[9], 7U) << "control: the next one compiles";
    ::setenv("WEIR_CACHE_DIR", cache.c_str(), 1);
}

TEST_F(ArraysOnCuda, ALaunchThatFailsFailsTheOperation) {
    if (!fake_cuda::in_use()) {
        GTEST_SKIP() << "asks the fake driver";
    }
    array x = full({10}, 3, dtype::int32, device_);
    static_cast<void>(add(device_, x, 1));
    device_.synchronize();
    fake_cuda::fail("cuLaunchKernelEx", 1, 701);
    array y = add(device_, x, 1);
    EXPECT_THROW(device_.synchronize(), operation_error);
    EXPECT_THROW((void)y.read<std::int32_t>(), operation_error);
    EXPECT_EQ(values_of<std::int32_t>(add(device_, x, 1))[9], 4) << "control: the next is in order";
}

TEST_F(ArraysOnCuda, OperationsOfTwoStreamsAreOrderedByWhatTheyTouch) {
    if (!fake_cuda::in_use()) {
        GTEST_SKIP() << "asks the fake driver";
    }
    const stream second(cuda());
    array x = zeros({1000}, dtype::int32, device_);
    array other = zeros({1000}, dtype::int32, device_);
    void* queue = nullptr;
    access(device_, [&queue](native_stream stream) { queue = stream.handle; });
    static_cast<void>(add(second, x, 1));  // compiles the kernel
    device_.synchronize();
    second.synchronize();
    array y;
    {
        const fake_gate gate(queue);
        fill(device_, x, 41);
        y = add(second, x, 1);
        array free_of_it = add(stream(cuda()), other, 2);
        EXPECT_EQ(values_of<std::int32_t>(free_of_it)[999], 2) << "control: what touches other elements does not wait";
        EXPECT_FALSE(y.ready());
    }
    EXPECT_EQ(values_of<std::int32_t>(y), std::vector<std::int32_t>(1000, 42));
}

}  // namespace
}  // namespace weir
