// Arrays of types without arithmetic keep every bit when they are copied through every device.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "support/devices.hpp"
#include "weir/detail/host_copy.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using test::here;

std::vector<std::byte> bytes_on_host(const array& x) {
    std::vector<std::byte> made(x.nbytes());
    detail::copy_to_host(x, made.data(), source_location::current());
    return made;
}

constexpr dtype types[] = {dtype::float8_e4m3fn,
                           dtype::float8_e8m0fnu,
                           dtype::float6_e2m3fn,
                           dtype::float4_e2m1fn,
                           dtype::int4,
                           dtype::uint2,
                           {dtype_code::opaque, 24},
                           {dtype_code::opaque, 64},
                           {dtype_code::ieee_float, 32, 4}};

std::vector<std::byte> pattern(std::size_t count) {
    std::vector<std::byte> made(count);
    for (std::size_t i = 0; i < count; ++i) {
        made[i] = static_cast<std::byte>(i * 29 + 5);
    }
    return made;
}

WEIR_CONFORMANCE(CarriedTypes, AreCopiedToTheDeviceOnItAndBack) {
    const stream s(here());
    const stream home(cpu());
    for (const dtype type : types) {
        array source = empty({4, 5}, type, home);
        const std::vector<std::byte> wanted = pattern(source.nbytes());
        copy_from_host(home, source, wanted);
        array moved = to(s, source, here());
        EXPECT_EQ(moved.device(), here());
        EXPECT_EQ(moved.dtype(), type);
        array again = copy(s, moved);
        EXPECT_EQ(bytes_on_host(again), wanted) << name_of(type);
        EXPECT_EQ(bytes_on_host(to(s, again, cpu())), wanted) << name_of(type);
    }
}

WEIR_CONFORMANCE(CarriedTypes, OfWholeBytesAreCopiedWithStridesAndAcrossDevices) {
    const stream s(here());
    for (const dtype type : types) {
        if (!has_whole_bytes(type)) {
            continue;
        }
        array x = empty({4, 6}, type, s);
        copy_from_host(s, x, pattern(x.nbytes()));
        const std::vector<std::byte> all = bytes_on_host(x);
        array part = x[{slice{{}, {}, -1}, slice{0, {}, 2}}].t();  // 3 x 4
        std::vector<std::byte> wanted;
        for (std::size_t i = 0; i < 3; ++i) {
            for (std::size_t j = 0; j < 4; ++j) {
                const auto first = static_cast<std::ptrdiff_t>(((3 - j) * 6 + 2 * i) * size_of(type));
                wanted.insert(wanted.end(), all.begin() + first,
                              all.begin() + first + static_cast<std::ptrdiff_t>(size_of(type)));
            }
        }
        EXPECT_EQ(bytes_on_host(part), wanted) << name_of(type);
        EXPECT_EQ(bytes_on_host(contiguous(s, part)), wanted) << name_of(type);
        EXPECT_EQ(bytes_on_host(to(s, part, cpu())), wanted) << name_of(type);
    }
}

WEIR_CONFORMANCE(CarriedTypes, OverlappingCopiesReadBeforeTheyWrite) {
    const stream s(here());
    for (const dtype type : {dtype::float8_e5m2, dtype::uint4}) {
        array x = empty(16, type, s);
        copy_from_host(s, x, pattern(x.nbytes()));
        const std::vector<std::byte> before = bytes_on_host(x);
        copy(s, x.slice(2, 16), x.slice(0, 14));
        const std::vector<std::byte> after = bytes_on_host(x);
        const std::size_t moved = bytes_for(type, 2);
        for (std::size_t i = moved; i < after.size(); ++i) {
            EXPECT_EQ(after[i], before[i - moved]) << name_of(type) << " byte " << i;
        }
    }
}

}  // namespace
}  // namespace weir
