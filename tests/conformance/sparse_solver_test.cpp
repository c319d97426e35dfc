// Scenarios E6 and E9 for the stateful form: the states of a solver, new operands, failed phases, and what may be dropped when.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "support/arrays.hpp"
#include "support/devices.hpp"
#include "support/messages.hpp"
#include "support/sparse_needs.hpp"
#include "support/sparse_systems.hpp"
#include "weir/arithmetic.hpp"
#include "weir/sparse.hpp"
#include "weir/testing.hpp"

namespace weir {
namespace {

using test::are_near;
using test::here;
using test::make_array;
using test::make_csr;
using test::message_of;
using test::residual;
using test::right_hand_side;
using test::sparse_matrix;
using test::values_of;
using ::testing::AllOf;
using ::testing::HasSubstr;
using numbers = std::vector<double>;

constexpr std::int64_t size = 12;

/// A system on the device, and its numbers.
struct given_system {
    stream on{here()};
    test::dense_matrix<double> elements = sparse_matrix<double>(matrix_kind::general, size);
    numbers right = right_hand_side<double>(size);
    csr_matrix a = make_csr(on, elements);
    array b = make_array(on, {size}, right);

    [[nodiscard]] double residual_of(const array& x) const { return residual(elements, values_of<double>(x), right); }
    /// The same matrix times a factor, in arrays of its own.
    [[nodiscard]] csr_matrix times(double factor) const {
        csr_matrix made = a;
        made.values = copy(on, a.values);
        made.values *= factor;
        return made;
    }
};

WEIR_CONFORMANCE(E6, PhasesComeInTheirOrder) {
    WEIR_NEEDS_SOLVER();
    given_system of;
    direct_solver s(of.a, of.b);
    EXPECT_THAT(message_of<state_error>([&] { s.factorize(of.on); }), HasSubstr("call plan before factorize"));
    EXPECT_THAT(message_of<state_error>([&] { static_cast<void>(s.solve(of.on)); }),
                HasSubstr("call plan before solve"));
    s.plan(of.on);
    EXPECT_THAT(message_of<state_error>([&] { static_cast<void>(s.solve(of.on)); }),
                HasSubstr("call factorize before solve"));
    s.factorize(of.on);
    EXPECT_LT(of.residual_of(s.solve(of.on)), 1.0);
    s.plan(of.on);
    EXPECT_THAT(message_of<state_error>([&] { static_cast<void>(s.solve(of.on)); }),
                HasSubstr("call factorize before solve"));
}

WEIR_CONFORMANCE(E6, ReleasedAndFreed) {
    WEIR_NEEDS_SOLVER();
    given_system of;
    direct_solver s(of.a, of.b);
    s.plan(of.on);
    s.factorize(of.on);
    s.release_operands();
    s.release_operands();
    EXPECT_THAT(message_of<state_error>([&] { static_cast<void>(s.solve(of.on)); }),
                HasSubstr("the right-hand side was released; call reset_operands before solve"));
    EXPECT_THAT(message_of<state_error>([&] { s.factorize(of.on); }),
                HasSubstr("the matrix was released; call reset_operands before factorize"));
    s.reset_operands(of.b);
    EXPECT_LT(of.residual_of(s.solve(of.on)), 1.0) << "the factorization stays";
    direct_solver moved = std::move(s);
    EXPECT_LT(of.residual_of(moved.solve()), 1.0);
    moved.free();
    moved.free();
    for (direct_solver* const each : {&s, &moved}) {
        EXPECT_THAT(message_of<state_error>([&] { each->plan(of.on); }), HasSubstr("it was freed; make a new one"));
        EXPECT_THROW(each->factorize(), state_error);
        EXPECT_THROW(static_cast<void>(each->solve()), state_error);
        EXPECT_THROW(each->reset_operands(of.b), state_error);
        EXPECT_THROW(each->release_operands(), state_error);
    }
}

WEIR_CONFORMANCE(E9, NewValuesAndNewRightHandSides) {
    WEIR_NEEDS_SOLVER();
    given_system of;
    direct_solver s(of.a, of.b);
    s.plan(of.on);
    s.factorize(of.on);
    const numbers first = values_of<double>(s.solve(of.on));

    s.reset_operands(of.times(2.0));
    EXPECT_THROW(static_cast<void>(s.solve(of.on)), state_error) << "these values are not factorized";
    s.factorize(of.on);
    numbers doubled = values_of<double>(s.solve(of.on));
    for (double& each : doubled) {
        each *= 2;
    }
    EXPECT_LT(residual(of.elements, doubled, of.right), 1.0);

    const numbers many = right_hand_side<double>(size, 3);
    s.reset_operands(of.times(1.0), make_array(of.on, {size, 3}, many));
    s.factorize(of.on);
    EXPECT_LT(residual(of.elements, values_of<double>(s.solve(of.on)), many), 1.0);

    // Another structure: analyzed anew.
    test::dense_matrix<double> other{size, numbers(size * size, 0.0)};
    for (std::int64_t i = 0; i < size; ++i) {
        other.at(i, i) = 2.0;
    }
    s.reset_operands(make_csr(of.on, other), of.b);
    EXPECT_THAT(message_of<state_error>([&] { s.factorize(of.on); }), HasSubstr("call plan before factorize"));
    s.plan(of.on);
    s.factorize(of.on);
    EXPECT_LT(residual(other, values_of<double>(s.solve(of.on)), of.right), 1.0);
}

/// A diagonal matrix, and one with as many elements at other places.
csr_matrix turned(const stream& on) {
    return make_csr(on, test::csr_elements<double>{{0, 1, 2, 3}, {1, 0, 2}, {1, 2, 4}});
}
csr_matrix straight(const stream& on) {
    return make_csr(on, test::csr_elements<double>{{0, 1, 2, 3}, {0, 1, 2}, {1, 2, 4}});
}

WEIR_CONFORMANCE(E9, AsManyElementsAtOtherPlacesAreFoundOut) {
    WEIR_NEEDS_SOLVER();
    const stream on(here());
    array b = full({3}, 8.0, dtype::float64, on);
    direct_solver s(straight(on), b);
    s.plan(on);
    s.factorize(on);
    EXPECT_THAT(values_of<double>(s.solve(on)), are_near({8, 4, 2}));

    s.reset_operands(turned(on));
    const completion failed = s.factorize(on);
    EXPECT_THAT(
        message_of<operation_error>([&] { failed.synchronize(); }),
        AllOf(HasSubstr("at other places than those that were analyzed"), HasSubstr("call plan before factorize")));
    EXPECT_THROW(static_cast<void>(values_of<double>(s.solve(on))), operation_error);
    EXPECT_THROW(s.factorize(on).synchronize(), operation_error) << "again";

    s.reset_operands(straight(on));
    s.factorize(on);
    EXPECT_THAT(values_of<double>(s.solve(on)), are_near({8, 4, 2})) << "the same places, in other arrays";
    s.release_operands();
    s.reset_operands(turned(on), b);
    EXPECT_THROW(s.factorize(on).synchronize(), operation_error) << "what was there before is not known";
    s.plan(on);
    s.factorize(on);
    EXPECT_THAT(values_of<double>(s.solve(on)), are_near({4, 8, 2}));

    direct_solver waiting(straight(on), b, {.blocking = call_blocking::always});
    waiting.plan(on);
    waiting.reset_operands(turned(on));
    EXPECT_THAT(message_of<argument_error>([&] { waiting.factorize(on); }), HasSubstr("call plan before factorize"));
}

WEIR_CONFORMANCE(E9, OperandsThatDoNotFit) {
    WEIR_NEEDS_SOLVER();
    given_system of;
    direct_solver s(of.a, of.b);
    EXPECT_THAT(message_of<argument_error>(
                    [&] { s.reset_operands(make_csr(of.on, sparse_matrix<double>(matrix_kind::general, size + 1))); }),
                AllOf(HasSubstr("the solver is for float64 (12, 12)"), HasSubstr("make a new solver for it")));
    EXPECT_THROW(s.reset_operands(make_csr(of.on, sparse_matrix<float>(matrix_kind::general, size))), argument_error);
    EXPECT_THROW(s.reset_operands(zeros({size + 1}, dtype::float64, of.on)), argument_error);
    EXPECT_THROW(s.reset_operands(zeros({size}, dtype::float32, of.on)), argument_type_error);
    const device other = here().kind() == device_kind::sim ? cpu() : sim(0);
    EXPECT_THAT(message_of<argument_error>([&] { s.reset_operands(zeros({size}, dtype::float64, stream(other))); }),
                HasSubstr("copy all to one device"));
    EXPECT_THAT(message_of<argument_error>([&] { s.plan(stream(other)); }), HasSubstr("pass a stream of"));
    s.plan(of.on);
    EXPECT_THAT(message_of<argument_error>([&] { s.factorize(stream(other)); }), HasSubstr("was analyzed on"));
    s.factorize(of.on);
    array wrong = zeros({size, 2}, dtype::float64, of.on);
    EXPECT_THAT(message_of<argument_error>([&] { s.solve(of.on, wrong); }), HasSubstr("the solution has shape (12,)"));
    EXPECT_THROW(s.solve(of.on, zeros({size}, dtype::float32, of.on)), argument_type_error);
    EXPECT_THROW(s.solve(of.on, zeros({size}, dtype::float64, stream(other))), argument_error);
    EXPECT_LT(of.residual_of(s.solve(of.on)), 1.0) << "after all of that";
}

/// Matrices that no library can factorize.
std::vector<std::pair<csr_matrix, solve_options>> unsolvable(const stream& on) {
    test::dense_matrix<double> dependent{3, {1, 2, 0, 2, 4, 0, 0, 0, 1}};
    test::dense_matrix<double> indefinite{2, {1, 2, 2, 1}};
    return {{make_csr(on, dependent), {}},
            {make_csr(on, dependent), {.kind = matrix_kind::symmetric}},
            {make_csr(on, dependent, matrix_triangle::lower),
             {.kind = matrix_kind::hermitian, .triangle = matrix_triangle::lower}},
            {make_csr(on, indefinite), {.kind = matrix_kind::positive_definite}}};
}

WEIR_CONFORMANCE(E9, ASingularMatrixFailsTheFactorization) {
    WEIR_NEEDS_SOLVER();
    const stream on(here());
    for (const auto& each : unsolvable(on)) {
        const csr_matrix& a = each.first;
        solve_options how = each.second;
        const std::string why = how.kind == matrix_kind::positive_definite ? "the matrix is not positive definite"
                                                                           : "the matrix is singular";
        array b = full({a.shape[0]}, 1.0, dtype::float64, on);
        array x = solve(on, a, b, how);
        EXPECT_THAT(message_of<operation_error>([&] { static_cast<void>(values_of<double>(x)); }),
                    AllOf(HasSubstr("sparse factorization"), HasSubstr(why)));
        how.blocking = call_blocking::always;
        EXPECT_THAT(message_of<operation_error>([&] { static_cast<void>(solve(on, a, b, how)); }), HasSubstr(why));
    }
}

/// Matrices that only rounding makes differ from singular ones.
WEIR_CONFORMANCE(E9, RoundingMakesNoMatrixRegular) {
    WEIR_NEEDS_SOLVER();
    const stream on(here());
    test::dense_matrix<double> thirds{2, {0.1, 0.2, 0.3, 0.6}};
    test::dense_matrix<double> ring{
        64, numbers(64 * 64, 0.0)};  // the second difference on a circle: constants are mapped to 0
    for (std::int64_t i = 0; i < ring.n; ++i) {
        ring.at(i, i) = 0.2;
        ring.at(i, (i + 1) % ring.n) = -0.1;
        ring.at((i + 1) % ring.n, i) = -0.1;
    }
    const auto expect_refused = [&](const test::dense_matrix<double>& of, matrix_kind kind, const char* why) {
        const array b = full({of.n}, 1.0, dtype::float64, on);
        const solve_options how{.kind = kind, .blocking = call_blocking::always};
        EXPECT_THAT(message_of<operation_error>([&] { static_cast<void>(solve(on, make_csr(on, of), b, how)); }),
                    HasSubstr(why));
    };
    expect_refused(thirds, matrix_kind::general, "the matrix is singular");
    expect_refused(ring, matrix_kind::general, "the matrix is singular");
    expect_refused(ring, matrix_kind::positive_definite, "not positive definite");
}

WEIR_CONFORMANCE(P1, TheFactorsKeepToAMemoryLimit) {
    WEIR_NEEDS_SOLVER();
    const given_system of;
    const csr_matrix definite = make_csr(of.on, sparse_matrix<double>(matrix_kind::positive_definite, size));
    for (const matrix_kind kind : {matrix_kind::general, matrix_kind::positive_definite}) {
        const csr_matrix& a = kind == matrix_kind::general ? of.a : definite;
        direct_solver s(a, of.b, {.kind = kind, .memory_limit = 100});
        s.plan(of.on);
        if (explain(s).phases.front().find("cuSOLVER") != std::string::npos) {
            s.factorize(of.on).synchronize();  // it does not tell what it takes
            continue;
        }
        const completion failed = s.factorize(of.on);
        EXPECT_THAT(message_of<operation_error>([&] { failed.synchronize(); }),
                    AllOf(HasSubstr("the factors of the matrix need"), HasSubstr("the memory limit is 100 bytes")));
        direct_solver larger(a, of.b, {.kind = kind, .memory_limit = "1 MiB"});
        larger.plan(of.on);
        larger.factorize(of.on).synchronize();
    }
}

WEIR_CONFORMANCE(P1, CopiesOfOperandsOfASolverKeepToAMemoryLimit) {
    WEIR_NEEDS_SOLVER();
    const given_system of;
    solve_options how{.memory_limit = 100};
    how.execution = here() == cpu() ? sim(0) : cpu();
    EXPECT_THAT(message_of<out_of_memory>([&] { static_cast<void>(solve(of.a, of.b, how)); }),
                AllOf(HasSubstr("for copies of the operands, which lie elsewhere"), HasSubstr("limit is 100 bytes")));
    how.memory_limit = "1 MiB";
    EXPECT_LT(of.residual_of(solve(of.a, of.b, how)), 1.0);
}

WEIR_CONFORMANCE(K4, AFactorizationWithOtherValuesMendsAFailedOne) {
    WEIR_NEEDS_SOLVER();
    given_system of;
    csr_matrix a = of.a;
    a.values = zeros({of.a.values.size()}, dtype::float64, of.on);
    direct_solver s(a, of.b);
    s.plan(of.on);
    const completion failed = s.factorize(of.on);
    array x = s.solve(of.on);
    EXPECT_THROW(failed.synchronize(), operation_error);
    EXPECT_THROW(static_cast<void>(values_of<double>(x)), operation_error);
    s.reset_operands(of.a);
    s.factorize(of.on);
    EXPECT_LT(of.residual_of(s.solve(of.on)), 1.0);
}

/// Wrong indices, and the messages.
struct wrong_indices {
    std::vector<std::int32_t> offsets;
    std::vector<std::int32_t> columns;
    const char* why;
};
const std::array<wrong_indices, 6> all_wrong = {{
    {{1, 2, 3, 3}, {0, 1, 2}, "row_offsets[0] is 1, and must be 0"},
    {{0, 2, 1, 3}, {0, 1, 2}, "row_offsets[2] is 1, less than the offset before it, 2"},
    {{0, 1, 2, 4}, {0, 1, 2}, "the last of the row offsets is 4, and there are 3 column indices"},
    {{0, 1, 2, 3}, {0, 3, 2}, "column_indices[1], in row 1, is 3: it must be at least 0 and less than 3"},
    {{0, 1, 2, 3}, {0, -1, 2}, "column_indices[1], in row 1, is -1"},
    {{0, 3, 3, 3}, {0, 2, 1}, "column_indices[2], in row 0, is 1, after 2: column indices must increase within a row"},
}};

WEIR_CONFORMANCE(E9, BadIndicesAreFoundWhenTheWorkRuns) {
    WEIR_NEEDS_SOLVER();
    const stream on(here());
    array b = full({3}, 1.0, dtype::float64, on);
    for (const wrong_indices& each : all_wrong) {
        const csr_matrix a = make_csr(on, test::csr_elements<double>{each.offsets, each.columns, {1, 2, 3}});
        array x = solve(on, a, b);
        EXPECT_THAT(message_of<operation_error>([&] { static_cast<void>(values_of<double>(x)); }),
                    AllOf(HasSubstr("sparse analysis"), HasSubstr(each.why)));
        EXPECT_THAT(message_of<argument_error>(
                        [&] { static_cast<void>(solve(on, a, b, {.blocking = call_blocking::always})); }),
                    HasSubstr(each.why))
            << "a call that blocks says so itself";
    }
    const csr_matrix good = make_csr(on, test::csr_elements<double>{{0, 1, 2, 3}, {0, 1, 2}, {1, 2, 4}});
    EXPECT_EQ(values_of<double>(solve(on, good, b)), (numbers{1, 0.5, 0.25})) << "the device goes on";
}

WEIR_CONFORMANCE(E6, BlockingPhasesAreOverWhenTheyReturn) {
    WEIR_NEEDS_SOLVER();
    given_system of;
    direct_solver s(of.a, of.b, {.blocking = call_blocking::always});
    EXPECT_TRUE(s.plan(of.on).done());
    EXPECT_TRUE(s.factorize(of.on).done());
    EXPECT_TRUE(s.solve(of.on).ready());
}

/// Calls that a program may make while a solution is pending.
using letting_go = std::function<void(direct_solver&, given_system&)>;
const std::array<letting_go, 5> ways = {
    [](direct_solver& s, given_system&) { s.release_operands(); },
    [](direct_solver& s, given_system& of) { s.reset_operands(of.times(5.0), zeros({size}, dtype::float64, of.on)); },
    [](direct_solver&, given_system& of) {
        of.a = {};
        of.b = {};
    },
    [](direct_solver& s, given_system&) { s.free(); },
    [](direct_solver& s, given_system&) { direct_solver taken = std::move(s); },
};

WEIR_CONFORMANCE(E6, LetGoOfInEveryOrderWithWorkPending) {
    WEIR_NEEDS_SOLVER();
    std::array<std::size_t, 3> order{};
    for (order[0] = 0; order[0] < ways.size(); ++order[0]) {
        for (order[1] = 0; order[1] < ways.size(); ++order[1]) {
            given_system of;
            const stream late(here());
            testing::gate held;
            held.hold(late);
            direct_solver s(of.a, of.b);
            s.plan(late);
            s.factorize(late);
            array x = s.solve(late);
            for (const std::size_t way : {order[0], order[1]}) {
                try {
                    ways[way](s, of);
                } catch (const state_error&) {
                    EXPECT_TRUE(order[0] >= 3) << "only a freed solver refuses";
                } catch (const argument_error&) {
                    EXPECT_TRUE(order[0] == 2) << "only operands that are gone do not fit";
                }
            }
            EXPECT_FALSE(x.ready());
            array reused = full({size}, 7.0, dtype::float64, of.on);  // possibly the dropped memory
            held.open();
            EXPECT_LT(of.residual_of(x), 1.0) << order[0] << " then " << order[1];
        }
    }
}

}  // namespace
}  // namespace weir
