// The stateful transform: which calls its states allow (rules P1, P3; scenario E6), on every device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>

#include "calls/fft/provider.hpp"
#include "support/arrays.hpp"
#include "support/devices.hpp"
#include "weir/error.hpp"
#include "weir/fft.hpp"
#include "weir/memory.hpp"

namespace weir {
namespace {

using test::here;
using test::make_array;
using test::values_of;
using ::testing::HasSubstr;
using complex = std::complex<double>;

template <class Call>
std::string state_error_of(Call&& call) {
    try {
        call();
    } catch (const state_error& thrown) {
        return thrown.what();
    }
    return "no state_error";
}

class FftPlan {
protected:
    stream on{here()};
    array a = make_array(on, {2}, std::vector<complex>{1.0, 2.0});
    array b = make_array(on, {2}, std::vector<complex>{5.0, 3.0});
    const std::vector<complex> transformed_a{3.0, -1.0};
    const std::vector<complex> transformed_b{8.0, 2.0};

    void execute(fft_plan& f) { static_cast<void>(f.execute(on, fft_direction::forward)); }
};

WEIR_CONFORMANCE_F(FftPlan, ExecutesAsOftenAsWanted) {
    fft_plan f(a);
    f.plan(on);
    EXPECT_EQ(values_of<complex>(f.execute(on, fft_direction::forward)), transformed_a);
    array out = zeros({2}, dtype::complex128, on);
    f.execute(on, fft_direction::inverse, out);
    EXPECT_EQ(values_of<complex>(out), (std::vector<complex>{1.5, -0.5}));
}

WEIR_CONFORMANCE_F(FftPlan, WantsAPlanFirst) {
    fft_plan f(a);
    EXPECT_THAT(state_error_of([&] { execute(f); }), HasSubstr("call plan before execute"));
}

WEIR_CONFORMANCE_F(FftPlan, E6AReleasedOperandIsAnErrorUntilThereIsAnother) {
    fft_plan f(a);
    f.plan(on);
    f.release_operand();
    f.release_operand();
    EXPECT_THAT(state_error_of([&] { execute(f); }), HasSubstr("call reset_operand"));
    f.reset_operand(b);
    EXPECT_EQ(values_of<complex>(f.execute(on, fft_direction::forward)), transformed_b);
}

WEIR_CONFORMANCE_F(FftPlan, E6ReleaseDropsTheReference) {
    fft_plan f(a);
    f.plan(on);
    execute(f);
    on.synchronize();
    a = {};
    const std::size_t held = memory::stats(here()).live;
    f.release_operand();
    EXPECT_LT(memory::stats(here()).live, held);
}

WEIR_CONFORMANCE_F(FftPlan, E6FreeTwiceIsFineAndUseAfterItIsNot) {
    fft_plan f(a);
    f.plan(on);
    array result = f.execute(on, fft_direction::forward);
    f.free();
    f.free();
    EXPECT_EQ(values_of<complex>(result), transformed_a) << "what was enqueued is not disturbed";
    for (const auto& use :
         {std::function<void()>([&] { execute(f); }), std::function<void()>([&] { f.plan(on); }),
          std::function<void()>([&] { f.reset_operand(b); }), std::function<void()>([&] { f.release_operand(); })}) {
        EXPECT_THAT(state_error_of(use), HasSubstr("it was freed; make a new one"));
    }
}

WEIR_CONFORMANCE_F(FftPlan, MovesAndLeavesAFreedOne) {
    fft_plan f(a);
    f.plan(on);
    fft_plan g(std::move(f));
    EXPECT_EQ(values_of<complex>(g.execute(on, fft_direction::forward)), transformed_a);
    EXPECT_THAT(state_error_of([&] { execute(f); }), HasSubstr("freed"));  // NOLINT(bugprone-use-after-move): defined
}

WEIR_CONFORMANCE_F(FftPlan, RefusesAnotherShapeOrType) {
    fft_plan f(a);
    EXPECT_THROW(f.reset_operand(zeros({3}, dtype::complex128, on)), argument_error);
    EXPECT_THROW(f.reset_operand(zeros({2}, dtype::complex64, on)), argument_error);
    EXPECT_THROW(fft_plan(zeros({2}, dtype::float64, on), {}, fft_kind::complex_to_complex), argument_type_error);
    EXPECT_THROW(fft_plan(a, {}, fft_kind::real_to_complex), argument_type_error);
    EXPECT_THROW(fft_plan(a, {.n = 0}), argument_error);
}

WEIR_CONFORMANCE_F(FftPlan, RealKindsGoOneWay) {
    array x = make_array(on, {4}, std::vector<double>{1, 2, 3, 4});
    fft_plan forward(x);
    forward.plan(on);
    array spectrum = forward.execute(on, fft_direction::forward);
    EXPECT_EQ(values_of<complex>(spectrum), (std::vector<complex>{10.0, {-2, 2}, -2.0}));
    EXPECT_THROW(static_cast<void>(forward.execute(on, fft_direction::inverse)), argument_error);

    fft_plan inverse(spectrum, {}, fft_kind::complex_to_real);
    inverse.plan(on);
    EXPECT_EQ(values_of<double>(inverse.execute(on, fft_direction::inverse)), (std::vector<double>{1, 2, 3, 4}));
    EXPECT_THROW(static_cast<void>(inverse.execute(on, fft_direction::forward)), argument_error);
}

WEIR_CONFORMANCE_F(FftPlan, KeepsAWorkspaceWhereItNeedsOne) {
    fft_plan direct(a);
    direct.plan(on);
    EXPECT_EQ(direct.workspace_bytes(), 0U);
    fft_plan padded(a, {.n = 8}, fft_kind::complex_to_real);
    EXPECT_EQ(padded.workspace_bytes(), 0U) << "before plan";
    padded.plan(on);
    EXPECT_GE(padded.workspace_bytes(), 5 * sizeof(complex));
}

WEIR_CONFORMANCE_F(FftPlan, PlansAreForAllAxesUnlessSomeAreNamed) {
    array x = make_array(on, {2, 2}, std::vector<complex>{1, 2, 3, 4});
    fft_plan all(x);
    all.plan(on);
    EXPECT_EQ(values_of<complex>(all.execute(on, fft_direction::forward)), (std::vector<complex>{10, -2, -4, 0}));
    fft_plan columns(x, {.axis = 0});
    columns.plan(on);
    EXPECT_EQ(values_of<complex>(columns.execute(on, fft_direction::forward)), (std::vector<complex>{4, 6, -2, -2}));
}

/// Transforms by another provider, or fails where the test asks for it.
class faulty_provider final : public calls::fft_provider {
public:
    enum class fault : std::uint8_t { none, prepare, execute };
    std::atomic<fault> next{fault::none};

    std::shared_ptr<const calls::fft_transform> prepare(const calls::fft_problem& problem) override {
        if (next == fault::prepare) {
            throw device_error("the library has no plan");
        }
        return std::make_shared<transform>(real_.prepare(problem), next);
    }

private:
    struct transform final : calls::fft_transform {
        transform(std::shared_ptr<const calls::fft_transform> of, const std::atomic<fault>& now)
            : real(std::move(of)), wanted(now) {}
        void execute(const std::byte* in, std::byte* out) const override {
            if (wanted == fault::execute) {
                throw device_error("the library failed");
            }
            real->execute(in, out);
        }
        std::shared_ptr<const calls::fft_transform> real;
        const std::atomic<fault>& wanted;
    };
    calls::fft_provider& real_ = calls::cpu_fft_provider();
};

WEIR_CONFORMANCE_F(FftPlan, E6AnExceptionInTheMiddleLeavesThePlanAsItWas) {
    faulty_provider provider;
    const calls::replaced_fft_provider replaced(provider);
    on.synchronize();
    const std::size_t held = memory::stats(here()).live;
    {
        fft_plan f(a);
        provider.next = faulty_provider::fault::prepare;
        EXPECT_THROW(f.plan(on), device_error);
        EXPECT_THAT(state_error_of([&] { execute(f); }), HasSubstr("call plan before execute"));
        provider.next = faulty_provider::fault::none;
        f.plan(on);
        provider.next = faulty_provider::fault::prepare;
        EXPECT_THROW(execute(f), device_error) << "nothing is enqueued";
        provider.next = faulty_provider::fault::none;
        EXPECT_EQ(values_of<complex>(f.execute(on, fft_direction::forward)), transformed_a);
    }
    EXPECT_EQ(memory::stats(here()).live, held);
}

WEIR_CONFORMANCE_F(FftPlan, E6AFailedTransformIsToldWhereItsResultIsRead) {
    faulty_provider provider;
    const calls::replaced_fft_provider replaced(provider);
    on.synchronize();
    const std::size_t held = memory::stats(here()).live;
    {
        fft_plan f(a);
        f.plan(on);
        provider.next = faulty_provider::fault::execute;
        array broken = f.execute(on, fft_direction::forward);
        EXPECT_THROW(values_of<complex>(broken), operation_error);
        const stream other(here());
        EXPECT_THROW(static_cast<void>(fft::fft(other, a, {.blocking = call_blocking::always})), operation_error);
        provider.next = faulty_provider::fault::none;
        EXPECT_EQ(values_of<complex>(f.execute(on, fft_direction::forward)), transformed_a);
    }
    EXPECT_EQ(memory::stats(here()).live, held);
}

WEIR_CONFORMANCE_F(FftPlan, E6AnExceptionOfTheProgramsFreesIt) {
    on.synchronize();
    const std::size_t held = memory::stats(here()).live;
    EXPECT_THROW(
        {
            fft_plan f(full({1000}, 1, dtype::complex128, on), {.n = 3000}, fft_kind::complex_to_real);
            f.plan(on);
            static_cast<void>(f.execute(on, fft_direction::inverse));
            throw std::runtime_error("of the program");
        },
        std::runtime_error);
    EXPECT_EQ(memory::stats(here()).live, held);
}

WEIR_CONFORMANCE_F(FftPlan, E6NothingWorksWithoutAnOperand) {
    fft_plan f(a);
    f.release_operand();
    EXPECT_THAT(state_error_of([&] { f.plan(on); }), HasSubstr("call reset_operand before plan"));
}

}  // namespace
}  // namespace weir
