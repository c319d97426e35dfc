// Simulated devices in the place of CUDA devices: WEIR_SIMULATE, testing::simulate_cuda. What stands for them is decided once
// for a process, so each test runs this program again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <complex>
#include <cstdio>
#include <string>
#include <vector>

#include "support/arrays.hpp"
#include "support/fake_cuda.hpp"
#include "support/messages.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using test::fake_cuda;
using test::message_of;
using test::values_of;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr std::size_t size = 64;

/// Runs the test `program` of this program with WEIR_SIMULATE set to `value`, and expects it to pass.
void run(const std::string& value, const std::string& program) {
    std::array<char, 4096> self{};
    ASSERT_GT(readlink("/proc/self/exe", self.data(), self.size() - 1), 0);
    const std::string command = "WEIR_SIMULATE='" + value + "' '" + self.data() +
                                "' --gtest_also_run_disabled_tests --gtest_filter=Simulate.DISABLED_" + program +
                                " 2>&1";
    std::FILE* const child = popen(command.c_str(), "r");
    ASSERT_NE(child, nullptr) << command;
    std::string text;
    std::array<char, 4096> part{};
    while (std::fgets(part.data(), static_cast<int>(part.size()), child) != nullptr) {
        text += part.data();
    }
    EXPECT_EQ(pclose(child), 0) << text;
    EXPECT_THAT(text, HasSubstr("[  PASSED  ] 1 test.")) << "is there such a program?";
}

/// cuda:0 is simulated.
void expect_simulated() {
    EXPECT_EQ(cuda().kind(), device_kind::sim);
    EXPECT_EQ(cuda().name(), "cuda:0");
    EXPECT_EQ(cuda().to_string(), "<weir.device cuda:0 (simulated)>");
    EXPECT_EQ(device::from_name("cuda:0"), cuda(0));
    if (fake_cuda::in_use()) {
        EXPECT_EQ(fake_cuda::calls(), 0U) << "the driver is left alone";
    }
}

array filled(device where, double value) {
    const stream s(where);
    array made = empty({size}, dtype::float64, s);
    fill(s, made, value);
    return made;
}

// --- programs ------------------------------------------------------------------------------------------------------

TEST(Simulate, DISABLED_two_devices) {
    expect_simulated();
    EXPECT_EQ(cuda(1).to_string(), "<weir.device cuda:1 (simulated)>");
    EXPECT_THAT(message_of<argument_error>([] { static_cast<void>(cuda(2)); }),
                HasSubstr("there is no device cuda:2: the simulated ones are cuda:0 to cuda:1"));
    // They are no others than these, and apart from those that a program makes itself.
    EXPECT_NE(cuda(0), cuda(1));
    EXPECT_NE(cuda(0), sim(0));
    EXPECT_NE(cuda(0).id(), cuda(1).id());
    EXPECT_NE(cuda(0).id(), sim(0).id());
    EXPECT_EQ(sim(0).to_string(), "<weir.device sim:0>");
    EXPECT_EQ(sim(15).name(), "sim:15");
    EXPECT_THROW(static_cast<void>(sim(16)), argument_error);
    std::vector<std::string> names;
    for (const device& each : devices()) {
        names.push_back(each.name());
    }
    EXPECT_THAT(names, ::testing::ElementsAre("cpu", "cpu:inline", "cuda:0", "cuda:1", "sim:0", "sim:15"));
}

TEST(Simulate, DISABLED_work) {
    expect_simulated();
    const stream first(cuda(0));
    const stream second(device::from_name("cuda:0"));
    const stream other(cuda(1));
    testing::gate gate;
    gate.hold(first);
    array x = empty({size}, dtype::float64, first);
    EXPECT_FALSE(x.buffer().host_reachable(detail::key)) << "memory of its own";
    fill(first, x, 3);
    array y = empty({size}, dtype::float64, second);
    parallel_for(
        second, x.size(),
        [](std::size_t i, std::span<const double> from, std::span<double> to) { to[i] = 2 * from[i]; },
        in(x.view<double>()), out(y.view<double>()));
    array z = empty({size}, dtype::float64, other);
    copy(other, z, y);
    EXPECT_FALSE(z.ready());
    gate.open();
    EXPECT_THAT(values_of<double>(y + x), Each(9));
    EXPECT_THAT(values_of<double>(z), Each(6));
    array transformed = fft::fft(first, x);
    EXPECT_EQ(transformed.device(), cuda(0));
    EXPECT_EQ(values_of<std::complex<double>>(transformed).front(), 3.0 * size);
    array of_host = fft::rfft(filled(cpu(), 1), {.execution = device_kind::cuda});
    EXPECT_EQ(values_of<std::complex<double>>(of_host).front(), 1.0 * size);
    array at_home = fft::fft(other, z, {.execution = device_kind::cuda});
    EXPECT_EQ(values_of<std::complex<double>>(at_home).front(), 6.0 * size) << "cuda:1 is a CUDA device as well";
}

TEST(Simulate, DISABLED_a_race) {
    const ordering_scope manual(ordering_mode::manual);
    const stream writer(cuda());
    const stream reader(cuda());
    array x = filled(cuda(), 1);
    cuda().synchronize();
    array seen = empty({size}, dtype::float64, reader);
    testing::gate gate;
    gate.hold(writer);
    fill(writer, x, 2);
    copy(reader, seen, x);
    reader.synchronize();
    gate.open();
    writer.synchronize();
    EXPECT_THAT(values_of<double>(seen), Each(1)) << "nobody ordered the two";
}

TEST(Simulate, DISABLED_a_repeatable_schedule) {
    const testing::simulated hostile(cuda(), {.seed = 7, .virtual_clock = true});
    EXPECT_THAT(values_of<double>(filled(cuda(), 5)), Each(5));
}

TEST(Simulate, DISABLED_shared_memory) {
    const stream host(cpu());
    const stream s(cuda());
    const auto make = [](const stream& where, double value, const memory::resource_ptr& from) {
        const memory::use scope(from);
        return full({size}, value, dtype::float64, where);
    };
    array pinned = make(host, 3, memory::pinned());
    EXPECT_TRUE(pinned.buffer().pinned(detail::key));
    array own = make(s, 0, nullptr);
    copy(s, own, pinned);
    EXPECT_THAT(values_of<double>(own), Each(3));
    array managed = make(s, 4, memory::managed());
    EXPECT_TRUE(managed.buffer().host_reachable(detail::key));
    {
        const host_view<double> seen = managed.write<double>();
        EXPECT_EQ(static_cast<const void*>(seen.span().data()), managed.device_data()) << "the memory itself";
        seen.span()[0] = 40;
    }
    EXPECT_EQ(values_of<double>(managed + own).front(), 43);
    EXPECT_THAT(message_of<argument_error>([&] { make(host, 0, memory::managed()); }),
                HasSubstr("managed memory is a CUDA device's"));
}

TEST(Simulate, DISABLED_code_of_a_gpu) {
    const auto expect_refusal = [](auto&& make) {
        EXPECT_THAT(message_of<argument_error>(make),
                    AllOf(HasSubstr("cannot be made for cuda:0, which is simulated"), HasSubstr("need a GPU"),
                          HasSubstr("parallel_for and host_task run on simulated devices")));
    };
    expect_refusal([] { static_cast<void>(kernel::from_source("__global__ void f() {}", "f")); });
    expect_refusal([] { static_cast<void>(kernel::from_ptx(".entry f", "f")); });
    expect_refusal([] { static_cast<void>(kernel::from_cubin(std::array{std::byte{1}}, "f")); });
    int anything = 0;
    expect_refusal([&] { static_cast<void>(kernel::from_function(&anything)); });
    EXPECT_THAT(message_of<argument_error>([&] { static_cast<void>(stream::adopt(native_stream{&anything}, cuda())); }),
                HasSubstr("cuda:0 is simulated, and has no queues that are known by a handle"));
    testing::run_host_code_on(cuda());  // it does so anyway
}

TEST(Simulate, DISABLED_says_what_is_wrong) {
    for (int twice = 0; twice < 2; ++twice) {
        EXPECT_THAT(message_of<argument_error>([] { static_cast<void>(cuda()); }),
                    HasSubstr(": say how many CUDA devices are simulated, cuda:1 to cuda:16"));
        EXPECT_THAT(message_of<argument_error>([] { static_cast<void>(devices()); }), HasSubstr("WEIR_SIMULATE="));
        EXPECT_THAT(message_of<argument_error>([] { static_cast<void>(device::from_name("cuda:0")); }),
                    HasSubstr("WEIR_SIMULATE="));
    }
    EXPECT_EQ(cpu().name(), "cpu") << "who uses no CUDA device is not disturbed";
    testing::simulate_cuda(1);
    expect_simulated();
}

TEST(Simulate, DISABLED_the_driver) {
    EXPECT_EQ(cuda().kind(), device_kind::cuda);
    EXPECT_EQ(cuda().to_string(), "<weir.device cuda:0>");
    EXPECT_THAT(message_of<state_error>([] { testing::simulate_cuda(1); }),
                AllOf(HasSubstr("comes too late"), HasSubstr("uses the real CUDA devices already")));
    EXPECT_EQ(cuda().kind(), device_kind::cuda);
}

TEST(Simulate, DISABLED_by_function) {
    for (const int wrong : {0, -1, 17}) {
        EXPECT_THAT(message_of<argument_error>([&] { testing::simulate_cuda(wrong); }), HasSubstr("cuda:1 to cuda:16"));
    }
    testing::simulate_cuda(3);
    expect_simulated();
    testing::simulate_cuda(3);
    EXPECT_THAT(message_of<state_error>([] { testing::simulate_cuda(2); }), HasSubstr("uses 3 simulated ones already"));
    EXPECT_EQ(cuda(2).name(), "cuda:2");
}

// --- what they are run with ----------------------------------------------------------------------------------------

TEST(Simulate, DevicesStandForThoseOfCuda) { run("cuda:2", "two_devices"); }
TEST(Simulate, TheyDoWhatDevicesDo) { run("cuda:2", "work"); }
TEST(Simulate, ControlARaceIsOneThereToo) { run("cuda:1", "a_race"); }
TEST(Simulate, TheyCanBeMadeRepeatable) { run("cuda:1", "a_repeatable_schedule"); }
TEST(Simulate, TheyReachPinnedAndManagedMemory) { run("cuda:1", "shared_memory"); }
TEST(Simulate, CodeForAGpuIsRefusedThere) { run("cuda:16", "code_of_a_gpu"); }
TEST(Simulate, OtherValuesAreErrorsAtTheFirstUse) {
    for (const char* const wrong :
         {"foo", "cuda", "cuda:", "cuda:0", "cuda:17", "cuda:99", "cuda:-1", "cuda:1x", "sim:1"}) {
        run(wrong, "says_what_is_wrong");
    }
}
TEST(Simulate, ControlWithoutItDevicesAreTheDrivers) { run("", "the_driver"); }
TEST(Simulate, AFunctionDoesTheSame) {
    run("", "by_function");
    run("cuda:1", "by_function");
}

}  // namespace
}  // namespace weir
