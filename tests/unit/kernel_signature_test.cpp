// The texts that declare a kernel's parameters (API.md: Kernel).
#include "array/kernel_signature.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "weir/error.hpp"

namespace weir::kernels {
namespace {

using use = parameter_use;

std::string refusal(const std::string& text) {
    try {
        static_cast<void>(parse_signature(text));
    } catch (const argument_error& wrong) {
        return wrong.what();
    }
    return {};
}

TEST(KernelSignature, TheExampleOfTheInterface) {
    const std::vector<parameter> expected = {{"x", dtype::float32, use::in},
                                             {"y", dtype::float32, use::inout},
                                             {"a", dtype::float32, use::value},
                                             {"n", dtype::int64, use::value}};
    EXPECT_EQ(parse_signature("in float* x, inout float* y, float a, int64 n"), expected);
    EXPECT_EQ(parse_signature("  in  float *x,inout float*y ,\n float\ta,int64 n "), expected);
    EXPECT_EQ(parse_signature("in const float* __restrict__ x, inout float* y, const float a, int64 n"), expected);
}

TEST(KernelSignature, NothingIsNoParameters) {
    EXPECT_TRUE(parse_signature("").empty());
    EXPECT_TRUE(parse_signature(" \n ").empty());
}

TEST(KernelSignature, EveryNumpyNameIsAType) {
    for (const dtype type : arithmetic_dtypes()) {
        const std::string name(name_of(type));
        const std::vector<parameter> expected = {{"x", type, use::out}, {"s", type, use::value}};
        EXPECT_EQ(parse_signature("out " + name + "* x, " + name + " s"), expected) << name;
    }
}

TEST(KernelSignature, NamesOfCpp) {
    const std::vector<std::pair<std::string, dtype>> names = {
        {"char", dtype::int8},
        {"signed char", dtype::int8},
        {"unsigned char", dtype::uint8},
        {"short", dtype::int16},
        {"unsigned short int", dtype::uint16},
        {"int", dtype::int32},
        {"signed", dtype::int32},
        {"unsigned", dtype::uint32},
        {"unsigned int", dtype::uint32},
        {"long", dtype::int64},
        {"long int", dtype::int64},
        {"long long", dtype::int64},
        {"long unsigned int", dtype::uint64},
        {"unsigned long long int", dtype::uint64},
        {"std::size_t", dtype::uint64},
        {"std::int16_t", dtype::int16},
        {"double", dtype::float64},
        {"__half", dtype::float16},
        {"__nv_bfloat16", dtype::bfloat16},
        {"std::complex<float>", dtype::complex64},
        {"cuda::std::complex< double >", dtype::complex128},
        {"thrust::complex<float>", dtype::complex64},
        {"float2", dtype::complex64},
    };
    for (const auto& [name, type] : names) {
        const std::vector<parameter> expected = {{"value", type, use::value}};
        EXPECT_EQ(parse_signature(name + " value"), expected) << name;
    }
}

TEST(KernelSignature, VoidIsAnyArray) {
    const std::vector<parameter> expected = {{"x", std::nullopt, use::inout}};
    EXPECT_EQ(parse_signature("inout void* x"), expected);
}

TEST(KernelSignature, AStructureIsNamedAsInC) {
    const std::vector<parameter> all = parse_signature("const struct point p, out float* y");
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all[0], (parameter{"p", std::nullopt, use::structure, "point"}));
    EXPECT_EQ(to_string(all[0]), "struct point p");
    EXPECT_FALSE(is_array(all[0]));
    EXPECT_TRUE(is_array(all[1]));
}

TEST(KernelSignature, AWordMayBeAName) {
    const std::vector<parameter> expected = {{"out", dtype::float32, use::in}, {"in", dtype::int32, use::value}};
    EXPECT_EQ(parse_signature("in float* out, int in"), expected);
}

TEST(KernelSignature, WhatIsWrongIsQuotedWithTheMend) {
    const std::vector<std::pair<std::string, std::string>> mistakes = {
        {"float* x",
         "\"float* x\" of a kernel's signature does not say how the kernel uses the array: write in, out or inout"},
        {"in float x", "is a value, which is neither in nor out"},
        {"in float* x, ", "is empty: there is a comma too many"},
        {",", "is empty"},
        {"in float* x,, int n", "is empty"},
        {"in float*", "has no name, or no type"},
        {"n", "has no name, or no type"},
        {"unsigned long", "has no name"},
        {"in float", "has no name"},
        {"in float** x", "is no array of numbers"},
        {"in float* x[3]", "a character that does not belong there, '['"},
        {"in quaternion* q", "a type that is not known, \"quaternion\""},
        {"long float x", "a type that is not known, \"long float\""},
        {"long long long n", "a type that is not known"},
        {"void n", "a type that is not known, \"void\""},
        {"out const float* x", "is written and const at once"},
        {"in float* x, int x", "\"int x\" of a kernel's signature has a name that another one has"},
        {"in float* x; int n", "a character that does not belong there, ';'"},
    };
    for (const auto& [text, expected] : mistakes) {
        EXPECT_NE(refusal(text).find(expected), std::string::npos) << text << "\n" << refusal(text);
        EXPECT_NE(refusal(text).find("a signature looks like this"), std::string::npos) << text;
    }
}

TEST(KernelSignature, ItCanBePrinted) {
    std::string printed;
    for (const parameter& one : parse_signature("in float *x,inout void *y,unsigned n,out double* z")) {
        printed += to_string(one) + "; ";
    }
    EXPECT_EQ(printed, "in float32* x; inout void* y; uint32 n; out float64* z; ");
}

TEST(KernelSignature, NoTextBreaksIt) {
    const std::string letters = "in out*<>:,x ";
    std::uint32_t state = 1;
    int refused = 0;
    for (int round = 0; round < 20000; ++round) {
        std::string text;
        for (std::uint32_t length = state % 16; length > 0; --length) {
            state = state * 1664525U + 1013904223U;
            text += letters[(state >> 16U) % letters.size()];
        }
        state = state * 1664525U + 1013904223U;
        try {
            for (const parameter& one : parse_signature(text)) {
                EXPECT_FALSE(one.name.empty()) << text;
            }
        } catch (const argument_error&) {
            ++refused;
        }
    }
    EXPECT_GT(refused, 10000);
}

}  // namespace
}  // namespace weir::kernels
