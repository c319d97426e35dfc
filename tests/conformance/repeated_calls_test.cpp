// Rule P3 for stateless calls: a repeated call uses what an earlier one prepared, and is still a call of its own arrays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "support/arrays.hpp"
#include "support/devices.hpp"
#include "support/effort.hpp"
#include "support/matrices.hpp"
#include "support/messages.hpp"
#include "weir/error.hpp"
#include "weir/fft.hpp"
#include "weir/linalg.hpp"
#include "weir/memory.hpp"
#include "weir/testing.hpp"

namespace weir {
namespace {

using test::dense_array;
using test::error_of;
using test::here;
using test::message_of;
using test::norm;
using test::precise;
using test::product_of;
using test::random_array;
using test::to_array;
using test::values_of;
using ::testing::HasSubstr;
using complex = std::complex<double>;

/// Forward transforms of `n` times the same number.
std::vector<complex> spectrum_of(std::int64_t n, double value) {
    std::vector<complex> all(static_cast<std::size_t>(n));
    all[0] = static_cast<double>(n) * value;
    return all;
}

template <class T>
void expect_same_product(const stream& on, const array& got, const dense_array& a, const dense_array& b,
                         const std::string& which) {
    on.synchronize();
    const dense_array right = product_of(a, b);
    EXPECT_LT(error_of<T>(got, right.values, a.extents[1], norm(a.values) * norm(b.values)), 1.0L) << which;
}

WEIR_CONFORMANCE(P3, RepeatedProductsAreOfTheirOwnArrays) {
    WEIR_NEEDS_BLAS();
    const stream on(here());
    std::vector<array> alive;  // so that the next arrays have other addresses
    for (unsigned turn = 0; turn < 6; ++turn) {
        const dense_array a = random_array<float>({6, 5}, 2 * turn);
        const dense_array b = random_array<float>({5, 4}, 2 * turn + 1);
        const array x = to_array<float>(on, a);
        const array y = to_array<float>(on, b);
        alive.insert(alive.end(), {x, y, matmul(on, x, y)});
        expect_same_product<float>(on, alive.back(), a, b, "packed, turn " + std::to_string(turn));

        array out = empty({4, 6}, dtype::float32, on);
        matmul(on, x, y, out.t());
        alive.push_back(out);
        expect_same_product<float>(on, out.t(), a, b, "written by columns, turn " + std::to_string(turn));

        const array half = astype(on, x, dtype::float16);
        alive.insert(alive.end(), {half, matmul(on, half, astype(on, y, dtype::float16))});
        const array wide = matmul(on, astype(on, half, dtype::float32), y);
        EXPECT_EQ(alive.back().dtype(), dtype::float16);
        const std::vector<float> got = values_of<float>(astype(on, alive.back(), dtype::float32));
        const std::vector<float> right = values_of<float>(wide);
        for (std::size_t i = 0; i < right.size(); ++i) {
            EXPECT_NEAR(got[i], right[i], 0.02F) << "converted, turn " << turn;
        }
    }
}

/// Each view begins at another distance from an address that suits the library.
WEIR_CONFORMANCE(P3, RepeatedProductsOfPartsThatAreAlignedDifferently) {
    WEIR_NEEDS_BLAS();
    const stream on(here());
    const dense_array all = random_array<float>({8, 12}, 1);
    const array whole = to_array<float>(on, all);
    const array one = ones({4, 4}, dtype::float32, on);
    for (const std::int64_t first : {0, 1, 3, 8, 2, 0}) {
        const std::vector<float> got = values_of<float>(matmul(on, whole[{slice{}, slice{first, first + 4}}], one));
        for (std::size_t row = 0; row < 8; ++row) {
            precise sum = 0;
            for (std::size_t i = 0; i < 4; ++i) {
                sum += all.values[12 * row + static_cast<std::size_t>(first) + i];
            }
            EXPECT_NEAR(got[4 * row], static_cast<float>(sum.real()), 1e-5F) << first;
        }
    }
}

WEIR_CONFORMANCE(P3, RepeatedProductsHaveTheirOwnFactorsAndBias) {
    WEIR_NEEDS_BLAS();
    const stream on(here());
    const array a = ones({2, 3}, dtype::float32, on);
    const array b = ones({3, 4}, dtype::float32, on);
    std::vector<array> alive;
    for (int turn = 1; turn < 7; ++turn) {
        const auto number = static_cast<float>(turn);
        alive.push_back(full({4}, number, dtype::float32, on));
        EXPECT_EQ(values_of<float>(matmul(on, a, b, {.epilog = matmul_epilog::relu_bias, .bias = alive.back()})),
                  std::vector<float>(8, 3 + number));
        EXPECT_EQ(values_of<float>(matmul(on, a, b, {.alpha = turn})), std::vector<float>(8, 3 * number));
        alive.push_back(full({2, 4}, number, dtype::float32, on));
        EXPECT_EQ(values_of<float>(matmul(on, a, b, {.c = alive.back(), .beta = turn % 2})),
                  std::vector<float>(8, 3 + (turn % 2 == 1 ? number : 0)));
    }
}

/// Whether the result may overlap an operand is not decided by an earlier call.
WEIR_CONFORMANCE(P3, RepeatedProductsOverTheirOperands) {
    WEIR_NEEDS_BLAS();
    const stream on(here());
    const array b = full({4, 4}, 0.5, dtype::float32, on);
    for (int turn = 0; turn < 3; ++turn) {
        array all = full({6, 4}, 2 + turn, dtype::float32, on);
        const array a = all[{slice{0, 4}}];
        const auto value = static_cast<float>(2 * (2 + turn));
        array apart = empty({4, 4}, dtype::float32, on);
        matmul(on, a, b, apart);
        EXPECT_EQ(values_of<float>(apart), std::vector<float>(16, value));
        array later = all[{slice{1, 5}}];
        matmul(on, a, b, later);
        EXPECT_EQ(values_of<float>(copy(on, later)), std::vector<float>(16, value)) << "a row further on";
        fill(on, all, 2 + turn);
        array same = all[{slice{0, 4}}];
        matmul(on, a, b, same);
        EXPECT_EQ(values_of<float>(copy(on, same)), std::vector<float>(16, value)) << "over the operand itself";
    }
}

WEIR_CONFORMANCE(P3, RepeatedTransformsAreOfTheirOwnArrays) {
    const stream on(here());
    std::vector<array> alive;
    for (int turn = 1; turn < 7; ++turn) {
        const array a = full({8}, turn, dtype::complex128, on);
        alive.insert(alive.end(), {a, fft::fft(on, a)});
        EXPECT_EQ(values_of<complex>(alive.back()), spectrum_of(8, turn));
        EXPECT_EQ(values_of<complex>(fft::fft(on, a, {.norm = fft_norm::forward})), spectrum_of(8, turn / 8.0));
        EXPECT_EQ(values_of<complex>(fft::fft(on, a, {.n = 4})), spectrum_of(4, turn));
        EXPECT_EQ(values_of<complex>(fft::ifft(on, alive.back())), std::vector<complex>(8, turn));
        EXPECT_EQ(values_of<double>(fft::irfft(on, alive.back()[{slice{0, 5}}])), std::vector<double>(8, turn));
        alive.push_back(copy(on, a));
        fft::fft(on, alive.back(), alive.back());
        EXPECT_EQ(values_of<complex>(alive.back()), spectrum_of(8, turn)) << "in place";
    }
}

/// After a transform in place, one whose result overlaps its operand otherwise.
WEIR_CONFORMANCE(P3, ARepeatedTransformThatOverlapsOtherwiseIsRefused) {
    const stream on(here());
    array all = full({64}, 1, dtype::complex128, on);
    array first = all[{slice{0, 32}}];
    fft::fft(on, first, first);
    array later = all[{slice{16, 48}}];  // 256 bytes further on: as well aligned
    EXPECT_THAT(message_of<argument_error>([&] { fft::fft(on, first, later); }), HasSubstr("share memory"));
    fill(on, all, 1);
    fft::fft(on, later, later);
    EXPECT_EQ(values_of<complex>(copy(on, later)), spectrum_of(32, 1));
}

/// What is prepared is dropped while operations need it.
WEIR_CONFORMANCE(P3, ThePreparedWorkOfAPendingCallIsDropped) {
    const stream on(here());
    const stream other(here());
    const array a = full({2, 101}, 3, dtype::complex128, on);
    static_cast<void>(fft::fft(on, a));
    here().synchronize();
    testing::gate held;
    held.hold(on);
    array late = fft::fft(on, a);
    for (std::int64_t n = 1; n < 400; ++n) {  // more than are kept
        static_cast<void>(fft::fft(other, full({1, n}, 1, dtype::complex128, other)));
    }
    EXPECT_FALSE(late.ready());
    held.open();
    std::vector<complex> right = spectrum_of(101, 3);
    right.insert(right.end(), right.begin(), right.begin() + 101);
    const std::vector<complex> got = values_of<complex>(late);
    for (std::size_t i = 0; i < right.size(); ++i) {
        EXPECT_NEAR(std::abs(got[i] - right[i]), 0, 1e-9) << i;
    }
}

/// Several threads repeat the same calls, each on arrays and a stream of its own.
WEIR_CONFORMANCE(P3, RepeatedCallsOfSeveralThreads) {
    WEIR_NEEDS_BLAS();
    std::atomic<int> wrong = 0;
    std::vector<std::thread> threads;
    for (int t = 1; t <= 4; ++t) {
        threads.emplace_back([&wrong, t] {
            const stream on(here());
            std::vector<array> alive;
            for (int turn = 0; turn < 20; ++turn) {
                alive.push_back(full({8}, t, dtype::complex128, on));
                wrong += values_of<complex>(fft::fft(on, alive.back())) == spectrum_of(8, t) ? 0 : 1;
                alive.push_back(full({3, 3}, t, dtype::float32, on));
                const std::vector<float> squared(9, 3 * static_cast<float>(t) * static_cast<float>(t));
                wrong += values_of<float>(matmul(on, alive.back(), alive.back())) == squared ? 0 : 1;
            }
        });
    }
    for (std::thread& each : threads) {
        each.join();
    }
    EXPECT_EQ(wrong, 0);
}

WEIR_CONFORMANCE(P3, AThousandShapesTakeNoMemory) {
    WEIR_NEEDS_BLAS();
    const stream on(here());
    const auto call_all = [&](std::int64_t from, std::int64_t to) {
        for (std::int64_t n = from; n < to; ++n) {
            static_cast<void>(fft::rfft(on, full({n}, 1, dtype::float64, on)));
            static_cast<void>(matmul(on, ones({1, n}, dtype::float32, on), ones({n, 2}, dtype::float32, on)));
        }
        here().synchronize();
    };
    call_all(2, 100);
    const std::size_t live = memory::stats(here()).live;
    call_all(100, 100 + test::repeated(1000));
    EXPECT_LE(memory::stats(here()).live, live);
}

}  // namespace
}  // namespace weir
