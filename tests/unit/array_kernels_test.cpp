// The results of the array kernels for each operation and each element type, against the host's loops, bit for bit. Their sources are
// compiled for the host here; array_cuda_test.cpp covers what differs in a GPU's arithmetic.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <string>
#include <utility>
#include <vector>

#include "array/cuda/body.hpp"
#include "array/cuda/call.hpp"
#include "array/element_body.hpp"
#include "array/elementwise.hpp"
#include "array/loops.hpp"
#include "array/operation.hpp"
#include "support/array_values.hpp"
#include "support/compiled_kernels.hpp"
#include "weir/weir.hpp"

namespace weir::array_kernels {
namespace {

using test::compiled_kernels;
using test::differences;
using test::interesting;

/// Kernels beside what the host's loops gave for the same operands.
class Kernels : public ::testing::Test {
protected:
    /// A call that writes `out`, which is to become `wanted`.
    void expect(const std::string& name, const array& out, const array& wanted, function what, dtype computed,
                const std::vector<argument>& inputs, const std::vector<array>& arrays,
                std::array<std::uint64_t, 2> extra = {}) {
        std::vector<walk::operand> operands = {operation::operand_of(out)};
        static constexpr std::array<std::int64_t, shape::most> zeros{};
        std::vector<array> seen;
        seen.reserve(arrays.size());
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            if (inputs[i].number != nullptr) {
                operands.push_back({nullptr, std::span(zeros).first(out.dimensions())});
            } else {
                seen.push_back(arrays[i].broadcast_to(out.shape()));
                operands.push_back(operation::operand_of(seen.back()));
            }
        }
        const walk::plan all(out.shape().extents(), operands);
        pending one{name, out, wanted, arrays, call_of(what, {out.dtype(), computed, nullptr}, inputs, all, extra), 0};
        one.made.kernel.wide = wide;
        one.number = kernels_.add(one.made.kernel);
        calls_.push_back(std::move(one));
    }

    /// For each call the number of elements that differ from what is wanted.
    std::vector<std::size_t> run() {
        cpu().synchronize();
        EXPECT_EQ(kernels_.compile(), "");
        std::vector<std::size_t> all;
        for (const pending& one : calls_) {
            kernels_.run(one.number, one.made.words, 1 + static_cast<unsigned>(one.number % 3));
            all.push_back(differences(one.out, one.wanted));
        }
        return all;
    }

    void run_all() {
        const std::vector<std::size_t> found = run();
        ASSERT_FALSE(found.empty());
        for (std::size_t i = 0; i < found.size(); ++i) {
            EXPECT_EQ(found[i], 0U) << calls_[i].name;
        }
    }

    stream s;
    bool wide = false;  ///< elements are counted with 64 bits, as for arrays with very many

private:
    struct pending {
        std::string name;
        array out;
        array wanted;
        std::vector<array> inputs;
        call made;
        std::size_t number;
    };
    compiled_kernels kernels_;
    std::vector<pending> calls_;
};

std::string named(const char* what, int number, dtype type) {
    return std::string(what) + " " + std::to_string(number) + " of " + std::string(name_of(type));
}

constexpr int operations = static_cast<int>(binary_operation::bitwise_xor) + 1;

TEST_F(Kernels, DoWhatTheLoopsDoForEachBinaryOperationAndType) {
    for (int number = 0; number < operations; ++number) {
        const auto what = static_cast<binary_operation>(number);
        for (const dtype type : arithmetic_dtypes()) {
            const loops::binary_loop how = loops::find(what, type);
            if (how.run == nullptr) {
                continue;
            }
            array x = interesting(s, type, 1);
            array y = interesting(s, type, 2);
            if (what == binary_operation::power && kind_of(how.a) == dtype_kind::signed_integer) {
                y = select(s, y < 0, 3, y);
            }
            // For numbers that are not integers, the host's pow may round differently.
            const bool exact = what != binary_operation::power || kind_of(how.a) < dtype_kind::real;
            if (exact) {
                array wanted = compute(s, what, x, y);
                array out = zeros(x.shape(), wanted.dtype(), s);
                expect(named("operation", number, type), out, wanted, of(what), loops::computed_in(how.result),
                       {{type, how.a, nullptr}, {type, how.b, nullptr}}, {x, y});
            }
        }
    }
    run_all();
}

TEST_F(Kernels, CompareIntegersWithAndWithoutSignByTheirValues) {
    array x = interesting(s, dtype::uint64, 1);
    array y = interesting(s, dtype::int64, 2);
    for (int number = static_cast<int>(binary_operation::equal);
         number <= static_cast<int>(binary_operation::greater_equal); ++number) {
        const auto what = static_cast<binary_operation>(number);
        for (const bool swapped : {false, true}) {
            const array& a = swapped ? y : x;
            const array& b = swapped ? x : y;
            array wanted = compute(s, what, a, b);
            expect(named("comparison", number, a.dtype()), zeros(a.shape(), dtype::bool_, s), wanted, of(what),
                   dtype::bool_, {{a.dtype(), a.dtype(), nullptr}, {b.dtype(), b.dtype(), nullptr}}, {a, b});
        }
    }
    run_all();
}

TEST_F(Kernels, ConvertEachTypeToEachOther) {
    for (const dtype from : arithmetic_dtypes()) {
        array x = interesting(s, from, 3);
        for (const dtype to : arithmetic_dtypes()) {
            array wanted = astype(s, x, to);
            expect(std::string(name_of(from)) + " to " + std::string(name_of(to)), zeros(x.shape(), to, s), wanted,
                   function::same, to, {{from, to, nullptr}}, {x});
        }
    }
    run_all();
}

TEST_F(Kernels, DoTheRestForEachType) {
    for (const dtype type : arithmetic_dtypes()) {
        array x = interesting(s, type, 4);
        for (const unary_operation what : {unary_operation::negative, unary_operation::invert}) {
            if (const loops::unary_loop how = loops::find(what, type); how.run != nullptr) {
                const bool is_negative = what == unary_operation::negative;
                expect(named("unary", static_cast<int>(what), type), zeros(x.shape(), type, s), compute(s, what, x),
                       is_negative ? function::negative : function::invert, how.in, {{type, how.in, nullptr}}, {x});
            }
        }
        array y = interesting(s, type, 5);
        array condition = interesting(s, dtype::float16, 6);
        expect(named("select", 0, type), zeros(x.shape(), type, s), select(s, condition, x, y), function::select, type,
               {{dtype::float16, dtype::bool_, nullptr}, {type, type, nullptr}, {type, type, nullptr}},
               {condition, x, y});
        if (type != dtype::bool_ && !is_complex(type)) {
            expect(named("count", 0, type), zeros({70}, type, s), arange(-30, 40, 1, type, s), function::counted,
                   dtype::int64, {}, {}, {static_cast<std::uint64_t>(-30), 1});
            expect(named("count", 1, type), zeros({70}, type, s), arange(0.25, 1000, 14.3, type, s), function::counted,
                   dtype::float64, {}, {}, {std::bit_cast<std::uint64_t>(0.25), std::bit_cast<std::uint64_t>(14.3)});
        }
    }
    for (const dtype type : {dtype::float32, dtype::float64}) {
        expect(named("random", 0, type), zeros({4099}, type, s), random(4099, 77, type, s), function::random, type, {},
               {}, {77, 0});
    }
    run_all();
}

TEST_F(Kernels, ReachElementsWithAnyStridesOfAnyNumberOfDimensions) {
    for (const std::size_t dimensions : {0U, 1U, 2U, 3U, 4U, 5U, 9U, 32U}) {
        wide = dimensions % 2 == 1;
        std::vector<std::int64_t> extents(dimensions, 2);
        for (std::size_t d = 0; d < dimensions; ++d) {
            extents[d] = dimensions > 8 ? (d % 4 == 0 ? 2 : 1) : 3;
        }
        std::int64_t count = 1;
        for (const std::int64_t one : extents) {
            count *= one;
        }
        array x = arange(0, count, 1, dtype::int32, s).reshape(shape(extents));
        array y = (arange(0, count, 1, dtype::int16, s) * 7).reshape(shape(extents)).t();
        if (y.shape() == x.shape()) {
            array wanted = compute(s, binary_operation::subtract, x, y);
            array out = zeros(wanted.shape(), dtype::int32, s).t();
            if (out.shape() == wanted.shape()) {
                expect("dimensions " + std::to_string(dimensions), out, wanted, of(binary_operation::subtract),
                       dtype::int32, {{dtype::int32, dtype::int32, nullptr}, {dtype::int16, dtype::int32, nullptr}},
                       {x, y});
            }
        }
        const std::int32_t number = 40;
        expect("a number, dimensions " + std::to_string(dimensions), zeros(x.shape(), dtype::int32, s), 40 - x,
               of(binary_operation::subtract), dtype::int32,
               {{dtype::int32, dtype::int32, reinterpret_cast<const std::byte*>(&number)},
                {dtype::int32, dtype::int32, nullptr}},
               {x, x});
    }
    array table = arange(0, 600, 1, dtype::int32, s).reshape({20, 30});
    array row = arange(0, 30, 1, dtype::int64, s);
    array part = table[{slice{{}, {}, -2}, slice{1, {}, 3}}];
    expect("backwards and broadcast", zeros({10, 10}, dtype::int64, s), part + row[slice{{}, {}, -3}],
           of(binary_operation::add), dtype::int64,
           {{dtype::int32, dtype::int64, nullptr}, {dtype::int64, dtype::int64, nullptr}},
           {part, row[slice{{}, {}, -3}]});
    run_all();
}

/// a * x + 1 on the host, in the form of a compiled text.
void multiply_and_add_one(const std::array<const std::byte*, 2>& in, std::byte* out, std::size_t count) {
    const auto* const x = reinterpret_cast<const float*>(in[0]);
    const auto* const a = reinterpret_cast<const float*>(in[1]);
    auto* const y = reinterpret_cast<float*>(out);
    for (std::size_t i = 0; i < count; ++i) {
        y[i] = a[i] * x[i] + 1;
    }
}

/// The same as text for CUDA devices.
function text_body(const std::string& expression) {
    return function_of({"body_of_a_test::computed", R"(
namespace weir::body_of_a_test {
struct computed {
    __device__ weir::float32 operator()(weir::float32 x, weir::float32 a) const { return )" +
                                                        expression + R"(; }
};
}  // namespace weir::body_of_a_test
)"});
}

TEST_F(Kernels, ABodyThatIsAddedIsAnOperationLikeWeirsOwn) {
    const element_body<2> added(multiply_and_add_one, text_body("a * x + 1"));
    const array table = interesting(s, dtype::float32, 1);
    const array x = arange(0, 600, 1, dtype::int32, s).reshape({20, 30}).t();  // converted, and not in C order
    const array row = arange(0, 20, 1, dtype::float32, s);
    const std::array<std::pair<array, array>, 2> operands = {std::pair{table, table}, std::pair{x, row}};
    for (const auto& [left, right] : operands) {
        const operand one(left);
        const operand two(right);
        const array wanted = zeros(left.shape(), dtype::float64, s);  // to which the results are converted
        elementwise<2, element_body<2>>::enqueue(
            s, wanted, dtype::float32,
            {{{&one, dtype::float32, dtype::float32}, {&two, dtype::float32, dtype::float32}}}, added);
        expect("added", zeros(left.shape(), dtype::float64, s), wanted, added.same_as(), dtype::float32,
               {{left.dtype(), dtype::float32, nullptr}, {right.dtype(), dtype::float32, nullptr}}, {left, right});
    }
    // Control: another text is another function, whose results differ.
    const array wanted = add(s, multiply(s, x, row), 1);
    const std::vector<argument> inputs = {{x.dtype(), dtype::float32, nullptr}, {row.dtype(), dtype::float32, nullptr}};
    expect("by operators", zeros(x.shape(), wanted.dtype(), s), wanted, added.same_as(), dtype::float32, inputs,
           {x, row});
    expect("another text", zeros(x.shape(), wanted.dtype(), s), wanted, text_body("a * x + 2"), dtype::float32, inputs,
           {x, row});
    EXPECT_THAT(run(), ::testing::ElementsAre(0U, 0U, 0U, 600U));
}

TEST_F(Kernels, AnEqualBodyIsTheSameFunction) {
    const function one = text_body("x");
    EXPECT_GT(one, function::larger) << "none of Weir's own";
    EXPECT_EQ(text_body("x"), one);
    EXPECT_NE(text_body("a"), one);
    EXPECT_EQ(body_of(one).name, "body_of_a_test::computed");
    EXPECT_EQ(function_of(body_of(of(binary_operation::power))), of(binary_operation::power));
}

/// Control: the tests above can fail.
TEST_F(Kernels, OfAnotherOperationAreFoundOut) {
    array x = interesting(s, dtype::float32, 1);
    array y = interesting(s, dtype::float32, 2);
    const auto inputs = std::vector<argument>(2, {dtype::float32, dtype::float32, nullptr});
    for (const binary_operation what : {binary_operation::add, binary_operation::subtract}) {
        expect("a sum", zeros(x.shape(), dtype::float32, s), add(s, x, y), of(what), dtype::float32, inputs, {x, y});
    }
    expect("the sign of 0", zeros({3}, dtype::float32, s), full({3}, -0.0, dtype::float32, s), function::same,
           dtype::float32, {{dtype::float32, dtype::float32, nullptr}}, {zeros({3}, dtype::float32, s)});
    const std::vector<std::size_t> found = run();
    EXPECT_EQ(found[0], 0U);
    EXPECT_GT(found[1], 100U);
    EXPECT_EQ(found[2], 3U);
}

}  // namespace
}  // namespace weir::array_kernels
