// How fft uses the library behind it: with a table of functions of the tests in place of FFTW's.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "calls/fft/fftw_provider.hpp"
#include "support/arrays.hpp"
#include "weir/error.hpp"
#include "weir/fft.hpp"
#include "weir/testing.hpp"

namespace weir::calls {
namespace {

using functions = fftw_functions<double>;

/// The calls that the stand-in got. It copies in place of transforming.
struct record {
    std::atomic<int> plans{0};
    std::atomic<int> destroyed{0};
    std::atomic<int> planning{0};
    std::atomic<bool> planned_at_once{false};
    std::atomic<unsigned> flags{0};
    std::atomic<bool> refuse{false};
} asked;

functions::plan make_plan(int, const fftw_dimension* length, int, const fftw_dimension*, functions::complex*,
                          functions::complex*, int, unsigned flags) {
    if (asked.planning.fetch_add(1) != 0) {
        asked.planned_at_once = true;
    }
    std::this_thread::yield();
    asked.planning.fetch_sub(1);
    asked.flags = flags;
    if (asked.refuse) {
        return nullptr;
    }
    ++asked.plans;
    return reinterpret_cast<functions::plan>(new std::ptrdiff_t(length->n));
}

void execute_plan(functions::plan plan, functions::complex* in, functions::complex* out) {
    std::memmove(out, in,
                 static_cast<std::size_t>(*reinterpret_cast<std::ptrdiff_t*>(plan)) * sizeof(functions::complex));
}

void destroy_plan(functions::plan plan) {
    if (asked.planning.fetch_add(1) != 0) {
        asked.planned_at_once = true;
    }
    asked.planning.fetch_sub(1);
    ++asked.destroyed;
    delete reinterpret_cast<std::ptrdiff_t*>(plan);
}

class FftProvider : public ::testing::Test {
protected:
    FftProvider() {
        table.plan_dft = make_plan;
        table.execute_dft = execute_plan;
        table.destroy_plan = destroy_plan;
        asked.plans = 0;
        asked.destroyed = 0;
        asked.planned_at_once = false;
        asked.refuse = false;
    }
    static fft_problem of_length(std::int64_t n) {
        fft_problem problem;
        problem.transform = {{n, 1, 1}};
        return problem;
    }
    functions table;
    fftw_functions<float> none;
};

TEST_F(FftProvider, PlansOnceAndWithoutMeasuring) {
    fftw_provider provider(none, table);
    const auto first = provider.prepare(of_length(4));
    EXPECT_EQ(provider.prepare(of_length(4)), first);
    EXPECT_NE(provider.prepare(of_length(5)), first);
    EXPECT_EQ(asked.plans, 2);
    EXPECT_EQ(asked.flags, fftw_estimate | fftw_preserve_input);
    fft_problem unaligned = of_length(4);
    unaligned.aligned = false;
    EXPECT_NE(provider.prepare(unaligned), first);
    EXPECT_EQ(asked.flags, fftw_estimate | fftw_preserve_input | fftw_unaligned);
}

TEST_F(FftProvider, KeepsABoundedNumber) {
    fftw_provider provider(none, table);
    const auto held = provider.prepare(of_length(1));
    for (std::int64_t n = 1; n <= 1000; ++n) {
        static_cast<void>(provider.prepare(of_length(n)));
    }
    EXPECT_GE(asked.plans - asked.destroyed, 1);
    EXPECT_LE(asked.plans - asked.destroyed, 300);
}

TEST_F(FftProvider, PlansOneAtATimeFromSeveralThreads) {
    {
        fftw_provider provider(none, table);
        const auto prepare_all = [&] {
            for (std::int64_t n = 1; n <= 600; ++n) {
                static_cast<void>(provider.prepare(of_length(n)));
            }
        };
        std::thread other(prepare_all);
        prepare_all();
        other.join();
    }
    EXPECT_FALSE(asked.planned_at_once);
    EXPECT_EQ(asked.plans, asked.destroyed);
}

TEST_F(FftProvider, ARefusalIsAnErrorBeforeAnythingIsEnqueued) {
    fftw_provider provider(none, table);
    const replaced_fft_provider replaced(provider);
    asked.refuse = true;
    const stream on;
    array a = zeros({4}, dtype::complex128, on);
    EXPECT_THROW(static_cast<void>(fft::fft(on, a)), device_error);
    on.synchronize();
}

TEST_F(FftProvider, APlanOutlivesItsProviderWhilePending) {
    const stream on;
    array result;
    testing::gate held;
    {
        fftw_provider provider(none, table);
        const replaced_fft_provider replaced(provider);
        array a = test::make_array(on, {2}, std::vector<std::complex<double>>{1.0, 2.0});
        held.hold(on);
        result = fft::fft(on, a);
    }
    EXPECT_EQ(asked.destroyed, 0);
    held.open();
    EXPECT_EQ(test::values_of<std::complex<double>>(result), (std::vector<std::complex<double>>{1.0, 2.0}));
    while (asked.destroyed != asked.plans) {  // by the reaper, which needs the table until then
        std::this_thread::yield();
    }
}

/// FFTW's functions with the limits of MKL's: no plans for batches of several dimensions, and inverse transforms of several dimensions
/// that are not those of one dimension after the other.
namespace limited {

using plan = functions::plan;
using complex = functions::complex;

plan plan_dft(int rank, const fftw_dimension* dims, int batch_rank, const fftw_dimension* batch, complex* in,
              complex* out, int sign, unsigned flags) {
    return batch_rank > 1 ? nullptr : fftw<double>().plan_dft(rank, dims, batch_rank, batch, in, out, sign, flags);
}
plan plan_dft_r2c(int rank, const fftw_dimension* dims, int batch_rank, const fftw_dimension* batch, double* in,
                  complex* out, unsigned flags) {
    return batch_rank > 1 ? nullptr : fftw<double>().plan_dft_r2c(rank, dims, batch_rank, batch, in, out, flags);
}
plan plan_dft_c2r(int rank, const fftw_dimension* dims, int batch_rank, const fftw_dimension* batch, complex* in,
                  double* out, unsigned flags) {
    return rank > 1 || batch_rank > 1 ? nullptr
                                      : fftw<double>().plan_dft_c2r(rank, dims, batch_rank, batch, in, out, flags);
}

}  // namespace limited

using numbers = std::vector<std::complex<double>>;

/// A block of numbers that is not conjugate symmetric.
array block(const stream& on, bool is_real) {
    const shape extents{3, 4, 6, 5};
    numbers all;
    for (std::int64_t i = 0; i < extents.elements(); ++i) {
        const auto x = static_cast<double>(i);
        all.emplace_back(std::sin(1.7 * x), std::cos(0.3 * x * x));
    }
    if (!is_real) {
        return test::make_array(on, extents, all);
    }
    std::vector<double> parts;
    for (const std::complex<double>& one : all) {
        parts.push_back(one.real());
    }
    return test::make_array(on, extents, parts);
}

/// What the call gives by the provider.
numbers transformed(fft_provider& by, const std::function<array(const stream&)>& call) {
    const replaced_fft_provider used(by);
    const array x = call(stream(cpu()));
    if (is_complex(x.dtype())) {
        return test::values_of<std::complex<double>>(x);
    }
    const std::vector<double> real = test::values_of<double>(x);
    return {real.begin(), real.end()};
}

TEST(FftProviderWithLimits, ItsTransformsAreThoseOfFFTW) {
    functions some = fftw<double>();
    some.plan_dft = limited::plan_dft;
    some.plan_dft_r2c = limited::plan_dft_r2c;
    some.plan_dft_c2r = limited::plan_dft_c2r;
    some.version = "MKL";
    fftw_provider with_limits(fftw<float>(), some);
    fftw_provider without;
    const std::vector<std::function<array(const stream&)>> calls = {
        [](const stream& on) { return fft::fft(on, block(on, false), {.axes = {1}}); },
        [](const stream& on) { return fft::ifft(on, block(on, false), {.axes = {0}}); },
        [](const stream& on) {
            return fft::fftn(on, block(on, false), {.axes = {0, 2}});
        },
        [](const stream& on) {
            return fft::rfftn(on, block(on, true), {.axes = {1, 2}});
        },
        [](const stream& on) { return fft::irfft(on, block(on, false), {.axes = {2}}); },
        [](const stream& on) {
            return fft::irfftn(on, block(on, false), {.axes = {0, 2}});
        },
        [](const stream& on) { return fft::irfftn(on, block(on, false)); },
    };
    for (std::size_t call = 0; call < calls.size(); ++call) {
        const numbers got = transformed(with_limits, calls[call]);
        const numbers expected = transformed(without, calls[call]);
        ASSERT_EQ(got.size(), expected.size()) << "call " << call;
        for (std::size_t i = 0; i < got.size(); ++i) {
            ASSERT_LT(std::abs(got[i] - expected[i]), 1e-12) << "call " << call << ", element " << i;
        }
    }
}

}  // namespace
}  // namespace weir::calls
