// Which forms of calls compile, and which a constraint refuses.
#include <gtest/gtest.h>

#include <complex>

#include "support/arrays.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using test::values_of;

// Options by {} are options: what takes an array for the result is no candidate.
static_assert(requires(const stream& s, const array& a) {
    fft::fft(s, a, {});
    fft::ifft(s, a, {});
    fft::rfft(s, a, {});
    fft::irfft(s, a, {});
    fft::fftn(on(s), a, {});
    fft::ifftn(on(s), a, {});
    fft::rfftn(on(s), a, {});
    fft::irfftn(on(s), a, {});
    fft::rfftn(on(s), a, {.norm = fft_norm::ortho});
});
static_assert(requires(fft_plan & plan, const stream& s) { plan.execute(fft_direction::forward, s, {}); });
// An array for the result may be const, or not, or a temporary one.
static_assert(requires(const stream& s, const array& a, array& out, fft_plan& plan) {
    fft::fft(s, a, out);
    fft::fft(s, a, a, {});
    fft::irfftn(s, a, array(a), {.n = 4});
    plan.execute(fft_direction::forward, s, out);
    plan.execute(fft_direction::forward, s, a, {});
});

constexpr auto with_nothing = [](native_stream) {};
constexpr auto with_floats = [](native_stream, std::span<const float>) {};

template <class... Arguments>
concept is_access = requires(const stream& s, Arguments... arguments) {
    access(s, arguments...);
};

static_assert(is_access<decltype(with_nothing)>);
static_assert(is_access<access_argument<const float>, decltype(with_floats)>);
static_assert(!is_access<>, "a stream alone is no work");
static_assert(!is_access<access_argument<const float>>, "an operand without a function");
static_assert(!is_access<array, decltype(with_floats)>, "an array that says neither in nor out");
static_assert(!is_access<access_argument<const float>, decltype(with_nothing)>, "a function that takes no operand");
static_assert(!is_access<access_argument<const double>, decltype(with_floats)>, "one that takes other elements");

TEST(CallForms, OptionsByBracesGiveTheResultOfNone) {
    using complex = std::complex<double>;
    const stream s;
    const array a = full(4, 1.0, dtype::complex128, s);
    EXPECT_EQ(values_of<complex>(fft::fft(s, a, {})), (std::vector<complex>{4, 0, 0, 0}));
    fft_plan plan(a);
    plan.plan(s);
    EXPECT_EQ(values_of<complex>(plan.execute(fft_direction::forward, s, {})), (std::vector<complex>{4, 0, 0, 0}));
}

}  // namespace
}  // namespace weir
