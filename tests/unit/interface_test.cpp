// What the public interface lets a program write, and what it does not (docs/devices.md).
#include <gtest/gtest.h>

#include <complex>
#include <cstdint>
#include <type_traits>

#include "weir/weir.hpp"

namespace weir {
namespace {

// Members for Weir's own use cannot be called without the key.
template <class T>
concept shows_its_state = requires(const T& one) {
    one.state();
};
static_assert(!shows_its_state<device>);
static_assert(!shows_its_state<stream_ref>);
static_assert(!shows_its_state<stream>);

template <class T>
concept shows_its_place = requires(const T& one) {
    one.timeline();
}
|| requires(const T& one) { one.epoch(); }
|| requires(const T& one) { one.known(); };
static_assert(!shows_its_place<completion>);

static_assert(!std::is_constructible_v<device, runtime::device_state&>);
static_assert(!std::is_constructible_v<stream_ref, runtime::stream_state&>);
static_assert(!std::is_constructible_v<stream, detail::owner<runtime::stream_state>>);
static_assert(!std::is_constructible_v<completion, std::uint32_t, std::uint64_t, order::clock>);
static_assert(!std::is_constructible_v<live_export, const buffer&, const order::footprint&, std::shared_ptr<package>>);

template <class T>
concept opens_without_a_name = requires(void (*take)(T)) {
    take({});
};
static_assert(!opens_without_a_name<detail::passkey>);

// A driver's handle has one name.
static_assert(std::is_same_v<decltype(std::declval<const stream_ref&>().handle()), void*>);
static_assert(std::is_same_v<decltype(std::declval<const event&>().handle()), void*>);
static_assert(std::is_same_v<decltype(std::declval<const kernel&>().handle()), void*>);
template <class T>
concept has_another_name = requires(const T& one) {
    one.native();
}
|| requires(const T& one) { one.native_handle(); };
static_assert(!has_another_name<stream_ref>);
static_assert(!has_another_name<event>);

// A handle is no stream by itself: 0 is one, too.
template <class Handle>
concept is_adopted = requires(Handle handle) {
    stream::adopt(handle, cpu());
};
static_assert(is_adopted<native_stream>);
static_assert(!is_adopted<int>);
static_assert(!is_adopted<std::nullptr_t>);

TEST(P1Fft, EmptyBracesAreTheOptions) {
    const stream s;
    const array a = full(8, 1.0, dtype::complex128, s);
    const auto first = [](const array& of) { return of.read<std::complex<double>>()[0]; };
    EXPECT_EQ(first(fft::fft(s, a, {})), 8.0);
    EXPECT_EQ(first(fft::fft(a, {})), 8.0);
    EXPECT_EQ(first(fft::ifft(s, a, {})), 1.0);
    array out = empty(8, dtype::complex128, s);
    static_cast<void>(fft::fft(s, a, out, {}));
    EXPECT_EQ(first(out), 8.0);
    fft_plan plan(a, {});
    plan.plan(s);
    EXPECT_EQ(first(plan.execute(s, fft_direction::forward, {})), 8.0);
}

}  // namespace
}  // namespace weir
