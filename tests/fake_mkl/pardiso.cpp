// The fake PARDISO: solves dense systems by elimination (oneMKL reference for C, "pardiso_64"). As the real one it matches rows by the
// values that the analysis gets, and replaces small pivots.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "pardiso_control.hpp"
#include "support/elimination.hpp"

namespace weir_fake {
namespace {

using integer = long long;

enum phase : int { analysis = 11, factorization = 22, solution = 33, release = -1 };

enum error : integer {
    no_error = 0,
    inconsistent = -1,
    zero_pivot = -4,
};

/// The parameters that the fake looks at, by their index.
struct parameter {
    static constexpr std::size_t is_given = 0;
    static constexpr std::size_t perturbation = 9;
    static constexpr std::size_t matching = 12;
    static constexpr std::size_t perturbed_pivots = 13;
    static constexpr std::size_t kept_kib = 15;
    static constexpr std::size_t factors_kib = 16;
    static constexpr std::size_t single_precision = 27;
    static constexpr std::size_t row_of_bad_pivot = 29;
    static constexpr std::size_t zero_based = 34;
};

/// What the library keeps between the phases of one system.
struct system_data {
    std::atomic<bool> running{false};
    bool is_analyzed = false;
    bool is_factorized = false;
    std::vector<integer> row_starts;
    std::vector<integer> columns;
    std::vector<std::size_t> matched;
    elimination factors;
};

struct pardiso_state {
    std::mutex lock;
    std::map<int, unsigned long long> phases;
    struct fault {
        int phase;
        unsigned long long left;
        int error;
    };
    std::vector<fault> faults;
    std::atomic<unsigned long long> systems{0};
    std::atomic<unsigned long long> mistakes{0};
};
pardiso_state& state() {
    static auto* const one = new pardiso_state;
    return *one;
}

/// One call for a system.
struct call {
    integer type = 0;
    std::size_t n = 0;
    const void* values = nullptr;
    const integer* row_starts = nullptr;
    const integer* columns = nullptr;
    integer* parameters = nullptr;

    [[nodiscard]] bool is_general() const { return type == 11 || type == 13; }
    [[nodiscard]] bool is_complex() const { return type == 13 || type == 6 || type == 4 || type == -4; }
    [[nodiscard]] bool is_definite() const { return type == 2 || type == 4; }
    [[nodiscard]] bool is_single() const { return parameters[parameter::single_precision] == 1; }
    [[nodiscard]] bool is_known() const { return is_general() || is_complex() || type == 2 || type == -2; }

    [[nodiscard]] number element(const void* from, std::size_t at) const {
        if (is_complex()) {
            return is_single() ? number(static_cast<const std::complex<float>*>(from)[at])
                               : number(static_cast<const std::complex<double>*>(from)[at]);
        }
        return is_single() ? static_cast<long double>(static_cast<const float*>(from)[at])
                           : static_cast<long double>(static_cast<const double*>(from)[at]);
    }
    void set_element(void* to, std::size_t at, number value) const {
        if (is_complex()) {
            is_single() ? void(static_cast<std::complex<float>*>(to)[at] = std::complex<float>(value))
                        : void(static_cast<std::complex<double>*>(to)[at] = std::complex<double>(value));
        } else {
            is_single() ? void(static_cast<float*>(to)[at] = static_cast<float>(value.real()))
                        : void(static_cast<double*>(to)[at] = static_cast<double>(value.real()));
        }
    }

    /// Whether the columns of each row ascend, and begin at the diagonal where only the upper triangle is given.
    [[nodiscard]] bool is_in_order() const {
        for (std::size_t row = 0; row < n; ++row) {
            const auto first = static_cast<std::size_t>(row_starts[row]);
            const auto last = static_cast<std::size_t>(row_starts[row + 1]);
            if (!is_general() && (first == last || columns[first] != static_cast<integer>(row))) {
                return false;
            }
            for (std::size_t k = first + 1; k < last; ++k) {
                if (columns[k] <= columns[k - 1]) {
                    return false;
                }
            }
        }
        return true;
    }

    /// All elements of the matrix.
    [[nodiscard]] std::vector<number> dense() const {
        std::vector<number> made(n * n);
        for (std::size_t row = 0; row < n; ++row) {
            for (auto k = static_cast<std::size_t>(row_starts[row]); k < static_cast<std::size_t>(row_starts[row + 1]);
                 ++k) {
                const auto column = static_cast<std::size_t>(columns[k]);
                const number value = element(values, k);
                made[row * n + column] = value;
                if (!is_general() && column != row) {
                    made[column * n + row] = type == 4 || type == -4 ? std::conj(value) : value;
                }
            }
        }
        return made;
    }
};

integer analyze(system_data& of, const call& with) {
    of.is_analyzed = of.is_factorized = false;
    if (!with.is_in_order()) {
        ++state().mistakes;
        return inconsistent;
    }
    if (with.row_starts[with.n] == 0) {
        return inconsistent;  // as MKL has it, which does not call a matrix without elements singular
    }
    with.parameters[parameter::kept_kib] = 1;
    with.parameters[parameter::factors_kib] = static_cast<integer>(with.n * with.n * sizeof(number) / 1024 + 1);
    of.row_starts.assign(with.row_starts, with.row_starts + with.n + 1);
    of.columns.assign(with.columns, with.columns + of.row_starts.back());
    of.matched.clear();
    if (with.is_general() && with.parameters[parameter::matching] == 1) {
        of.matched = matched_rows(with.dense(), with.n);
    }
    of.is_analyzed = true;
    return no_error;
}

integer factorize(system_data& of, const call& with) {
    of.is_factorized = false;
    std::vector<number> a = with.dense();
    const long double exponent = -static_cast<long double>(with.parameters[parameter::perturbation]);
    const long double relative = std::max(std::pow(10.0L, exponent), with.is_single() ? 1e-6L : 0.0L);
    const long double least = with.is_definite() ? 0 : relative * largest_of(a);
    // Where no rows are matched, the diagonal stays as it is.
    std::vector<std::size_t> order = of.matched;
    for (std::size_t row = order.size(); with.is_general() && row < with.n; ++row) {
        order.push_back(row);
    }
    const std::int64_t unordered = with.is_general() ? unmatched(a, order) : 0;
    of.factors = {std::move(a)};
    of.factors.factorize(with.n, with.is_definite(), least);
    with.parameters[parameter::perturbed_pivots] = of.factors.replaced + unordered;
    with.parameters[parameter::row_of_bad_pivot] = static_cast<integer>(of.factors.bad_row);
    if (of.factors.bad_row != 0) {
        return zero_pivot;
    }
    of.is_factorized = true;
    return no_error;
}

void solve(const system_data& of, const call& with, integer right_hand_sides, const void* b, void* x) {
    for (std::size_t c = 0; c < static_cast<std::size_t>(right_hand_sides); ++c) {
        std::vector<number> y;
        for (std::size_t i = 0; i < with.n; ++i) {
            y.push_back(with.element(b, c * with.n + i));
        }
        of.factors.solve(y);
        for (std::size_t i = 0; i < with.n; ++i) {
            with.set_element(x, c * with.n + i, y[i]);
        }
    }
}

integer run_phase(system_data& of, int which, const call& with, integer right_hand_sides, const void* b, void* x) {
    if (which == analysis) {
        return analyze(of, with);
    }
    const bool is_the_same = of.is_analyzed && of.row_starts.size() == with.n + 1 &&
                             std::equal(of.row_starts.begin(), of.row_starts.end(), with.row_starts) &&
                             std::equal(of.columns.begin(), of.columns.end(), with.columns);
    if (!is_the_same || (which == solution && (!of.is_factorized || b == nullptr || x == nullptr || b == x))) {
        ++state().mistakes;
        return inconsistent;
    }
    if (which == factorization) {
        return factorize(of, with);
    }
    solve(of, with, right_hand_sides, b, x);
    return no_error;
}

/// Counts a call, and fails it on purpose.
integer begin(int which) {
    const std::lock_guard lock(state().lock);
    ++state().phases[which];
    for (auto each = state().faults.begin(); each != state().faults.end(); ++each) {
        if (each->phase == which && --each->left == 0) {
            const int error = each->error;
            state().faults.erase(each);
            return error;
        }
    }
    return no_error;
}

}  // namespace
}  // namespace weir_fake

using namespace weir_fake;

unsigned long long weir_fake_pardiso_phases(int which) {
    const std::lock_guard lock(state().lock);
    return state().phases[which];
}

void weir_fake_pardiso_fail(int which, unsigned long long nth, int error) {
    const std::lock_guard lock(state().lock);
    state().faults.push_back({which, nth, error});
}

unsigned long long weir_fake_pardiso_systems() { return state().systems; }

unsigned long long weir_fake_pardiso_mistakes() { return state().mistakes; }

WEIR_FAKE_EXPORT void pardiso_64(void** handle, const integer* factors, const integer* which_factors,
                                 const integer* type, const integer* which, const integer* n, const void* values,
                                 const integer* row_starts, const integer* columns, integer* /*permutation*/,
                                 const integer* right_hand_sides, integer* parameters, const integer* /*messages*/,
                                 const void* b, void* x, integer* result) {
    const int number_of_phase = static_cast<int>(*which);
    if (number_of_phase == release) {
        if (auto* const of = static_cast<system_data*>(*handle)) {
            state().mistakes += of->running ? 1 : 0;
            delete of;
            --state().systems;
        }
        *handle = nullptr;
        static_cast<void>(begin(release));
        *result = no_error;
        return;
    }
    if (*result = begin(number_of_phase); *result != no_error) {
        return;
    }
    const call with{*type, static_cast<std::size_t>(*n), values, row_starts, columns, parameters};
    if (*factors != 1 || *which_factors != 1 || *n < 1 || parameters[parameter::is_given] != 1 ||
        parameters[parameter::zero_based] != 1 || !with.is_known()) {
        *result = inconsistent;
        return;
    }
    if (*handle == nullptr) {
        *handle = new system_data;
        ++state().systems;
    }
    auto& of = *static_cast<system_data*>(*handle);
    state().mistakes += of.running.exchange(true) ? 1 : 0;
    *result = run_phase(of, number_of_phase, with, *right_hand_sides, b, x);
    of.running = false;
}
