// Scenarios E1, E5 and E8 for transforms: where they run, when their calls block, and which streams they refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "support/arrays.hpp"
#include "support/call_listener.hpp"
#include "support/devices.hpp"
#include "support/stuck_host.hpp"
#include "weir/error.hpp"
#include "weir/fft.hpp"
#include "weir/memory.hpp"

namespace weir {
namespace {

using test::make_array;
using test::stuck_host;
using test::values_of;
using test::waits_of;
using ::testing::AllOf;
using ::testing::HasSubstr;
using complex = std::complex<double>;
using numbers = std::vector<complex>;

const numbers signal = {1, 2, 3, 4};
const numbers spectrum = {10, {-2, 2}, -2, {-2, -2}};

struct route {
    device home;
    device computing;
    friend void PrintTo(const route& r, std::ostream* out) { *out << r.home.name() << " by " << r.computing.name(); }
};

/// Operands on one device, execution on another.
class E1 : public ::testing::TestWithParam<route> {
protected:
    const device home = GetParam().home;
    const device computing = GetParam().computing;
    const stream here{home};
    const stream there{computing};
    array a = make_array(here, {4}, signal);

    [[nodiscard]] fft::options elsewhere() const {
        fft::options how;
        how.execution = computing;
        return how;
    }
    /// Changes the operand while other work may still use it.
    void scribble() {
        if (home == cpu()) {
            std::memset(a.data(), 0xff, a.nbytes());
            return;
        }
        const ordering_scope careless(ordering_mode::manual);
        const stream other(home);
        fill(other, a, -1.0);
        other.synchronize();
    }
};

INSTANTIATE_TEST_SUITE_P(OperandsOn, E1,
                         ::testing::Values(route{cpu(), sim(0)}, route{sim(0), cpu()}, route{sim(0), sim(1)}),
                         [](const auto& about) {
                             std::string name = about.param.home.name() + "By" + about.param.computing.name();
                             std::erase(name, ':');
                             return name;
                         });

TEST_P(E1, TheOperandMayBeChangedAtOnceAfterTheCall) {
    here.synchronize();
    array y = fft::fft(there, a, elsewhere());
    scribble();
    EXPECT_EQ(values_of<complex>(y), spectrum);
    EXPECT_EQ(y.device(), home) << "results come back";
}

TEST_P(E1, TheOperandMayBeChangedAtOnceAfterExecute) {
    here.synchronize();
    fft_plan f(a, elsewhere());
    f.plan(there);
    array y = f.execute(there, fft_direction::forward);
    scribble();
    EXPECT_EQ(values_of<complex>(y), spectrum);
}

WEIR_CONFORMANCE(E1Control, WhereTheCallDoesNotBlockSuchAChangeIsSeen) {
    const stream s(test::here());
    array a = make_array(s, {4}, signal);
    s.synchronize();
    testing::gate held;
    held.hold(s);
    array y = fft::fft(s, a);
    {
        const ordering_scope careless(ordering_mode::manual);
        const stream other(test::here());
        fill(other, a, -1.0).synchronize();
    }
    held.open();
    EXPECT_NE(values_of<complex>(y), spectrum);
}

TEST_P(E1, TheCallBlocksUntilTheResultIsBack) {
    here.synchronize();
    testing::gate held;
    held.hold(there);
    const test::call_listener heard;
    const stuck_host waits([&] { held.open(); });
    array y = fft::fft(there, a, elsewhere());
    EXPECT_TRUE(waits.was_stuck());
    EXPECT_TRUE(y.ready());
    EXPECT_EQ(heard.devices(), std::vector<std::string>(3, computing.name()));
    EXPECT_TRUE(heard.waited_for_last());
}

TEST_P(E1, EarlierWorkOnOtherStreamsIsWaitedForOnTheDevice) {
    testing::gate held;
    held.hold(here);
    fill(here, a, 2.0);
    const test::call_listener heard;
    std::thread opener([&] {
        heard.wait_for_operations(3);
        held.open();
    });
    array y = fft::fft(there, a, elsewhere());
    EXPECT_EQ(values_of<complex>(y), (numbers{8, 0, 0, 0}));
    EXPECT_EQ(heard.waits(), 1);
    opener.join();
}

TEST_P(E1, EveryKindOfTransformGoesThereAndBack) {
    array y = fft::fft(there, a, elsewhere());
    EXPECT_EQ(values_of<complex>(y), spectrum);
    EXPECT_EQ(values_of<complex>(fft::ifftn(there, y, elsewhere())), signal);
    EXPECT_EQ(values_of<double>(fft::irfft(there, y, elsewhere())).size(), 6U);
    array real = make_array(here, {2, 2}, std::vector<double>{1, 2, 3, 4});
    EXPECT_EQ(values_of<complex>(fft::rfftn(there, real, elsewhere())), (numbers{10, -2, -4, 0}));
    EXPECT_EQ(values_of<double>(fft::irfftn(there, fft::rfftn(there, real, elsewhere()), elsewhere())),
              (std::vector<double>{1, 2, 3, 4}));
    array out = zeros({4}, dtype::complex128, here);
    fft::fft(there, a, out, elsewhere());
    EXPECT_EQ(values_of<complex>(out), spectrum);
    fft::fft(there, a, a, elsewhere());
    EXPECT_EQ(values_of<complex>(a), spectrum) << "in place";
    EXPECT_EQ(values_of<complex>(fft::ifft(a, elsewhere())), signal) << "on the current stream of the device";
}

TEST_P(E1, NothingIsKeptThere) {
    here.synchronize();
    const std::size_t held = memory::stats(computing).live;
    fft_plan f(a, elsewhere());
    f.plan(there);
    static_cast<void>(f.execute(there, fft_direction::forward));
    static_cast<void>(fft::fft(there, a, elsewhere()));
    EXPECT_EQ(memory::stats(computing).live, held);
}

WEIR_CONFORMANCE(E5, TheHostWaitsAsOftenAsTheBlockingModeSays) {
    const device other = test::here() == cpu() ? sim(0) : cpu();
    const stream s(test::here());
    const stream far(other);
    array a = make_array(s, {4}, signal);
    array out = zeros({4}, dtype::complex128, s);
    struct mode {
        bool elsewhere;
        call_blocking blocking;
        int waits;
    };
    for (const mode& m : {mode{false, call_blocking::automatic, 0}, mode{false, call_blocking::always, 1},
                          mode{true, call_blocking::automatic, 1}, mode{true, call_blocking::always, 1}}) {
        SCOPED_TRACE(std::string(m.elsewhere ? "elsewhere" : "here") + " " +
                     (m.blocking == call_blocking::always ? "always" : "automatic"));
        const stream& on = m.elsewhere ? far : s;
        fft::options how;
        how.blocking = m.blocking;
        if (m.elsewhere) {
            how.execution = other;
        }
        EXPECT_EQ(waits_of([&] { static_cast<void>(fft::fft(on, a, how)); }), m.waits);
        EXPECT_EQ(waits_of([&] { static_cast<void>(fft::ifftn(a, how)); }), m.waits);
        EXPECT_EQ(waits_of([&] { fft::fft(on, a, out, how); }), m.waits);
        array none = zeros({0, 4}, dtype::complex128, s);
        EXPECT_EQ(waits_of([&] { static_cast<void>(fft::fft(s, none, {.blocking = m.blocking})); }), 0)
            << "nothing to wait for";
        fft_plan f(a, how);
        EXPECT_EQ(waits_of([&] { f.plan(on); }), 0);
        EXPECT_EQ(waits_of([&] { static_cast<void>(f.execute(on, fft_direction::forward)); }), m.waits);
        EXPECT_EQ(waits_of([&] { f.execute(on, fft_direction::inverse, out); }), m.waits);
        EXPECT_EQ(waits_of([&] {
                      f.reset_operand(out);
                      f.release_operand();
                      f.free();
                  }),
                  0);
    }
}

WEIR_CONFORMANCE(E5, ACallThatBlocksReturnsAfterTheWork) {
    const stream s(test::here());
    array a = make_array(s, {4}, signal);
    s.synchronize();
    testing::gate held;
    held.hold(s);
    const stuck_host waits([&] { held.open(); });
    array y = fft::fft(s, a, {.blocking = call_blocking::always});
    EXPECT_TRUE(waits.was_stuck());
    EXPECT_TRUE(y.ready());
}

TEST(S8, OnADeviceWithoutQueuesTheWorkIsOverWhenTheCallReturns) {
    const stream now(cpu_inline());
    const stream later;
    array a = make_array(later, {4}, signal);
    array y = fft::fft(now, a);
    EXPECT_TRUE(y.ready());
    EXPECT_EQ(values_of<complex>(y), spectrum);
    fft::options how;
    how.execution = device_kind::cpu_inline;
    const test::call_listener heard;
    array z = fft::fft(a, how);
    EXPECT_TRUE(z.ready());
    EXPECT_EQ(heard.devices(), std::vector<std::string>(1, "cpu:inline")) << "the same memory: nothing is copied";
    EXPECT_EQ(values_of<complex>(z), spectrum);
}

/// The text of the error that is thrown.
template <class Call>
std::string argument_error_of(Call&& call) {
    try {
        call();
    } catch (const argument_error& thrown) {
        return thrown.what();
    }
    return "no argument_error";
}

/// The operand lies on the CPU, the stream is one of `other`.
void expect_streams_to_be_refused(const device& other) {
    const std::string name = other.name();
    const stream host(cpu(), {0, "host"});
    const stream far(other, {0, "far"});
    array a = make_array(host, {4}, signal);
    fft_plan f(a);
    for (const auto& call :
         {std::function<void()>([&] { static_cast<void>(fft::fft(far, a)); }),
          std::function<void()>([&] { fft::fft(far, a, a); }), std::function<void()>([&] { f.plan(far); })}) {
        EXPECT_THAT(argument_error_of(call),
                    AllOf(HasSubstr("the stream \"far\" is one of " + name + ", but the operand lies on cpu"),
                          HasSubstr("pass a stream of cpu, or " + name + " as execution")));
    }
    f.plan(host);
    EXPECT_THAT(argument_error_of([&] { static_cast<void>(f.execute(far, fft_direction::forward)); }),
                HasSubstr("pass a stream of cpu"));
    fft::options elsewhere;
    elsewhere.execution = other;
    EXPECT_THAT(argument_error_of([&] { static_cast<void>(fft::fft(host, a, elsewhere)); }),
                HasSubstr("the stream \"host\" is one of cpu, but execution is on " + name + "; pass a stream of " +
                          name + ", or none"));
    array out = zeros({4}, dtype::complex128, far);
    EXPECT_THAT(argument_error_of([&] { fft::fft(host, a, out); }),
                HasSubstr("the operand lies on cpu, the array for the result on " + name + "; give one on cpu"));
    EXPECT_THAT(argument_error_of([&] { f.reset_operand(out); }),
                HasSubstr("operands on cpu, the new one lies on " + name));
}

TEST(E8, AStreamOfAnotherDeviceIsRefusedWithWhatToPass) { expect_streams_to_be_refused(sim(0)); }

TEST(E8, AStreamOfACudaDeviceIsRefusedWithWhatToPass) {
    std::string why_not;
    const std::optional<device> cuda = test::find_device("cuda:0", why_not);
    if (!cuda) {
        GTEST_SKIP() << why_not;
    }
    expect_streams_to_be_refused(*cuda);
}

TEST(E8, AKindOfDeviceIsTheStreamsIfItIsOfThatKind) {
    const stream far(sim(1));
    array a = make_array(current_stream(), {4}, signal);
    fft::options elsewhere;
    elsewhere.execution = device_kind::sim;
    const test::call_listener heard;
    EXPECT_EQ(values_of<complex>(fft::fft(far, a, elsewhere)), spectrum);
    EXPECT_EQ(heard.devices(), std::vector<std::string>(3, "sim:1"));
    EXPECT_EQ(values_of<complex>(fft::fft(a, elsewhere)), spectrum);
    EXPECT_EQ(heard.devices().back(), "sim:0") << "the first of the kind";
    elsewhere.execution = device_kind::cpu;
    EXPECT_EQ(values_of<complex>(fft::fft(a, elsewhere)), spectrum);
    EXPECT_EQ(heard.devices().size(), 7U) << "where it lies already: one operation";
}

}  // namespace
}  // namespace weir
