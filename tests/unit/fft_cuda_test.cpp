// Transforms on CUDA devices: how cuFFT is used, and what happens if it fails. The tests of axes, lengths and strides check the
// results on every device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <complex>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "backend/cuda/api/driver_api.hpp"
#include "backend/cuda/device/context.hpp"
#include "backend/cuda/device/driver.hpp"
#include "calls/fft/cufft_library.hpp"
#include "runtime/devices/device_state.hpp"
#include "support/arrays.hpp"
#include "support/devices.hpp"
#include "support/fake_cuda.hpp"
#include "support/fake_cufft.hpp"
#include "support/messages.hpp"
#include "weir/testing.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using test::fake_cuda;
using test::fake_cufft;
using test::make_array;
using test::message_of;
using test::values_of;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using complex = std::complex<double>;
using numbers = std::vector<complex>;

/// Tests reset what they change in the fake library.
class FftOnCuda : public ::testing::Test {
protected:
    void SetUp() override {
        if (!fake_cuda::in_use()) {
            GTEST_SKIP() << "the test tells the fake driver and the fake cuFFT what to do";
        }
        mistakes_ = fake_cufft::mistakes();
    }
    void TearDown() override {
        cuda().synchronize();
        if (fake_cuda::in_use()) {
            EXPECT_EQ(fake_cufft::mistakes(), mistakes_);
            fake_cufft::set_workspace(0);
        }
    }

    /// An array on the device, of a length that no other test has: its plan is not made yet.
    [[nodiscard]] array fresh() const {
        static std::int64_t n = 100;
        return full(++n, 1, dtype::complex128, s1);
    }
    [[nodiscard]] array signal() const { return to(s1, make_array(host, {4}, numbers{1, 2, 3, 4}), cuda()); }

    stream host{cpu()};
    stream s1{cuda()};
    stream s2{cuda()};
    const numbers spectrum{10, {-2, 2}, -2, {-2, -2}};
    unsigned long long mistakes_ = 0;
};

TEST_F(FftOnCuda, IsOneCallOfTheLibrary) {
    array a = signal();
    const unsigned long long before = fake_cufft::calls("cufftExecZ2Z");
    array b = fft::fft(s1, a);
    EXPECT_EQ(b.device(), cuda());
    EXPECT_EQ(values_of<complex>(b), spectrum);
    EXPECT_EQ(fake_cufft::calls("cufftExecZ2Z"), before + 1);
    EXPECT_EQ(values_of<complex>(a), (numbers{1, 2, 3, 4})) << "the operand must stay as it is";
}

TEST_F(FftOnCuda, ReturnsBeforeTheWorkIsDoneAndIsOrdered) {
    array a = signal();
    static_cast<void>(values_of<complex>(fft::fft(s1, a)));  // makes the plan
    testing::gate held;
    held.hold(s1);
    fill(s1, a, 2);
    array b = fft::fft(s1, a);
    array c = fft::ifft(s2, b);
    a = {};
    b = {};
    EXPECT_FALSE(c.ready());
    const stream s3(cuda());
    EXPECT_EQ(values_of<complex>(fft::fft(s3, full(4, 1, dtype::complex128, s3)))[0], complex(4))
        << "control: what needs no ordering does not wait";
    held.open();
    EXPECT_EQ(values_of<complex>(c), numbers(4, 2.0));
}

TEST_F(FftOnCuda, ControlWithoutOrderingTheResultIsReadTooEarly) {
    array a = signal();
    array b = full(4, 7, dtype::complex128, s1);
    array c = full(4, 0, dtype::complex128, s1);
    fft::fft(s1, a, b);
    fill(s1, b, 7);
    cuda().synchronize();
    const ordering_scope careless(ordering_mode::manual);
    testing::gate held;
    held.hold(s1);
    fft::fft(s1, a, b);
    fft::fft(s2, b, c);
    s2.synchronize();
    held.open();
    s1.synchronize();
    EXPECT_EQ(values_of<complex>(c)[0], complex(28));
}

TEST_F(FftOnCuda, OnePlanOnTwoStreamsHasAWorkspaceForEach) {
    fake_cufft::set_workspace(1000);
    array a = fresh();
    fft_plan f(a);
    f.plan(s1);
    EXPECT_GE(f.workspace_bytes(), 1000U);
    array x = f.execute(s1, fft_direction::forward);
    array y = f.execute(s2, fft_direction::forward);  // after the first: they share the plan's workspace
    array z = fft::fft(s2, a);                        // has a workspace of its own
    EXPECT_EQ(values_of<complex>(x), values_of<complex>(y));
    EXPECT_EQ(values_of<complex>(x), values_of<complex>(z));
}

/// Calls of the library except executions.
unsigned long long settings() { return fake_cufft::calls("cufftSetStream") + fake_cufft::calls("cufftSetWorkArea"); }

TEST_F(FftOnCuda, APlanExecutedAgainIsOneCallOfTheLibrary) {
    fake_cufft::set_workspace(1000);
    array a = fresh();
    const complex sum(static_cast<double>(a.size()));
    array out = full(a.size(), 0, dtype::complex128, s1);
    fft_plan f(a);
    f.plan(s1);
    f.execute(s1, fft_direction::forward, out);
    const unsigned long long executed = fake_cufft::calls("cufftExecZ2Z");
    const unsigned long long set = settings();
    for (int i = 0; i < 3; ++i) {
        fill(s1, out, 0);
        f.execute(s1, fft_direction::forward, out);
        EXPECT_EQ(values_of<complex>(out)[0], sum);
    }
    EXPECT_EQ(fake_cufft::calls("cufftExecZ2Z"), executed + 3);
    EXPECT_EQ(settings(), set);
}

TEST_F(FftOnCuda, APlanExecutedAgainElsewhereNoticesIt) {
    fake_cufft::set_workspace(1000);
    array a = fresh();
    const complex sum(static_cast<double>(a.size()));
    array twice = full(a.size(), 2, dtype::complex128, s1);
    array out = full(a.size(), 0, dtype::complex128, s1);
    array other = full(a.size(), 0, dtype::complex128, s1);
    fft_plan f(a);
    f.plan(s1);
    const auto execute = [&](const stream& s, array& into, const fft_execution& how = {}) {
        fill(s, into, 0);
        f.execute(s, fft_direction::forward, into, how);
        return values_of<complex>(into)[0];
    };
    EXPECT_EQ(execute(s1, out), sum);
    EXPECT_EQ(execute(s1, other), sum) << "another result";
    EXPECT_EQ(values_of<complex>(out)[0], sum);
    EXPECT_EQ(execute(s2, other), sum) << "another stream";
    f.reset_operand(twice);
    EXPECT_EQ(execute(s2, other), 2.0 * sum) << "another operand";
    EXPECT_EQ(execute(s2, other, {.release_workspace = true}), 2.0 * sum);
    EXPECT_EQ(f.workspace_bytes(), 0U);
    const buffer taken(1000, s2);  // likely where the workspace was
    EXPECT_EQ(execute(s2, other), 2.0 * sum) << "another workspace";
    EXPECT_GE(f.workspace_bytes(), 1000U);
    f.reset_operand(a);
    f.execute(s2, fft_direction::inverse, other);
    EXPECT_LT(std::abs(values_of<complex>(other)[0] - complex(1)), 1e-12) << "the other way";
    EXPECT_EQ(execute(s2, other), sum);
    f.execute(s2, fft_direction::forward, a);  // in place
    EXPECT_EQ(values_of<complex>(a)[0], sum);
    f.execute(s2, fft_direction::inverse, a);
    EXPECT_LT(std::abs(values_of<complex>(a)[0] - complex(1)), 1e-12);
}

TEST_F(FftOnCuda, ThePlansWorkspaceOrdersItsExecutions) {
    fake_cufft::set_workspace(1000);
    array a = fresh();
    fft_plan f(a);
    f.plan(s1);
    s1.synchronize();
    testing::gate held;
    held.hold(s1);
    array x = f.execute(s1, fft_direction::forward);
    array y = f.execute(s2, fft_direction::forward);
    const stream s3(cuda());
    array z = fft::fft(s3, a);
    EXPECT_EQ(values_of<complex>(z)[0], complex(static_cast<double>(a.size()))) << "control: its own workspace";
    EXPECT_FALSE(y.ready());
    held.open();
    EXPECT_EQ(values_of<complex>(y)[0], complex(static_cast<double>(a.size())));
}

TEST_F(FftOnCuda, TheWorkspaceCountsTowardsTheLimit) {
    fake_cufft::set_workspace(1000);
    array a = fresh();
    fft::options how;
    how.memory_limit = 999;
    EXPECT_THAT(message_of<out_of_memory>([&] { static_cast<void>(fft::fft(s1, a, how)); }),
                AllOf(HasSubstr("fft needs 1000 bytes on cuda:0"), HasSubstr("its memory limit is 999 bytes")));
    how.memory_limit = 1000;
    EXPECT_EQ(values_of<complex>(fft::fft(s1, a, how))[0], complex(static_cast<double>(a.size())));
}

TEST_F(FftOnCuda, PlansAreMadeOnceAndOutliveNothing) {
    array a = fresh();
    const unsigned long long made = fake_cufft::calls("cufftMakePlanMany64");
    static_cast<void>(fft::fft(s1, a));
    static_cast<void>(fft::ifft(s2, a));
    static_cast<void>(fft::fft(s1, a));
    EXPECT_EQ(fake_cufft::calls("cufftMakePlanMany64"), made + 1) << "for both directions";
    // More layouts than are kept: those that are dropped are destroyed, but not while their work is pending.
    testing::gate held;
    held.hold(s1);
    array pending = fft::fft(s1, a);
    for (std::int64_t n = 1000; n < 1300; ++n) {
        fft_plan one(full(n, 1, dtype::complex64, s2));
        one.plan(s2);
    }
    EXPECT_LE(fake_cufft::plans(), 300U);
    held.open();
    EXPECT_EQ(values_of<complex>(pending)[0], complex(static_cast<double>(a.size())));
}

TEST_F(FftOnCuda, ThreadsExecuteOnePlanAtOnce) {
    array a = fresh();
    const complex sum(static_cast<double>(a.size()));
    s1.synchronize();
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
            const stream own(cuda());
            for (int k = 0; k < 50; ++k) {
                EXPECT_EQ(values_of<complex>(fft::fft(own, a))[0], sum);
            }
        });
    }
    for (std::thread& each : threads) {
        each.join();
    }
}

TEST_F(FftOnCuda, NoCallWaitsForAThreadThatTheDriverBlocks) {
    namespace driver = backend::cuda;
    array a = fresh();
    const complex sum(static_cast<double>(a.size()));
    array x = full(a.size(), 0, dtype::complex128, s1);
    array y = full(a.size(), 0, dtype::complex128, s2);
    static_cast<void>(values_of<complex>(fft::fft(s2, a)));  // makes the plan
    cuda().synchronize();
    driver::stream_handle queue = nullptr;
    detail::submit_work(s1, runtime::work_kind::device, detail::native_task{[&queue] {
                            queue = static_cast<driver::stream_handle>(detail::native_queue_handle());
                        }});
    s1.synchronize();
    array other = full(1, 0, dtype::float64, s2);
    s2.synchronize();
    const std::size_t plans = fake_cufft::plans();
    const unsigned long long calls = fake_cufft::calls("cufftExecZ2Z");
    test::fake_gate held(queue);
    {
        const driver::context& in = driver::context_of(cuda().state(detail::key).driver());
        const driver::in_context here(in);
        while (fake_cuda::pending(queue) < 1024) {
            const auto at = reinterpret_cast<std::uintptr_t>(other.device_data());
            in.expect(in.api().fill8_async(at, 0, 1, queue), "cuMemsetD8Async");
        }
    }
    std::thread blocked([&] { fft::fft(s1, a, x); });
    while (fake_cufft::calls("cufftExecZ2Z") == calls) {
        std::this_thread::yield();
    }
    // That thread is inside the library, with the plan; this thread gets another plan.
    fft::fft(s2, a, y);
    EXPECT_EQ(values_of<complex>(y)[0], sum);
    EXPECT_EQ(fake_cufft::plans(), plans + 1);
    held.open();
    blocked.join();
    EXPECT_EQ(values_of<complex>(x)[0], sum);
    fft::fft(s2, a, y);
    EXPECT_EQ(values_of<complex>(y)[0], sum);
    EXPECT_EQ(fake_cufft::plans(), plans + 1) << "both are used again";
}

TEST_F(FftOnCuda, ThereAndBack) {
    array a = make_array(host, {4}, numbers{1, 2, 3, 4});
    const unsigned long long before = fake_cufft::calls("cufftExecZ2Z");
    fft::options how;
    how.execution = device_kind::cuda;
    array b = fft::fft(a, how);
    EXPECT_EQ(b.device(), cpu());
    EXPECT_EQ(values_of<complex>(b), spectrum);
    EXPECT_EQ(fake_cufft::calls("cufftExecZ2Z"), before + 1);
    how.execution = device_kind::cpu;
    array c = fft::fft(signal(), how);
    EXPECT_EQ(c.device(), cuda());
    EXPECT_EQ(values_of<complex>(c), spectrum);
    EXPECT_EQ(fake_cufft::calls("cufftExecZ2Z"), before + 1) << "by the host's library";
}

TEST_F(FftOnCuda, APlanThatIsRefusedIsAnErrorBeforeAnythingIsEnqueued) {
    array a = fresh();
    const std::size_t plans = fake_cufft::plans();
    fft_plan f(a);
    fake_cufft::fail("cufftMakePlanMany64", 1, 5);
    EXPECT_THAT(message_of<device_error>([&] { f.plan(s1); }),
                AllOf(HasSubstr("cufftMakePlanMany64 failed (status 5, CUFFT_INTERNAL_ERROR)"), HasSubstr("driver")));
    EXPECT_THROW(static_cast<void>(f.execute(s1, fft_direction::forward)), state_error) << "it is not planned";
    fake_cufft::fail("cufftCreate", 1, 2);
    fake_cufft::fail("cufftMakePlanMany64", 1, 2);  // of the second try
    EXPECT_THAT(message_of<out_of_memory>([&] { static_cast<void>(fft::fft(s1, a)); }),
                AllOf(HasSubstr("CUFFT_ALLOC_FAILED"), HasSubstr("memory::trim")));
    fake_cufft::fail("cufftSetAutoAllocation", 1, 7);
    EXPECT_THROW(static_cast<void>(fft::fft(s1, a)), device_error);
    EXPECT_EQ(fake_cufft::plans(), plans) << "nothing is left over";
    f.plan(s1);
    EXPECT_EQ(values_of<complex>(f.execute(s1, fft_direction::forward))[0], complex(static_cast<double>(a.size())));
}

TEST_F(FftOnCuda, L6WhereTheLibraryFindsNoMemoryWeirsIsGivenBackAndItTriesAgain) {
    array a = fresh();
    { array large = empty(std::size_t{1} << 22, dtype::float64, s1); }
    s1.synchronize();
    const auto before = memory::stats(cuda()).cached;
    ASSERT_GE(before, std::size_t{1} << 25);
    fft_plan f(a);
    fake_cufft::fail("cufftMakePlanMany64", 1, 2);
    f.plan(s1);
    EXPECT_LT(memory::stats(cuda()).cached, before);
    EXPECT_EQ(values_of<complex>(f.execute(s1, fft_direction::forward))[0], complex(static_cast<double>(a.size())));
}

TEST_F(FftOnCuda, AnExecutionThatIsRefusedFailsTheOperation) {
    fake_cufft::set_workspace(64);
    array a = fresh();
    for (const char* const call : {"cufftSetStream", "cufftSetWorkArea", "cufftExecZ2Z"}) {
        fake_cufft::fail(call, 1, 6);
        array broken = fft::fft(s1, a);
        EXPECT_THAT(message_of<operation_error>([&] { static_cast<void>(values_of<complex>(broken)); }),
                    AllOf(HasSubstr(std::string(call) + " failed (status 6, CUFFT_EXEC_FAILED)"), HasSubstr("fft")))
            << call;
        EXPECT_EQ(values_of<complex>(fft::fft(s2, a))[0], complex(static_cast<double>(a.size())))
            << "others are not touched";
    }
}

TEST_F(FftOnCuda, ControlTheFakeFindsPlansThatAreMisused) {
    namespace driver = backend::cuda;
    const driver::context& in = driver::context_of(cuda().state(detail::key).driver());
    const driver::in_context here(in);
    const calls::cufft_functions& f = calls::cufft(13000);
    array a = full(4, 1, dtype::complex128, s1);
    s1.synchronize();
    driver::stream_handle raw = nullptr;
    in.expect(in.api().stream_create(&raw, driver::stream_non_blocking, 0), "cuStreamCreate");
    calls::cufft_handle plan = 0;
    calls::expect_cufft(f.create(&plan), "cufftCreate");
    f.set_auto_allocation(plan, 0);
    long long n = 4;
    std::size_t bytes = 0;
    calls::expect_cufft(f.make_plan_many(plan, 1, &n, &n, 1, n, &n, 1, n, calls::cufft_type::z2z, 1, &bytes),
                        "cufftMakePlanMany64");
    f.set_stream(plan, raw);
    const auto execute = [&] { return f.execute_z2z(plan, a.device_data(), a.device_data(), calls::cufft_forward); };
    EXPECT_EQ(execute(), 0);
    EXPECT_EQ(fake_cufft::mistakes(), mistakes_);
    in.api().stream_synchronize(raw);
    f.set_stream(plan, raw);
    std::thread([&] {
        const driver::in_context there(in);
        f.set_stream(plan, nullptr);
    }).join();
    EXPECT_EQ(execute(), 0);
    in.api().stream_synchronize(nullptr);
    EXPECT_EQ(fake_cufft::mistakes(), ++mistakes_) << "another thread had set another stream meanwhile";
    f.set_stream(plan, raw);
    in.api().stream_synchronize(raw);
    {
        const test::fake_gate held(raw);
        EXPECT_EQ(execute(), 0);
        EXPECT_EQ(f.destroy(plan), 0);
        EXPECT_EQ(fake_cufft::mistakes(), ++mistakes_) << "destroyed while its work was pending";
    }
    in.api().stream_synchronize(raw);
    in.api().stream_destroy(raw);
}

TEST(CufftLibrary, EveryStatusHasANameAndAMend) {
    for (int status = 1; status <= 20; ++status) {
        const auto text = [&] {
            try {
                calls::expect_cufft(status, "cufftExecC2C");
            } catch (const error& thrown) {
                return std::string(thrown.what());
            }
            return std::string("nothing thrown");
        }();
        EXPECT_THAT(text, HasSubstr("cufftExecC2C failed (status " + std::to_string(status) + ", CUFFT_"));
        EXPECT_GT(text.size(), text.find("): ") + 20);
    }
    EXPECT_NO_THROW(calls::expect_cufft(0, "cufftExecC2C"));
    EXPECT_THAT(message_of<device_error>([] { calls::expect_cufft(99, "cufftCreate"); }), HasSubstr("status 99)"));
}

/// In a process of its own, whose library is not opened yet.
void transform_without(const char* library) {
    ::setenv("WEIR_CUFFT_LIBRARY", library, 1);
    const stream s(cuda());
    array a = full(4, 1, dtype::complex128, s);
    try {
        static_cast<void>(fft::fft(s, a));
    } catch (const missing_library& thrown) {
        std::fprintf(stderr, "%s", thrown.what());
        std::_Exit(3);
    }
    std::_Exit(0);
}

TEST(CufftLibraryDeathTest, AMissingOneIsNamedWithWhatToInstall) {
    ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
    EXPECT_EXIT(transform_without("/there/is/no/such/file.so"), ::testing::ExitedWithCode(3),
                "cannot open /there/is/no/such/file.so, which WEIR_CUFFT_LIBRARY names");
    EXPECT_EXIT(transform_without("libm.so.6"), ::testing::ExitedWithCode(3),
                "libm.so.6 has no function cufftCreate: it is not cuFFT");
    const bool has_toolkit = std::filesystem::exists("/usr/local/cuda");  // it may have cuFFT
    if (std::getenv("WEIR_LIBRARY_PATH") == nullptr && !has_toolkit && fake_cuda::in_use()) {
        EXPECT_EXIT(transform_without(""), ::testing::ExitedWithCode(3), "cannot find cuFFT.*install.*nvidia-cufft");
    }
    const char* const there = std::getenv("WEIR_CUFFT_LIBRARY");
    EXPECT_EXIT(transform_without(there != nullptr ? there : ""), ::testing::ExitedWithCode(0), "")
        << "control: with the library";
}

/// In a process of its own, whose compiler is not opened yet.
[[noreturn]] void plan_without_compiler() {
    ::setenv("WEIR_NVRTC_LIBRARY", "/there/is/no/such/file.so", 1);
    const stream s(cuda());
    array a = zeros(4, dtype::complex128, s);
    fft_plan f(a);
    f.plan(s);
    if (values_of<complex>(f.execute(s, fft_direction::forward)) != std::vector<complex>(4)) {
        std::_Exit(1);
    }
    try {
        static_cast<void>(f.execute(s, fft_direction::inverse));
    } catch (const missing_library& thrown) {
        std::fprintf(stderr, "%s", thrown.what());
        std::_Exit(3);
    }
    std::_Exit(0);
}

TEST(FftCompilerDeathTest, APlanNeedsNoCompilerUntilItsInverseIsExecuted) {
    ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
    EXPECT_EXIT(plan_without_compiler(), ::testing::ExitedWithCode(3),
                "cannot open /there/is/no/such/file.so, which WEIR_NVRTC_LIBRARY names");
}

TEST(FftOnCudaDevices, EachHasPlansOfItsOwn) {
    std::string why_not;
    const std::optional<device> other = test::find_device("cuda:1", why_not);
    if (!other) {
        GTEST_SKIP() << why_not;
    }
    const unsigned long long mistakes = fake_cuda::in_use() ? fake_cufft::mistakes() : 0;
    const stream host(cpu());
    const std::vector<stream> streams{stream(cuda()), stream(*other)};
    for (int i = 0; i < 2; ++i) {
        for (const stream& s : streams) {
            array x = to(s, make_array(host, {4}, numbers{1, 2, 3, 4}), s.device());
            EXPECT_EQ(values_of<complex>(fft::fft(s, x)), (numbers{10, {-2, 2}, -2, {-2, -2}}));
        }
    }
    EXPECT_EQ(fake_cuda::in_use() ? fake_cufft::mistakes() : 0, mistakes);
}

}  // namespace
}  // namespace weir
