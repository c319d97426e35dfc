// A simulated accelerator's memory is separate: which accesses reach it and which do not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "support/arrays.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using test::make_array;
using test::values_of;
using ::testing::HasSubstr;

std::vector<double> ramp(std::size_t count) {
    std::vector<double> values(count);
    std::iota(values.begin(), values.end(), 1);
    return values;
}

/// The message that a call throws; empty if it throws nothing.
template <class Error, class Call>
std::string message_of(Call&& call) {
    try {
        call();
    } catch (const Error& thrown) {
        return thrown.what();
    }
    return {};
}

TEST(SimMemory, DevicesHaveNamesAndTheListSaysWhichThereAre) {
    EXPECT_EQ(sim(3).name(), "sim:3");
    EXPECT_EQ(sim(3).id(), 3);
    EXPECT_EQ(sim(3).kind(), device_kind::sim);
    EXPECT_EQ(sim(3), sim(3));
    EXPECT_NE(sim(3), sim(4));
    EXPECT_EQ(device::from_name("cpu"), cpu());
    EXPECT_EQ(device::from_name("sim:4"), sim(4));
    const std::vector<device> all = devices();
    EXPECT_EQ(all.front(), cpu());
    EXPECT_NE(std::find(all.begin(), all.end(), sim(3)), all.end());
    EXPECT_EQ(std::find_if(all.begin(), all.end(), [](const device& one) { return one.name() == "sim:15"; }), all.end())
        << "a device that nobody asked for";
    for (const char* const wrong : {"", "sim", "sim:", "sim:16", "sim:-1", "sim:1x", "gpu"}) {
        EXPECT_THAT(message_of<argument_error>([&] { static_cast<void>(device::from_name(wrong)); }),
                    HasSubstr("\"cpu\""))
            << wrong;
    }
    EXPECT_THROW(static_cast<void>(sim(16)), argument_error);
    EXPECT_THROW(static_cast<void>(sim(-1)), argument_error);
}

TEST(SimMemory, BodiesUseItAndTheHostReadsACopy) {
    const stream s(sim(0));
    array x = make_array(s, {1000}, ramp(1000));
    EXPECT_EQ(x.device(), sim(0));
    parallel_for(
        s, x.size(), [](auto i, auto v) { v[i] *= 2; }, inout(x.view<double>()));
    array part = x.slice(10, 12);
    EXPECT_EQ(values_of<double>(part), (std::vector<double>{22, 24}));
    const host_view<const double> before = x.read<double>();
    fill(s, x, 0);
    s.synchronize();
    EXPECT_EQ(before[999], 2000) << "a copy does not change";
    EXPECT_EQ(values_of<double>(x)[999], 0);
}

TEST(SimMemory, TheHostThatReachesForItFaults) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const stream s(sim(0));
    array x = zeros({16}, dtype::float64, s);
    s.synchronize();
    ASSERT_NE(x.data(), nullptr);
    // Killed by the signal itself, or by a sanitizer that reports it.
    const auto dies = [](int status) { return !WIFEXITED(status) || WEXITSTATUS(status) != 0; };
    EXPECT_EXIT(std::memset(x.data(), 1, 8), dies, "");
    volatile std::byte* const seen = x.data();
    EXPECT_EXIT(static_cast<void>(*seen), dies, "");
    // The control: the same child without the access lives.
    EXPECT_EXIT(std::_Exit(0), ::testing::ExitedWithCode(0), "");
}

TEST(SimMemory, TheHostCannotChangeItInPlace) {
    const stream s(sim(0));
    array x = zeros({4}, dtype::float64, s);
    EXPECT_THAT(message_of<argument_error>([&] { static_cast<void>(x.write<double>()); }),
                HasSubstr("weir::copy_from_host"));
}

TEST(SimMemory, AnOperationThatDeclaresMemoryOfAnotherDeviceIsRefused) {
    const stream on_cpu;
    const stream on_sim(sim(0), {0, "far"});
    const stream on_other(sim(1));
    array here = zeros({8}, dtype::float64, on_cpu);
    array there = zeros({8}, dtype::float64, on_sim);
    bool ran = false;
    const auto launch = [&](const stream& s, const array& x) {
        parallel_for(
            on(s).label("mine"), 1, [&](auto, auto) { ran = true; }, in(x.view<double>()));
    };
    const std::string message = message_of<argument_error>([&] { launch(on_sim, here); });
    for (const char* const part : {"mine", "far", "sim:0", "memory of cpu", "weir::copy"}) {
        EXPECT_THAT(message, HasSubstr(part));
    }
    EXPECT_THROW(launch(on_cpu, there), argument_error);
    EXPECT_THROW(launch(on_other, there), argument_error);
    on_cpu.synchronize();
    on_sim.synchronize();
    on_other.synchronize();
    EXPECT_FALSE(ran);
    launch(on_sim, there);
    on_sim.synchronize();
    EXPECT_TRUE(ran);
}

TEST(SimMemory, CopiesRunOnAStreamOfEitherSideAndAreOrdered) {
    const stream on_cpu;
    const stream on_sim(sim(0));
    const stream on_other(sim(1));
    array here = make_array(on_cpu, {500}, ramp(500));
    array there = empty({500}, dtype::float64, on_sim);
    array beyond = empty({500}, dtype::float64, on_other);
    array back = empty({500}, dtype::float64, on_cpu);
    testing::gate hold;
    hold.hold(on_cpu);
    fill(on_cpu, here, 7);
    copy(on_sim, there, here);      // to the device, on its stream
    copy(on_other, beyond, there);  // from device to device
    copy(on_cpu, back, beyond);     // to the host, on the host's stream
    EXPECT_FALSE(back.ready());
    hold.open();
    EXPECT_EQ(values_of<double>(back), std::vector<double>(500, 7));
    EXPECT_THROW(copy(on_cpu, beyond, there), argument_error) << "neither side is the CPU's";
    EXPECT_THROW(copy(on_other, there, here), argument_error);
}

TEST(SimMemory, CopiesFromTheHostTakeTheSourceAsItIs) {
    const stream on_cpu;
    const stream on_sim(sim(0));
    array there = empty({300}, dtype::float64, on_sim);
    for (const stream& s : {on_sim, on_cpu}) {
        std::vector<double> source = ramp(300);
        testing::gate hold;
        hold.hold(s);
        copy_from_host(s, there, std::as_bytes(std::span(source)));
        std::fill(source.begin(), source.end(), -1);
        hold.open();
        EXPECT_EQ(values_of<double>(there), ramp(300));
        fill(on_sim, there, 0);
    }
    const stream on_other(sim(1));
    const std::vector<double> source = ramp(300);
    EXPECT_THROW(copy_from_host(on_other, there, std::as_bytes(std::span(source))), argument_error);
}

TEST(SimMemory, HostTasksMayDeclareItAndGetTheHostsAlias) {
    const stream s(sim(0));
    array x = zeros({8}, dtype::float64, s);
    array here = zeros({8}, dtype::float64);
    std::byte* seen = nullptr;
    host_task(
        s,
        [&](std::span<const double> far, std::span<double> near) {
            seen = x.data();
            EXPECT_EQ(static_cast<const void*>(far.data()), static_cast<const void*>(x.data()));
            near[0] = 5;
        },
        in(x.view<double>()), inout(here.view<double>()));
    EXPECT_EQ(values_of<double>(here)[0], 5);
    EXPECT_EQ(seen, x.data());
}

TEST(SimMemory, ThereIsOnlySoMuchOfIt) {
    const std::size_t mebibyte = std::size_t{1} << 20;
    const testing::simulated small(sim(5), {.memory = 8 * mebibyte});
    const stream s(sim(5));
    const buffer most(6 * mebibyte, s);
    EXPECT_THAT(message_of<out_of_memory>([&] { buffer(4 * mebibyte, s); }), HasSubstr("sim:5"));
    const buffer rest(mebibyte, s);
    EXPECT_TRUE(rest);
    EXPECT_EQ(memory::stats(sim(5)).limit, 8 * mebibyte);
}

}  // namespace
}  // namespace weir
