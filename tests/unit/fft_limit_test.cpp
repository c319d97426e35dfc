// Scenario E7: workspaces and limits of memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "observe/observers.hpp"
#include "support/arrays.hpp"
#include "support/devices.hpp"
#include "weir/error.hpp"
#include "weir/fft.hpp"
#include "weir/memory.hpp"
#include "weir/testing.hpp"

namespace weir {
namespace {

using test::here;
using ::testing::HasSubstr;
using complex = std::complex<double>;

template <class Error, class Call>
std::string message_of(Call&& call) {
    try {
        call();
    } catch (const Error& thrown) {
        return thrown.what();
    }
    return "no such error";
}

TEST(MemoryLimit, BytesAreBytes) {
    EXPECT_EQ(memory_limit(0).bytes(cpu()), 0U);
    EXPECT_EQ(memory_limit(1).bytes(cpu()), 1U) << "a whole number is no part";
    EXPECT_EQ(memory_limit(std::size_t{1} << 40).bytes(cpu()), std::size_t{1} << 40);
    EXPECT_THAT(message_of<argument_error>([] { static_cast<void>(memory_limit(-1)); }), HasSubstr("negative"));
}

TEST(MemoryLimit, PartsAreOfWhatTheDeviceMayHold) {
    const testing::simulated small(sim(0), {.memory = std::size_t{1} << 26});
    const auto whole = static_cast<double>(memory::stats(sim(0)).limit);
    EXPECT_EQ(memory_limit(1.0).bytes(sim(0)), static_cast<std::size_t>(whole));
    EXPECT_EQ(memory_limit(0.25).bytes(sim(0)), static_cast<std::size_t>(0.25 * whole));
    EXPECT_EQ(memory_limit("25%").bytes(sim(0)), static_cast<std::size_t>(0.25 * whole));
    EXPECT_EQ(memory_limit(" 12.5 % ").bytes(sim(0)), static_cast<std::size_t>(0.125 * whole));
    EXPECT_EQ(memory_limit().bytes(sim(0)), memory_limit("80%").bytes(sim(0)));
    EXPECT_NE(memory_limit("25%").bytes(sim(0)), memory_limit("25%").bytes(cpu()));
    for (const double wrong : {0.0, -0.5, 1.5, std::numeric_limits<double>::quiet_NaN()}) {
        EXPECT_THAT(message_of<argument_error>([&] { static_cast<void>(memory_limit(wrong)); }),
                    HasSubstr("more than 0 and at most 1"));
    }
}

TEST(MemoryLimit, TextHasUnits) {
    const std::pair<const char*, std::size_t> right[] = {{"0", 0},
                                                         {"123", 123},
                                                         {"17 B", 17},
                                                         {"4 kB", 4000},
                                                         {"4kB", 4000},
                                                         {"4 KB", 4000},
                                                         {"4 KiB", 4096},
                                                         {"4kib", 4096},
                                                         {"1.5 MB", 1500000},
                                                         {"1.5 MiB", 1572864},
                                                         {"2 GB", 2000000000},
                                                         {"2 GiB", std::size_t{2} << 30},
                                                         {"1 TB", 1000000000000},
                                                         {"1 TiB", std::size_t{1} << 40},
                                                         {"0.0001 kB", 0}};
    for (const auto& [text, bytes] : right) {
        EXPECT_EQ(memory_limit(text).bytes(cpu()), bytes) << text;
    }
    for (const char* const wrong : {"", "%", "kB", "-1", "-5%", "1e3", "0x10", "4 k", "4 kBit", "4 4", "0.8", "1.5 B",
                                    "nan", "inf", "4 kB kB", "+3"}) {
        EXPECT_THAT(message_of<argument_error>([&] { static_cast<void>(memory_limit(wrong)); }),
                    HasSubstr(std::string("\"") + wrong + "\" cannot be read"))
            << wrong;
    }
    for (const char* const wrong : {"0%", "100.5%", "101 %"}) {
        EXPECT_THAT(message_of<argument_error>([&] { static_cast<void>(memory_limit(wrong)); }),
                    HasSubstr("more than 0% and at most 100%"));
    }
}

/// A plan that needs a workspace: a real result of a spectrum that is filled up with zeros.
class FftWorkspace {
protected:
    stream on{here()};
    array spectrum = full({3}, 1, dtype::complex128, on);
    fft::options to_eight() const { return {.n = 8}; }
    static constexpr std::size_t needed = 5 * sizeof(complex);
    /// Of an impulse's spectrum cut to three: 1 + 2 cos(2 pi j / 8) + 2 cos(4 pi j / 8), over 8.
    static constexpr double first = (1 + 2 + 2) / 8.0;
};

WEIR_CONFORMANCE_F(FftWorkspace, E7TooLittleIsAnErrorBeforeAnyWork) {
    fft::options how = to_eight();
    how.memory_limit = needed - 1;
    const std::size_t held = memory::stats(here()).live;
    fft_plan f(spectrum, how, fft_kind::complex_to_real);
    EXPECT_THAT(message_of<out_of_memory>([&] { f.plan(on); }),
                AllOf(HasSubstr("80 bytes on " + here().name()), HasSubstr("memory limit is 79 bytes"),
                      HasSubstr("memory_limit")));
    EXPECT_EQ(memory::stats(here()).live, held);
    EXPECT_THROW(static_cast<void>(f.execute(on, fft_direction::inverse)), state_error) << "it is not planned";
    EXPECT_THROW(static_cast<void>(fft::irfft(on, spectrum, how)), out_of_memory);

    how.memory_limit = needed;
    EXPECT_DOUBLE_EQ(test::values_of<double>(fft::irfft(on, spectrum, how))[0], first);
    how.memory_limit = "80 B";
    fft_plan g(spectrum, how, fft_kind::complex_to_real);
    g.plan(on);
    EXPECT_DOUBLE_EQ(test::values_of<double>(g.execute(on, fft_direction::inverse))[0], first);
}

WEIR_CONFORMANCE_F(FftWorkspace, E7NothingIsNeededWhereNothingIsTaken) {
    fft::options how;
    how.memory_limit = 0;
    EXPECT_NO_THROW(static_cast<void>(fft::fft(on, spectrum, how)));
}

WEIR_CONFORMANCE_F(FftWorkspace, E7CopiesOnAnotherDeviceCount) {
    const device other = here() == cpu() ? sim(0) : cpu();
    fft::options how;
    how.execution = other;
    how.memory_limit = 3 * sizeof(complex) - 1;
    EXPECT_THAT(message_of<out_of_memory>([&] { static_cast<void>(fft::fft(spectrum, how)); }),
                HasSubstr("48 bytes on " + other.name()));
    how.memory_limit = 3 * sizeof(complex);
    EXPECT_EQ(test::values_of<complex>(fft::fft(spectrum, how))[0], complex(3));
}

WEIR_CONFORMANCE_F(FftWorkspace, E7IsGivenBackEarly) {
    fft_plan f(spectrum, to_eight(), fft_kind::complex_to_real);
    f.plan(on);
    EXPECT_GE(f.workspace_bytes(), needed);
    testing::gate held;
    held.hold(on);
    array late = f.execute(on, fft_direction::inverse, {.release_workspace = true});
    EXPECT_EQ(f.workspace_bytes(), 0U) << "although the transform has not run";
    const stream other(here());
    array second = f.execute(other, fft_direction::inverse);
    EXPECT_GE(f.workspace_bytes(), needed) << "the next execution takes another";
    EXPECT_FALSE(late.ready());
    held.open();
    EXPECT_DOUBLE_EQ(test::values_of<double>(late)[0], first);
    EXPECT_DOUBLE_EQ(test::values_of<double>(second)[0], first);
    f.free();
    EXPECT_EQ(f.workspace_bytes(), 0U);
}

/// Observes on which streams memory is allocated.
class allocations final : public observe::observer {
public:
    allocations() { observe::observers::add(*this); }
    ~allocations() override { observe::observers::remove(*this); }
    allocations(const allocations&) = delete;
    allocations& operator=(const allocations&) = delete;

    void allocated(const observe::observed_allocation& one) override {
        streams.emplace_back(one.stream != nullptr ? one.stream->name : "none", one.bytes);
    }
    std::vector<std::pair<std::string, std::uint64_t>> streams;
};

WEIR_CONFORMANCE_F(FftWorkspace, E7IsTakenOnTheStreamThatExecutes) {
    const stream executing(here(), {0, "executing"});
    on.synchronize();
    const allocations heard;
    static_cast<void>(fft::irfft(executing, spectrum, to_eight()));
    const std::pair<std::string, std::uint64_t> result("executing", 8 * sizeof(double));
    const std::pair<std::string, std::uint64_t> workspace("executing", needed);
    EXPECT_THAT(heard.streams, ::testing::ElementsAre(result, workspace));
}

WEIR_CONFORMANCE_F(FftWorkspace, E7IsTakenOnTheDeviceThatComputes) {
    const device other = here() == cpu() ? sim(0) : cpu();
    fft::options how = to_eight();
    how.execution = other;
    const stream far(other);
    on.synchronize();
    const std::size_t held = memory::stats(other).live;
    fft_plan f(spectrum, how, fft_kind::complex_to_real);
    f.plan(far);
    EXPECT_GT(memory::stats(other).live, held);
    EXPECT_DOUBLE_EQ(test::values_of<double>(f.execute(far, fft_direction::inverse))[0], first);
    f.free();
    far.synchronize();
    EXPECT_EQ(memory::stats(other).live, held);
}

}  // namespace
}  // namespace weir
