// memory::poisoning fills memory that is freed, in stream order (rules L1, L6). Gates make the cases certain.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "support/devices.hpp"
#include "support/one_piece.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using test::here;
using test::one_piece;
using testing::gate;

constexpr std::int64_t count = 4096;

template <class T, class Condition>
bool all_of(const array& x, Condition holds) {
    const auto elements = x.read<T>();
    return std::all_of(elements.begin(), elements.end(), holds);
}

bool all_are_nan(const array& x) {
    return all_of<double>(x, [](double one) { return std::isnan(one); });
}

bool all_are(const array& x, double value) {
    return all_of<double>(x, [&](double one) { return one == value; });
}

constexpr std::size_t chunk = std::size_t{4} << 20;

/// A new array in the memory of one that held sevens and was dropped. Nothing else is free in the pool.
array in_memory_of_sevens(const stream& s, dtype type) {
    const auto elements = static_cast<std::int64_t>(chunk / size_of(type));
    array before = full(elements, 7, type, s);
    s.synchronize();
    const std::byte* const address = before.data();
    before = {};
    array next = empty(elements, type, s);
    EXPECT_EQ(next.data(), address);
    return next;
}

WEIR_CONFORMANCE(L6Poisoning, MemoryThatWasFreedIsNaN) {
    const stream s{here()};
    const one_piece only(chunk, s);
    const memory::use scope(memory::poisoning());
    EXPECT_TRUE(all_are_nan(in_memory_of_sevens(s, dtype::float64)));
    EXPECT_TRUE(all_of<float>(in_memory_of_sevens(s, dtype::float32), [](float one) { return std::isnan(one); }));
}

WEIR_CONFORMANCE(L6Poisoning, IntegersAreMinusOne) {
    const stream s{here()};
    const one_piece only(chunk, s);
    const memory::use scope(memory::poisoning());
    EXPECT_TRUE(all_of<std::int32_t>(in_memory_of_sevens(s, dtype::int32), [](std::int32_t one) { return one == -1; }));
}

WEIR_CONFORMANCE(L6Poisoning, ControlWithoutItTheOldElementsAreSeen) {
    const stream s{here()};
    const one_piece only(chunk, s);
    EXPECT_TRUE(all_are(in_memory_of_sevens(s, dtype::float64), 7));
}

/// What a reader saw that was still held when the array was dropped, and its memory given to an array of fives.
array seen_late(ordering_mode mode) {
    const stream home{here()};
    const stream reader{here()};
    gate held;
    array seen = zeros(count, dtype::float64, reader);
    reader.synchronize();
    const memory::use scope(memory::poisoning());
    array arr = full(count, 1, dtype::float64, home);
    home.synchronize();
    array next;
    {
        const ordering_scope ordering(mode);
        held.hold(reader);
        copy(reader, seen, arr);
        arr = {};  // does not block: the gate is closed
        next = full(count, 5, dtype::float64, home);
    }
    EXPECT_FALSE(seen.ready());
    held.open();
    EXPECT_TRUE(all_are(next, 5)) << "the fill came after the next owner's";
    return seen;
}

WEIR_CONFORMANCE(L6Poisoning, TheFillComesAfterWhatIsPendingAndBeforeTheNextOwner) {
    EXPECT_TRUE(all_are(seen_late(ordering_mode::automatic), 1));
}

WEIR_CONFORMANCE(L6Poisoning, InManualOrderingToo) { EXPECT_TRUE(all_are(seen_late(ordering_mode::manual), 1)); }

WEIR_CONFORMANCE(L6Poisoning, TheNextOwnerDoesNotInheritAnOrderingMode) {
    const stream s{here()};
    const one_piece only(chunk, s);
    const memory::use scope(memory::poisoning());
    EXPECT_EQ(in_memory_of_sevens(s, dtype::float64).buffer().ordering(), std::nullopt);
}

WEIR_CONFORMANCE(L6Poisoning, CountsEachDropOnceThroughAdaptors) {
    const stream s{here()};
    const auto counted = memory::counting();
    const memory::use scope(memory::poisoning(counted));
    {
        const array a = zeros(count, dtype::float64, s);
        EXPECT_EQ(counted->counts().live.count, 1U);
    }
    EXPECT_EQ(counted->counts().live.count, 0U);
    EXPECT_EQ(counted->counts().total.count, 1U);
}

/// Keeps the memory of the last array that was dropped.
class keeping_resource final : public memory_resource {
public:
    int shown = 0;
    buffer kept;

private:
    buffer make(std::size_t bytes, std::size_t alignment, const stream_ref& on, const source_location& where) override {
        return allocate_from({}, bytes, alignment, on, where);
    }
    void dropping(const buffer& memory) noexcept override {
        ++shown;
        kept = memory;
    }
};

WEIR_CONFORMANCE(L6Dropping, ACopyKeepsTheMemoryAndIsNotShownAgain) {
    const stream s{here()};
    const auto keeping = std::make_shared<keeping_resource>();
    {
        const memory::use scope(keeping);
        static_cast<void>(full(count, 3, dtype::float64, s));
    }
    EXPECT_EQ(keeping->shown, 1);
    EXPECT_TRUE(all_are(array(keeping->kept, dtype::float64, {count}), 3));
    keeping->kept = {};
    EXPECT_EQ(keeping->shown, 1);
}

}  // namespace
}  // namespace weir
