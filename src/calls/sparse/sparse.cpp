// The public interface of phases.cpp: checks the order of the phases and their operands.
#include "weir/sparse.hpp"

#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "array/operation.hpp"
#include "calls/call.hpp"
#include "calls/execution.hpp"
#include "calls/sparse/phases.hpp"
#include "calls/sparse/structure.hpp"
#include "weir/detail/passkey.hpp"
#include "weir/detail/site.hpp"
#include "weir/device.hpp"
#include "weir/dtype.hpp"
#include "weir/error.hpp"
#include "weir/stream.hpp"

namespace weir {

namespace {

constexpr const char* solver_name = "direct_solver";

/// Memory for a solution, on the device of b.
array make_solution(const on& where, const array& b) {
    const device home = calls::device_of(b, where.stream().device());
    return operation::empty_for(where, b.shape(), b.dtype(), home);
}

/// What the work has found wrong in the matrix's indices; empty if it failed for another reason.
std::string mistake_in_indices(const operation_error& failed) {
    if (failed.reason()) {
        try {
            std::rethrow_exception(failed.reason());
        } catch (const calls::structure_error& mistake) {
            return mistake.what();
        } catch (...) {
            return {};
        }
    }
    return {};
}

/// Blocks if the call has to: once. Then a mistake in the matrix's indices, which the work finds, is an argument_error of the call.
completion finished(const char* name, const calls::sparse_phases& phases, const on& where, completion end) {
    if (phases.blocks()) {
        try {
            end.synchronize(where.site(detail::key).where);
        } catch (const operation_error& failed) {
            const std::string mistake = mistake_in_indices(failed);
            if (mistake.empty()) {
                throw;
            }
            throw argument_error(std::string(name) + ": " + mistake);
        }
    }
    return end;
}

/// Whether both have their indices in the same arrays.
bool have_same_indices(const csr_matrix& a, const csr_matrix& b) {
    const auto are_same = [](const array& one, const array& other) {
        return one.device_data() == other.device_data() &&
               one.buffer().resource(detail::key) == other.buffer().resource(detail::key) &&
               one.strides()[0] == other.strides()[0];
    };
    return are_same(a.row_offsets, b.row_offsets) && are_same(a.column_indices, b.column_indices);
}

}  // namespace

completion detail::solve_into(const on& where, const csr_matrix& a, const array& b, const array& x,
                              const solve_options& how) {
    const calls::sparse_system system = calls::describe("solve", a, how);
    calls::expect_right_hand_side("solve", system, calls::home_of(a), b);
    calls::sparse_phases phases("solve", where, a, how, system);
    phases.analyze(where, a);
    phases.factorize(where, a);
    return finished("solve", phases, where, phases.solve(where, b, x));
}

array solve(const on& where, const csr_matrix& a, const array& b, const solve_options& how) {
    array x = make_solution(where, b);
    detail::solve_into(where, a, b, x, how);
    return x;
}

array solve(const csr_matrix& a, const array& b, const solve_options& how, source_location where) {
    const stream current = current_stream(calls::computing_device(how.execution, a.row_offsets));
    return solve(on(current, where), a, b, how);
}

/// What a solver holds until it is freed.
struct direct_solver::state {
    solve_options how;
    calls::sparse_system system;
    device home;
    std::optional<csr_matrix> a;
    std::optional<array> b;
    std::optional<calls::sparse_phases> phases;  ///< none: not planned
    bool is_factorized = false;
    calls::places at = calls::places::analyzed;  ///< of `a`

    state(const csr_matrix& matrix, const array& right, const solve_options& options)
        : how(options),
          system(calls::describe(solver_name, matrix, options)),
          home(calls::home_of(matrix)),
          a(matrix),
          b(right) {
        calls::expect_right_hand_side(solver_name, system, home, right);
    }

    [[nodiscard]] const csr_matrix& matrix(const char* before) const {
        if (!a) {
            throw state_error(std::string(solver_name) + ": the matrix was released; call reset_operands before " +
                              before);
        }
        return *a;
    }
    [[nodiscard]] const array& right_hand_side() const {
        if (!b) {
            throw state_error(std::string(solver_name) +
                              ": the right-hand side was released; call reset_operands before solve");
        }
        return *b;
    }
    [[nodiscard]] calls::sparse_phases& planned(const char* before) {
        if (!phases) {
            throw state_error(std::string(solver_name) + ": call plan before " + before);
        }
        return *phases;
    }
    [[nodiscard]] calls::sparse_phases& factorized() {
        calls::sparse_phases& made = planned("solve");
        if (!is_factorized) {
            throw state_error(std::string(solver_name) +
                              ": call factorize before solve, for each matrix and each set of values");
        }
        return made;
    }

    /// The stream for a call that names none.
    [[nodiscard]] stream current() const {
        return current_stream(phases ? phases->computing()
                                     : calls::computing_device(how.execution, matrix("plan").row_offsets));
    }

    void reset(const csr_matrix& matrix) {
        const calls::sparse_system given = calls::describe(solver_name, matrix, how);
        if (given.n != system.n || given.values != system.values || given.indices != system.indices) {
            throw argument_error(std::string(solver_name) + ": the solver is for " + described(system) +
                                 ", the new matrix is " + described(given) + "; make a new solver for it");
        }
        if (!calls::share_memory(calls::home_of(matrix), home)) {
            throw argument_error(std::string(solver_name) + ": the solver is for operands on " + home.name() +
                                 ", the new matrix lies on " + calls::home_of(matrix).name() +
                                 "; copy it there, or make a new solver for it");
        }
        // The arrays of before are gone: whether these are the same ones cannot be known.
        if (!a || !have_same_indices(*a, matrix)) {
            at = calls::places::to_be_compared;
        }
        a = matrix;
        is_factorized = false;
        if (given.nonzeros != system.nonzeros) {
            phases.reset();
        }
        system = given;
    }
    [[nodiscard]] static std::string described(const calls::sparse_system& of) {
        return std::string(name_of(of.values)) + " (" + std::to_string(of.n) + ", " + std::to_string(of.n) + ") with " +
               std::string(name_of(of.indices)) + " indices";
    }
};

direct_solver::direct_solver(const csr_matrix& a, const array& b, const solve_options& how)
    : state_(std::make_unique<state>(a, b, how)) {}

direct_solver::direct_solver(direct_solver&& other) noexcept = default;
direct_solver& direct_solver::operator=(direct_solver&& other) noexcept = default;
direct_solver::~direct_solver() = default;

direct_solver::state& direct_solver::expect_alive() const { return calls::expect_alive(solver_name, state_); }

completion direct_solver::plan(const on& where) {
    state& s = expect_alive();
    const csr_matrix& a = s.matrix("plan");
    calls::sparse_phases made(solver_name, where, a, s.how, s.system);
    completion end = finished(solver_name, made, where, made.analyze(where, a));
    s.phases = std::move(made);
    s.is_factorized = false;
    s.at = calls::places::analyzed;
    return end;
}

completion direct_solver::plan(source_location where) {
    const stream current = expect_alive().current();
    return plan(on(current, where));
}

completion direct_solver::factorize(const on& where) {
    state& s = expect_alive();
    calls::sparse_phases& phases = s.planned("factorize");
    const completion end = phases.factorize(where, s.matrix("factorize"), s.at);
    s.is_factorized = true;
    return finished(solver_name, phases, where, end);
}

completion direct_solver::factorize(source_location where) {
    const stream current = expect_alive().current();
    return factorize(on(current, where));
}

array direct_solver::solve(const on& where) {
    state& s = expect_alive();
    static_cast<void>(s.factorized());
    array x = make_solution(where, s.right_hand_side());
    solve_into(where, x);
    return x;
}

array direct_solver::solve(source_location where) {
    const stream current = expect_alive().current();
    return solve(on(current, where));
}

completion direct_solver::solve_into(const on& where, const array& x) {
    state& s = expect_alive();
    calls::sparse_phases& phases = s.factorized();
    return finished(solver_name, phases, where, phases.solve(where, s.right_hand_side(), x));
}

void direct_solver::reset_operands(const csr_matrix& a, const array& b) {
    state& s = expect_alive();
    calls::expect_right_hand_side(solver_name, s.system, s.home, b);
    s.reset(a);
    s.b = b;
}

void direct_solver::reset_operands(const csr_matrix& a) { expect_alive().reset(a); }

void direct_solver::reset_operands(const array& b) {
    state& s = expect_alive();
    calls::expect_right_hand_side(solver_name, s.system, s.home, b);
    s.b = b;
}

void direct_solver::release_operands() {
    state& s = expect_alive();
    s.a.reset();
    s.b.reset();
}

explanation explain(const direct_solver& what) {
    const direct_solver::state& s = what.expect_alive();
    explanation said{std::string(solver_name) + " of " + direct_solver::state::described(s.system),
                     "none",
                     false,
                     false,
                     false,
                     {},
                     {},
                     {}};
    said.phases = s.phases ? s.phases->explained() : std::vector<std::string>{"not planned: call plan first"};
    return said;
}

void direct_solver::free() noexcept { state_.reset(); }

}  // namespace weir
