// Element-wise arithmetic against the same operations computed one element at a time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <vector>

#include "array/visit.hpp"
#include "support/arrays.hpp"
#include "support/messages.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using test::make_array;
using test::message_of;
using test::values_of;
using ::testing::ElementsAre;

/// An array of numbers in which only every second one is used, back to front.
array laid_out(const stream& s, dtype type, const std::vector<int>& numbers) {
    const auto count = static_cast<std::int64_t>(numbers.size());
    array all = zeros(2 * count, type, s);
    array part = all[slice{{}, {}, -2}];
    for (std::int64_t i = 0; i < count; ++i) {
        fill(s, part[i], numbers[static_cast<std::size_t>(i)]);
    }
    return part;
}

/// The numbers as elements.
template <class T>
T element(int number) {
    if constexpr (std::is_same_v<T, bool>) {
        return number != 0;
    } else if constexpr (detail::is_complex_element<T>) {
        return T(static_cast<typename T::value_type>(number));
    } else {
        return T(static_cast<T>(number));
    }
}

/// The type in which short floating-point numbers are computed, and division of integers.
template <class T>
using computed = std::conditional_t<detail::is_short_float<T>, float, T>;

template <class T>
bool same(const T& a, const T& b) {
    if constexpr (detail::is_complex_element<T>) {
        return same(a.real(), b.real()) && same(a.imag(), b.imag());
    } else {
        return a == b || (a != a && b != b);
    }
}

template <class T>
void expect_elements(const array& seen, const std::vector<T>& wanted, const std::string& what) {
    ASSERT_EQ(seen.dtype(), dtype_of<T>) << what;
    const auto values = seen.read<T>();
    ASSERT_EQ(values.size(), wanted.size()) << what;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        ASSERT_TRUE(same(values[i], wanted[i])) << what << ", element " << i;
    }
}

const std::vector<int> left_numbers = {0, 1, 3, 100};
const std::vector<int> right_numbers = {1, 2, 0, 5, 3};

/// The numbers that elements of this type can hold.
std::vector<int> possible(std::vector<int> numbers, dtype type) {
    for (int& one : numbers) {
        one = type == dtype::bool_ && one > 1 ? 1 : one;
    }
    return numbers;
}

/// All pairs, as a table: the left ones down, the right ones across.
template <class C, class R, class F>
std::vector<R> table(const std::vector<int>& left, const std::vector<int>& right, F&& f) {
    std::vector<R> made;
    for (const int a : left) {
        for (const int b : right) {
            made.push_back(static_cast<R>(f(element<C>(a), element<C>(b))));
        }
    }
    return made;
}

template <class C>
void expect_arithmetic(const stream& s, const array& x, const array& y, const std::vector<int>& left,
                       const std::vector<int>& right, const std::string& pair) {
    using inner = computed<C>;
    if constexpr (std::is_same_v<C, bool>) {
        expect_elements(add(s, x, y), table<C, bool>(left, right, [](bool a, bool b) { return a || b; }), pair + " +");
        expect_elements(multiply(s, x, y), table<C, bool>(left, right, [](bool a, bool b) { return a && b; }),
                        pair + " *");
        expect_elements(power(s, x, y),
                        table<int, std::int8_t>(left, right, [](int a, int b) { return b == 0 ? 1 : a; }),
                        pair + " **");
    } else if constexpr (std::is_integral_v<C>) {
        const auto wrapped = [&](auto&& f) {
            return table<std::int64_t, C>(left, right, f);  // numbers are small enough for int64; the cast wraps
        };
        expect_elements(add(s, x, y), wrapped([](auto a, auto b) { return a + b; }), pair + " +");
        expect_elements(subtract(s, x, y), wrapped([](auto a, auto b) { return a - b; }), pair + " -");
        expect_elements(multiply(s, x, y), wrapped([](auto a, auto b) { return a * b; }), pair + " *");
        expect_elements(power(s, x, y), wrapped([](auto a, auto b) {
                            std::int64_t product = 1;
                            for (std::int64_t i = 0; i < b; ++i) {
                                product *= a;
                            }
                            return product;
                        }),
                        pair + " **");
        const auto xor_of = [](auto a, auto b) { return a ^ b; };
        expect_elements(compute(s, binary_operation::bitwise_xor, x, y), wrapped(xor_of), pair + " ^");
    } else {
        const auto f = [&](auto&& g) {
            std::vector<C> made;
            for (const inner one : table<inner, inner>(left, right, g)) {
                made.push_back(C(one));
            }
            return made;
        };
        expect_elements(add(s, x, y), f([](auto a, auto b) { return a + b; }), pair + " +");
        expect_elements(subtract(s, x, y), f([](auto a, auto b) { return a - b; }), pair + " -");
        expect_elements(multiply(s, x, y), f([](auto a, auto b) { return a * b; }), pair + " *");
    }
    if constexpr (!detail::is_complex_element<C>) {
        using quotient = std::conditional_t<std::is_integral_v<C>, double, inner>;
        std::vector<std::conditional_t<std::is_integral_v<C>, double, C>> wanted;
        for (const quotient one : table<quotient, quotient>(left, right, [](auto a, auto b) { return a / b; })) {
            wanted.emplace_back(one);
        }
        expect_elements(divide(s, x, y), wanted, pair + " /");
    }
}

TEST(Arithmetic, AllPairsOfTypesWithBroadcastingAndStrides) {
    const stream s;
    int pairs = 0;
    for (const dtype a : arithmetic_dtypes()) {
        const std::vector<int> left = possible(left_numbers, a);
        array x = laid_out(s, a, left)[{ellipsis, new_axis}];
        for (const dtype b : arithmetic_dtypes()) {
            dtype common = dtype::bool_;
            try {
                common = promote_types(a, b);
            } catch (const argument_type_error&) {
                EXPECT_THROW((void)add(s, x, laid_out(s, b, {1})), argument_type_error);
                continue;
            }
            ++pairs;
            const std::vector<int> right = possible(right_numbers, b);
            array y = laid_out(s, b, right);
            const std::string pair = std::string(name_of(a)) + " and " + std::string(name_of(b));
            detail::visit(common,
                          [&]<class C>(std::type_identity<C>) { expect_arithmetic<C>(s, x, y, left, right, pair); });
            const auto compared = [&](auto&& f) { return table<int, bool>(left, right, f); };
            expect_elements(compute(s, binary_operation::less, x, y), compared(std::less<>()), pair + " <");
            expect_elements(compute(s, binary_operation::less_equal, x, y), compared(std::less_equal<>()),
                            pair + " <=");
            expect_elements(compute(s, binary_operation::greater, x, y), compared(std::greater<>()), pair + " >");
            expect_elements(compute(s, binary_operation::greater_equal, x, y), compared(std::greater_equal<>()),
                            pair + " >=");
            expect_elements(compute(s, binary_operation::equal, x, y), compared(std::equal_to<>()), pair + " ==");
            expect_elements(compute(s, binary_operation::not_equal, x, y), compared(std::not_equal_to<>()),
                            pair + " !=");
        }
    }
    EXPECT_EQ(pairs, 225 - 14);
}

TEST(Arithmetic, IntegersWrap) {
    array x = full(1, 127, dtype::int8);
    EXPECT_EQ((x + 1).read<std::int8_t>()[0], -128);
    EXPECT_EQ((-full(1, INT64_MIN, dtype::int64)).read<std::int64_t>()[0], INT64_MIN);
    EXPECT_EQ((-ones(1, dtype::uint16)).read<std::uint16_t>()[0], 65535);
    EXPECT_EQ((full(1, 40000, dtype::uint16) * full(1, 40000, dtype::uint16)).read<std::uint16_t>()[0], 4096);
    EXPECT_EQ((~full(1, 5, dtype::int32)).read<std::int32_t>()[0], -6);
    EXPECT_EQ((~ones(1, dtype::bool_)).read<bool>()[0], false);
    EXPECT_EQ((full(1, 6, dtype::uint8) & full(1, 3, dtype::uint8)).read<std::uint8_t>()[0], 2);
    EXPECT_EQ((full(1, 6, dtype::uint8) | 1).read<std::uint8_t>()[0], 7);
}

TEST(Arithmetic, PowersOfIntegersAndTheirErrors) {
    const stream s;
    array x = make_array<std::int32_t>(s, 3, {2, -3, 7});
    EXPECT_THAT(values_of<std::int32_t>(power(s, x, 3)), ElementsAre(8, -27, 343));
    EXPECT_EQ(message_of<argument_error>([&] { (void)power(s, x, -1); }),
              "integers to the power of -1: convert them to a floating-point type first");
    array failed = power(on(s).label("inverse"), x, make_array<std::int32_t>(s, 3, {1, 0, -1}));
    EXPECT_NE(message_of<operation_error>([&] { (void)failed.read<std::int32_t>(); }).find("negative power"),
              std::string::npos);
    EXPECT_EQ((power(s, x, -1.0).read<double>()[0]), 0.5);
    array c = make_array<std::complex<double>>(s, 1, {{0, 1}});
    EXPECT_NEAR(std::abs(values_of<std::complex<double>>(power(s, c, 2))[0] + 1.0), 0, 1e-15);
    EXPECT_EQ(values_of<std::complex<double>>(power(s, zeros(1, dtype::complex128, s), 0))[0], 1.0);
}

TEST(Arithmetic, ComplexNumbers) {
    const stream s;
    using c = std::complex<double>;
    array x = make_array<c>(s, 3, {{1, 2}, {1e200, 1e200}, {1, 1}});
    array y = make_array<c>(s, 3, {{3, -1}, {2e200, 1e200}, {0, 0}});
    EXPECT_EQ(values_of<c>(x * y)[0], c(5, 5));
    const std::vector<c> quotients = values_of<c>(x / y);
    EXPECT_NEAR(std::abs(quotients[0] - c(0.1, 0.7)), 0, 1e-15);
    EXPECT_NEAR(std::abs(quotients[1] - c(0.6, 0.2)), 0, 1e-15) << "squares would overflow";
    EXPECT_TRUE(std::isinf(quotients[2].real()));
    EXPECT_THAT(values_of<bool>(x < y), ElementsAre(true, true, false));
    EXPECT_THAT(values_of<bool>(x >= x), ElementsAre(true, true, true));
}

TEST(Arithmetic, NaNIsUnequalToAll) {
    const stream s;
    array x = make_array<float>(s, 2, {std::nanf(""), 1});
    EXPECT_THAT(values_of<bool>(x == x), ElementsAre(false, true));
    EXPECT_THAT(values_of<bool>(x != x), ElementsAre(true, false));
    EXPECT_THAT(values_of<bool>(x <= x), ElementsAre(false, true));
    EXPECT_THAT(values_of<bool>(x > x), ElementsAre(false, false));
}

TEST(Arithmetic, NumbersAreRoundedToTheArraysTypeFirst) {
    const stream s;
    array x = full(1, 0.1, dtype::float16, s);
    EXPECT_TRUE((x == 0.1).read<bool>()[0]);
    array y = full(1, 0.1, dtype::float32, s);
    EXPECT_TRUE((y == 0.1).read<bool>()[0]);
    EXPECT_EQ((2.0 / full(1, 4, dtype::float32)).read<float>()[0], 0.5F);
    EXPECT_EQ((1 - ones(1, dtype::int16)).read<std::int16_t>()[0], 0);
}

TEST(Arithmetic, InPlaceChangesTheElementsAndNothingElse) {
    const stream s;
    const use current(s);
    array x = make_array<std::int32_t>(s, {2, 3}, {0, 1, 2, 3, 4, 5});
    x[{ellipsis, 1}] += 10;
    x[0] *= x[1];
    EXPECT_THAT(values_of<std::int32_t>(x), ElementsAre(0, 154, 10, 3, 14, 5));
    array y = arange(0, 6);
    y.slice(1, 6) += y.slice(0, 5);
    EXPECT_THAT(values_of<std::int64_t>(y), ElementsAre(0, 1, 3, 5, 7, 9)) << "as if all had been computed first";
    y -= y[slice{{}, {}, -1}];
    EXPECT_THAT(values_of<std::int64_t>(y), ElementsAre(-9, -6, -2, 2, 6, 9));
    y += y[5];
    EXPECT_THAT(values_of<std::int64_t>(y), ElementsAre(0, 3, 7, 11, 15, 18));
    array flags = y > 5;
    flags &= y < 12;
    EXPECT_THAT(values_of<bool>(flags), ElementsAre(false, false, true, true, false, false));
    array narrow = zeros(6, dtype::int16, s);
    compute(s, binary_operation::add, y, 1, narrow);
    EXPECT_THAT(values_of<std::int16_t>(narrow), ElementsAre(1, 4, 8, 12, 16, 19));
    EXPECT_THROW(x += arange(0, 4), argument_error);
    EXPECT_THROW(x[0] += x, argument_error) << "the array would have to grow";
    EXPECT_THROW(x.broadcast_to({2, 2, 3}) += 1, argument_error);
}

TEST(Arithmetic, SelectTakesFromOneOrTheOther) {
    const stream s;
    array x = arange(0, 4);
    EXPECT_THAT(values_of<double>(select(s, x > 1, x, 0.5)), ElementsAre(0.5, 0.5, 2, 3));
    EXPECT_THAT(values_of<std::int64_t>(select(s, x, 7, 8)), ElementsAre(8, 7, 7, 7));
    EXPECT_EQ(select(s, x[{slice{}, new_axis}], ones(3, dtype::complex64), x[0]).shape(), shape({4, 3}));
    EXPECT_THROW((void)select(s, x, ones(3), 1), argument_error);
    EXPECT_THROW((void)select(s, x, ones(4, dtype::int8), 1000), argument_error);
}

TEST(Arithmetic, LargeArraysAndOddShapes) {
    const stream s;
    array x = arange(100003, 0, -1, dtype::float64, s);
    array y = random(100003, 1, dtype::float32, s);
    const std::vector<double> sum = values_of<double>(add(s, x, y));
    const std::vector<double> a = values_of<double>(x);
    const std::vector<float> b = values_of<float>(y);
    for (std::size_t i = 0; i < sum.size(); ++i) {
        ASSERT_EQ(sum[i], a[i] + static_cast<double>(b[i]));
    }
    EXPECT_EQ((zeros({0, 3}) + zeros({1, 3})).shape(), shape({0, 3}));
    EXPECT_EQ((zeros(shape()) + 1).read<double>()[0], 1.0);
    array cube = arange(0, 3 * 5 * 7).reshape({3, 5, 7});
    const std::vector<std::int64_t> turned =
        values_of<std::int64_t>(cube.transpose({2, 0, 1}) + cube.transpose({2, 0, 1})[slice{{}, {}, -1}]);
    for (std::size_t k = 0; k < 7; ++k) {
        for (std::size_t i = 0; i < 3; ++i) {
            for (std::size_t j = 0; j < 5; ++j) {
                ASSERT_EQ(turned[(k * 3 + i) * 5 + j], static_cast<std::int64_t>(2 * (i * 35 + j * 7) + 6));
            }
        }
    }
}

}  // namespace
}  // namespace weir
