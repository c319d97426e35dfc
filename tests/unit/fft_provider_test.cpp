// How the library behind fft is used: with a table of functions of the tests' own in place of FFTW's.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "calls/fftw_provider.hpp"
#include "support/arrays.hpp"
#include "weir/error.hpp"
#include "weir/fft.hpp"
#include "weir/testing.hpp"

namespace weir::calls {
namespace {

using functions = fftw_functions<double>;

/// What the stand-in was asked for. It copies in place of transforming.
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
    const array a = zeros({4}, dtype::complex128, on);
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
        const array a = test::make_array(on, {2}, std::vector<std::complex<double>>{1.0, 2.0});
        held.hold(on);
        result = fft::fft(on, a);
    }
    EXPECT_EQ(asked.destroyed, 0);
    held.open();
    EXPECT_EQ(test::values_of<std::complex<double>>(result), (std::vector<std::complex<double>>{1.0, 2.0}));
}

}  // namespace
}  // namespace weir::calls
