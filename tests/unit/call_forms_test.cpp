// Which forms of calls compile, and which ones a constraint refuses.
#include <gtest/gtest.h>

#include <atomic>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/arrays.hpp"
#include "weir/testing.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using test::values_of;

// Options in braces are options: an overload that takes an array for the result is no candidate.
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
static_assert(requires(fft_plan & plan, const stream& s) { plan.execute(s, fft_direction::forward, {}); });
// An array for the result has a name or is a temporary one.
static_assert(requires(const stream& s, array& a, array& out, fft_plan& plan) {
    fft::fft(s, a, out);
    fft::fft(s, a, a, {});
    fft::irfftn(s, a, array(a), {.n = 4});
    plan.execute(s, fft_direction::forward, out);
    plan.execute(s, fft_direction::forward, a, {});
});

// An overload that writes takes an array that is not const, or a temporary one. `X` is a reference type.
template <class X>
concept is_written_by_fill = requires(const stream& s, X x) {
    fill(s, static_cast<X>(x), 1);
};
template <class X>
concept is_written_by_copy = requires(const stream& s, const array& from, X x) {
    copy(s, static_cast<X>(x), from);
};
template <class X>
concept is_written_by_copy_from_host = requires(const stream& s, std::span<const std::byte> from, X x) {
    copy_from_host(s, static_cast<X>(x), from);
};
template <class X>
concept is_written_by_compute = requires(const stream& s, const array& a, X x) {
    compute(s, binary_operation::add, a, 1, static_cast<X>(x));
    compute(s, unary_operation::negative, a, static_cast<X>(x));
};
template <class X>
concept is_written_by_operators = requires(X x) {
    static_cast<X>(x) += 1;
};
template <class X>
concept is_written_by_fft = requires(const stream& s, const array& a, X x) {
    fft::fft(s, a, static_cast<X>(x));
};
template <class X>
concept is_written_by_a_plan = requires(const stream& s, fft_plan& plan, X x) {
    plan.execute(s, fft_direction::forward, static_cast<X>(x));
};
template <class X>
concept is_written_by_the_host = requires(X x) {
    static_cast<X>(x).template write<float>();
};
template <class X>
concept is_out = requires(X x) {
    out(static_cast<X>(x));
};
template <class X>
concept is_inout = requires(X x) {
    inout(static_cast<X>(x));
};
template <class X>
concept is_typed_out = requires(X x) {
    out<float>(static_cast<X>(x));
};
template <class X>
concept is_typed_inout = requires(X x) {
    inout<float>(static_cast<X>(x));
};
template <class X>
concept is_out_by_its_view = requires(X x) {
    out(static_cast<X>(x).template view<float>());
};
template <class X>
concept is_inout_by_its_strides = requires(X x) {
    inout(static_cast<X>(x).template strided<float, 1>());
};

template <class X>
constexpr int ways_to_write() {
    return is_written_by_fill<X> + is_written_by_copy<X> + is_written_by_copy_from_host<X> + is_written_by_compute<X> +
           is_written_by_operators<X> + is_written_by_fft<X> + is_written_by_a_plan<X> + is_written_by_the_host<X> +
           is_out<X> + is_inout<X> + is_typed_out<X> + is_typed_inout<X> + is_out_by_its_view<X> +
           is_inout_by_its_strides<X>;
}
static_assert(ways_to_write<array&>() == 14);
static_assert(ways_to_write<array&&>() == 14, "a slice made on the spot");
static_assert(ways_to_write<const array&>() == 0);
static_assert(ways_to_write<const array&&>() == 0);

// A const array can be read in every way.
static_assert(requires(const stream& s, const array& x) {
    in(x);
    in<float>(x);
    in(x.view<float>());
    in(x.strided<float, 1>());
    x.read<float>();
    copy(s, x);
    x + x;
});
static_assert(std::same_as<decltype(in(std::declval<const array&>().view<float>())), access_argument<const float>>);

// Nothing refers to the elements of a temporary view.
template <class View>
concept shows_its_elements = requires(View&& view) {
    std::forward<View>(view).span();
    std::forward<View>(view).begin();
    std::forward<View>(view).end();
};
static_assert(shows_its_elements<host_view<const float>&> && shows_its_elements<host_view<float>&>);
static_assert(!shows_its_elements<host_view<const float>> && !shows_its_elements<host_view<float>>);
static_assert(std::same_as<decltype(std::declval<host_view<const float>>()[0]), float>);
static_assert(std::is_assignable_v<decltype(std::declval<host_view<float>>()[0]), float>);
static_assert(!std::convertible_to<decltype(std::declval<host_view<float>>()[0]), const float&>);
static_assert(!std::is_assignable_v<decltype(std::declval<host_view<const float>&>()[0]), float>);

constexpr auto with_nothing = [](native_stream) {};
constexpr auto with_floats = [](native_stream, std::span<const float>) {};

using floats_read = access_argument<const float>;

template <class... Arguments>
concept is_access = requires(const stream& s, Arguments&&... arguments) {
    access(s, std::forward<Arguments>(arguments)...);
};

static_assert(is_access<decltype(with_nothing)>);
static_assert(is_access<decltype(with_floats), floats_read>);
static_assert(!is_access<>, "a stream alone is no work");
static_assert(!is_access<floats_read>, "an operand without a function");
static_assert(!is_access<floats_read, decltype(with_floats)>, "the operand before the function");
static_assert(!is_access<decltype(with_floats), array>, "an array that says neither in nor out");
static_assert(!is_access<decltype(with_nothing), floats_read>, "a function that takes no operand");
static_assert(!is_access<decltype(with_floats), access_argument<const double>>, "one that takes other elements");
static_assert(!is_access<decltype(with_floats), floats_read&>, "an operand that was kept, whose array may be gone");

template <class... Arguments>
concept is_parallel_for = requires(const stream& s, Arguments&&... arguments) {
    parallel_for(s, 5, std::forward<Arguments>(arguments)...);
};
constexpr auto with_an_index = [](std::size_t) {};
constexpr auto with_an_index_and_floats = [](std::size_t, std::span<const float>) {};

static_assert(is_parallel_for<decltype(with_an_index)>);
static_assert(is_parallel_for<decltype(with_an_index), floats_read>, "a body may do without the operands");
static_assert(is_parallel_for<decltype(with_an_index_and_floats), floats_read>);
static_assert(!is_parallel_for<floats_read, decltype(with_an_index_and_floats)>);
static_assert(!is_parallel_for<decltype(with_an_index_and_floats), access_argument<const double>>);
static_assert(!is_parallel_for<decltype(with_an_index), floats_read&>);

template <class... Arguments>
concept is_host_task = requires(const stream& s, Arguments&&... arguments) {
    host_task(s, std::forward<Arguments>(arguments)...);
};
constexpr auto with_floats_alone = [](std::span<const float>) {};

static_assert(is_host_task<decltype(with_floats_alone), floats_read>);
static_assert(!is_host_task<decltype(with_floats_alone)>);
static_assert(!is_host_task<decltype(with_floats_alone), floats_read&>);

template <class... Arguments>
concept is_launch = requires(const stream& s, const kernel& what, Arguments&&... arguments) {
    launch(s, what, {1, 1}, std::forward<Arguments>(arguments)...);
    launch_event(s, what, {1, 1}, std::forward<Arguments>(arguments)...);
};

static_assert(is_launch<floats_read, int, const double&>);
static_assert(!is_launch<floats_read&>, "an operand that was kept");
static_assert(!is_launch<float*>, "a pointer does not say how its memory is used");
static_assert(!is_launch<array>, "nor does an array");
static_assert(!is_launch<std::string>, "a kernel gets bytes");

// A label is a literal, by its type.
static_assert(std::is_constructible_v<label, const char (&)[5]>);
static_assert(!std::is_constructible_v<label, const char*>);
static_assert(!std::is_constructible_v<label, std::string>);
constexpr label of_a_constant = "constant";
static_assert(std::string_view(of_a_constant.text()) == "constant");

// Builders change a variable; of a temporary object they return another.
static_assert(std::same_as<decltype(std::declval<on&>().label("x")), on&>);
static_assert(std::same_as<decltype(std::declval<on>().label("x")), on>);
static_assert(std::same_as<decltype(std::declval<on&>().after(completion())), on&>);
static_assert(std::same_as<decltype(std::declval<on>().after(completion())), on>);
static_assert(std::same_as<decltype(std::declval<on>().after(std::declval<const event&>())), on>);

// What a temporary object shows outlives it.
static_assert(std::same_as<decltype(std::declval<array>().shape()), shape>);
static_assert(std::same_as<decltype(std::declval<array>().strides()), std::vector<std::int64_t>>);
static_assert(std::same_as<decltype(std::declval<array>().buffer()), buffer>);
static_assert(std::same_as<decltype(std::declval<shape>().extents()), std::vector<std::int64_t>>);
static_assert(std::same_as<decltype(std::declval<array_view<float>>().base()), array>);
static_assert(std::same_as<decltype(std::declval<strided_view<float, 1>>().base()), array>);
static_assert(std::same_as<decltype(std::declval<report>().races()), std::vector<race>>);
static_assert(std::same_as<decltype(std::declval<report>().unseen()), std::vector<std::string>>);

// No reference to an element outlives a temporary view.
static_assert(std::same_as<decltype(std::declval<const array&>().read<float>()[0]), float>);

TEST(CallForms, ALabelledPlaceByReferenceStaysValid) {
    const stream s;
    const completion first = host_task(s, [] {});
    const auto& where = on(s).label("kept").after(first);
    EXPECT_STREQ(where.site(detail::key).label, "kept");
    EXPECT_EQ(where.dependencies().size(), 1U);
    host_task(where, [] {}).synchronize();
}

TEST(CallForms, AnOperationComesAfterEachOfManyCompletionsAndEvents) {
    for (std::size_t count = 0; count < 6; ++count) {
        testing::gate gate;
        std::vector<stream> others(count);
        const stream s;
        on behind(s);
        std::atomic<std::size_t> ran = 0;
        for (std::size_t i = 0; i < count; ++i) {
            gate.hold(others[i]);
            const completion end = host_task(others[i], [&] { ++ran; });
            if (i % 2 == 0) {
                behind.after(end);
            } else {
                behind.after(others[i].record());
            }
        }
        EXPECT_EQ(behind.dependencies().size(), count);
        const on copied = behind;
        std::size_t seen = 0;
        const completion last = host_task(copied, [&] { seen = ran; });
        if (count != 0) {
            EXPECT_FALSE(last.done());
        }
        gate.open();
        last.synchronize();
        EXPECT_EQ(seen, count);
        for (const stream& each : others) {
            each.synchronize();
        }
    }
}

TEST(CallForms, ARangeBeginsAtZeroAtTheEarliest) {
    EXPECT_THROW(range(-1, 5), argument_error);
    EXPECT_THROW(range(0, -5), argument_error);
    EXPECT_EQ(range(2, 5U).begin, 2U);
    EXPECT_EQ(range(std::int64_t{2}, std::size_t{5}).end, 5U);
    EXPECT_EQ(range(-3).end, 0U);
}

TEST(CallForms, AnOperandKeepsATemporaryArray) {
    const stream s;
    const operand kept = full(4, 2.0, dtype::float64, s);
    EXPECT_EQ(values_of<double>(add(s, kept, 1)), std::vector<double>(4, 3.0));
}

TEST(CallForms, OptionsByBracesGiveTheResultOfNone) {
    using complex = std::complex<double>;
    const stream s;
    array a = full(4, 1.0, dtype::complex128, s);
    EXPECT_EQ(values_of<complex>(fft::fft(s, a, {})), (std::vector<complex>{4, 0, 0, 0}));
    fft_plan plan(a);
    plan.plan(s);
    EXPECT_EQ(values_of<complex>(plan.execute(s, fft_direction::forward, {})), (std::vector<complex>{4, 0, 0, 0}));
}

}  // namespace
}  // namespace weir
