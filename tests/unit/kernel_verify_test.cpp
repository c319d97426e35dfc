// Rule K1: with WEIR_VERIFY_ACCESS, kernels of a CUDA device are held to what they declare. On a GPU as well.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "kernel_support.hpp"
#include "runtime/submission/verify_access.hpp"
#include "weir/weir.hpp"

namespace weir::test {
namespace {

using runtime::verify_access;
using ::testing::HasSubstr;

constexpr const char* source = R"(
extern "C" __global__ void careless(float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = 2 * x[i];
        if (i == 700) {
            x[i] = 7;
        }
    }
}
extern "C" __global__ void half(float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n / 2) {
        y[i] = 5;
    }
}
)";

class VerifiedKernels : public ::testing::Test {
protected:
    completion run_careless() {
        return launch(on(s_).label("careless"), careless_, {4, 256}, in<float>(x_), out<float>(y_), std::int32_t{1000});
    }
    static std::string failure_of(const completion& of) {
        return message_of<operation_error>([&] { of.synchronize(); });
    }

    kernel careless_ = kernel::from_source(source, "careless");
    kernel half_ = kernel::from_source(source, "half");
    stream s_{cuda()};
    array x_ = full({1000}, 2, dtype::float32, s_);
    array y_ = full({1000}, 3, dtype::float32, s_);
};

TEST_F(VerifiedKernels, K1AChangeOfWhatIsOnlyReadFailsTheResult) {
    const verify_access::scope verified;
    const std::string said = failure_of(run_careless());
    EXPECT_THAT(said, HasSubstr("\"careless\""));
    EXPECT_THAT(said, HasSubstr("kernel_verify_test.cpp"));
    EXPECT_THAT(said, HasSubstr("only reads operand 1"));
    EXPECT_THAT(said, HasSubstr("within [2560, 2816) of memory #" + std::to_string(x_.buffer().unique_id())));
    EXPECT_THROW(static_cast<void>(y_.read<float>()), operation_error) << "what it wrote is not valid";
}

TEST_F(VerifiedKernels, K1ControlWithoutItNothingIsSaid) {
    EXPECT_EQ(failure_of(run_careless()), "nothing was thrown");
    EXPECT_EQ(x_.read<float>()[700], 7);
}

TEST_F(VerifiedKernels, K1WhatIsDeclaredWithOutIsNanBefore) {
    for (const bool is_verified : {true, false}) {
        std::optional<verify_access::scope> verified;
        if (is_verified) {
            verified.emplace();
        }
        fill(s_, y_, 3);
        launch(s_, half_, {4, 256}, out<float>(y_), std::int32_t{1000});
        const auto seen = y_.read<float>();
        EXPECT_EQ(seen[499], 5);
        EXPECT_EQ(std::isnan(seen[500]), is_verified) << "it does not write all that it declares";
    }
}

TEST_F(VerifiedKernels, K1WhatKeepsToItsDeclarationComputesAsBefore) {
    const verify_access::scope verified;
    const stream other(cuda());
    launch(s_, half_, {4, 256}, inout<float>(y_), std::int32_t{1000});
    array sum = zeros({1000}, dtype::float32, other);
    compute(other, binary_operation::add, x_, y_, sum);
    fill(s_, x_, 100);  // comes after the sum has read it
    EXPECT_EQ(sum.read<float>()[0], 7);
    EXPECT_EQ(sum.read<float>()[999], 5);
    EXPECT_EQ(x_.read<float>()[0], 100);
}

}  // namespace
}  // namespace weir::test
