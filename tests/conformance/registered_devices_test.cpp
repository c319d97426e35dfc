// A kind of device from outside the library (docs/architecture.md, "A new device"): it is found by name, listed and described like any
// other, and no other code needs to know its kind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "runtime/devices/registered_devices.hpp"
#include "support/devices.hpp"
#include "support/messages.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using test::here;
using test::message_of;

using ::testing::HasSubstr;

WEIR_CONFORMANCE(RegisteredDevices, IsFoundListedAndDescribed) {
    EXPECT_EQ(here().kind(), device_kind::registered);
    EXPECT_EQ(here().name(), "thread:0");
    EXPECT_EQ(device::from_name("thread:0"), here());
    const std::vector<device> all = devices();
    EXPECT_EQ(std::count(all.begin(), all.end(), here()), 1);
    EXPECT_EQ(here().describe().memory_bytes, std::size_t{1} << 30);
}

WEIR_CONFORMANCE(RegisteredDevices, TwoOfAKindAreTwoDevices) {
    const device other = device::from_name("thread:1");
    EXPECT_NE(other, here());
    EXPECT_NE(other.id(), here().id());
    const array x = full(4, 1.5, dtype::float64, stream(here()));
    EXPECT_THROW(static_cast<void>(copy(stream(other), x)), argument_error) << "its memory is another device's";
    EXPECT_EQ(to(stream(here()), x, other).read<double>()[3], 1.5);
}

WEIR_CONFORMANCE(RegisteredDevices, NamesThatAreTakenAreRefused) {
    const auto make_none = [](int) -> std::unique_ptr<backend::driver> { return nullptr; };
    for (const char* const name : {"thread", "cuda"}) {
        EXPECT_THAT(message_of<argument_error>([&] { runtime::register_kind({name, 1, make_none}); }), HasSubstr(name));
    }
    EXPECT_THROW(static_cast<void>(device::from_name("thread:2")), argument_error);
}

WEIR_CONFORMANCE(RegisteredDevices, WhatItCannotDoIsRefusedByName) {
    EXPECT_THAT(message_of<argument_error>([] { static_cast<void>(kernel::from_source("", "k", {}, here())); }),
                HasSubstr("cannot be made for thread:0"));
    const stream s(here());
    EXPECT_THROW(static_cast<void>(memory::managed()->allocate(32, s)), argument_error);
    EXPECT_THROW(static_cast<void>(memory::pinned()->allocate(32, s)), argument_error);
}

}  // namespace
}  // namespace weir
