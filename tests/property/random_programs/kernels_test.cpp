// The same random programs by kernels: the streams of the CUDA device run no code of the host, so that operations go into the
// driver's streams as they do in programs of its users.
#include "random_programs/kernels.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "random_programs/complete.hpp"
#include "random_programs/generate.hpp"
#include "random_programs/interpret.hpp"
#include "random_programs/oracle.hpp"
#include "random_programs/settings.hpp"
#include "random_programs/shrink.hpp"
#include "random_programs/strip.hpp"
#include "runtime/devices/device_state.hpp"
#include "support/fake_cuda.hpp"
#include "weir/error.hpp"
#include "weir/weir.hpp"

namespace random_programs {
namespace {

/// Up to two CUDA devices of this machine, with their kernels; none if there are none, and `why_not` says why.
std::vector<kernels> find_kernels(std::string& why_not) {
    std::vector<kernels> found;
    try {
        found.emplace_back(weir::device::from_name("cuda:0"));
        found.emplace_back(weir::device::from_name("cuda:1"));
    } catch (const weir::device_error& why) {  // the driver cannot be used
        why_not = why.what();
    } catch (const weir::argument_error& why) {  // or it has fewer devices
        why_not = why.what();
    }
    return found;
}

/// The program without what kernels cannot do, which is to fail, and without what the host cannot do with memory that it does
/// not reach: a program of one device has the CUDA device to itself.
program for_kernels(program raw) {
    raw.has_host = raw.devices > 1;
    for (auto& phase : raw.phases) {
        for (auto& steps : phase) {
            for (step& one : steps) {
                one.fails = false;
                one.how = one.how == form::host_task && !raw.has_host ? form::access : one.how;
            }
        }
    }
    return raw;
}

/// A program of several devices uses the CUDA device beside the CPU, and copies between the two and a third.
outcome run_completed(const program& completed, const std::vector<kernels>& by, const weir::device& third,
                      bool racing = false) {
    const weir::device cuda = by.front().device();
    return run(
        completed, expected(completed),
        {.racing = racing,
         .by_kernels = by,
         .on = completed.devices == 1 ? std::array{cuda, weir::sim(14), third} : std::array{weir::cpu(), cuda, third}});
}

/// The smallest program found that also goes wrong.
std::string smallest(const program& raw, const std::vector<kernels>& by, const weir::device& third) {
    const program found = complete(shrink(raw, [&](const program& smaller) {
        const program completed = complete(smaller);
        return !run_completed(completed, by, third).ok() || !run_completed(completed, by, third).ok();
    }));
    const outcome again = run_completed(found, by, third);
    return "smallest program found (" + (again.ok() ? "right this time" : again.wrong) + "):\n" + to_string(found);
}

void expect_no_code_of_the_host(const std::vector<kernels>& by) {
    for (const kernels& one : by) {
        EXPECT_FALSE(one.device().state(weir::detail::key).driver().runs_host_code()) << one.device().name();
    }
}

TEST(random_kernels, compute_what_the_serial_program_computes) {
    const char* const name = "random_kernels.compute_what_the_serial_program_computes";
    std::string why_not;
    const std::vector<kernels> by = find_kernels(why_not);
    if (by.empty()) {
        GTEST_SKIP() << why_not;
    }
    expect_no_code_of_the_host(by);
    watchdog dog(name);
    std::uint64_t programs = 0;
    std::uint64_t on_two = 0;
    const bool is_fake = weir::test::fake_cuda::in_use();
    if (is_fake) {
        weir::test::fake_cuda::forget_calls();
    }
    for (std::uint64_t i = 0; i < wanted_cuda_programs(); ++i, ++programs) {
        const std::uint64_t seed = first_seed() + i;
        dog.start(seed);
        const program raw = for_kernels(generate(seed));
        // By the seed, so that a replay has the same devices.
        const bool has_two = by.size() > 1 && seed % 2 != 0;
        const weir::device third = has_two ? by[1].device() : weir::sim(15);
        const outcome result = run_completed(complete(raw), by, third);
        ASSERT_TRUE(result.ok()) << result.wrong << "\n"
                                 << replay_command(seed, name) << "\n"
                                 << smallest(raw, by, third);
        on_two += has_two && raw.devices > 1 ? 1 : 0;
    }
    if (is_fake && programs >= 20) {
        EXPECT_GT(weir::test::fake_cuda::calls("cuStreamWaitEvent"), programs) << "the driver has to order them";
        EXPECT_GT(on_two, 0U);
    }
    std::printf("%llu programs by kernels, %llu of them on a second device as well\n",
                static_cast<unsigned long long>(programs), static_cast<unsigned long long>(on_two));
}

TEST(random_kernels, control_without_ordering_they_compute_something_else) {
    std::string why_not;
    const std::vector<kernels> by = find_kernels(why_not);
    if (by.empty()) {
        GTEST_SKIP() << why_not;
    }
    expect_no_code_of_the_host(by);
    watchdog dog("random_kernels.control_without_ordering_they_compute_something_else");
    int programs = 0;
    int wrong = 0;
    for_each_serial_seed(100, [&](std::uint64_t seed) {
        const program raw = for_kernels(generate(seed));
        if (raw.devices > 1) {
            return;
        }
        dog.start(seed);
        const stripped_program bare = strip(complete(raw), gate_opening::as_written);
        ++programs;
        wrong += run_completed(bare.steps, by, weir::sim(15), true).ok() ? 0 : 1;
    });
    std::printf("without ordering %d of %d programs of kernels went wrong\n", wrong, programs);
    if (programs >= 20) {
        EXPECT_GT(wrong, 0);
    }
}

}  // namespace
}  // namespace random_programs
