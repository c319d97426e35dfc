// How the fake solvers of sparse systems compute: dense elimination in long double.
#pragma once

#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace weir_fake {

using number = std::complex<long double>;

/// Finds another row for the column, if those that have it can be given others.
inline bool match(const std::vector<number>& a, std::size_t n, std::size_t column, std::vector<bool>& seen,
                  std::vector<std::size_t>& column_of, std::vector<std::size_t>& row_of) {
    for (std::size_t row = 0; row < n; ++row) {
        if (a[row * n + column] == number() || seen[row]) {
            continue;
        }
        seen[row] = true;
        if (column_of[row] == n || match(a, n, column_of[row], seen, column_of, row_of)) {
            column_of[row] = column;
            row_of[column] = row;
            return true;
        }
    }
    return false;
}

/// An order of the rows of a, n times n elements, in which the diagonal has as few zeros as possible: for each column a row, n where there
/// is none. Empty if all elements are 0.
inline std::vector<std::size_t> matched_rows(const std::vector<number>& a, std::size_t n) {
    if (std::all_of(a.begin(), a.end(), [](const number& one) { return one == number(); })) {
        return {};
    }
    std::vector<std::size_t> column_of(n, n);
    std::vector<std::size_t> row_of(n, n);
    for (std::size_t column = 0; column < n; ++column) {
        std::vector<bool> seen(n, false);
        match(a, n, column, seen, column_of, row_of);
    }
    return row_of;
}

/// How many elements of a are 0 where that order has the diagonal: a library replaces these pivots, though other rows have elements there.
inline std::int64_t unmatched(const std::vector<number>& a, const std::vector<std::size_t>& matched) {
    const std::size_t n = matched.size();
    std::int64_t found = 0;
    for (std::size_t k = 0; k < n; ++k) {
        found += matched[k] < n && a[matched[k] * n + k] == number() ? 1 : 0;
    }
    return found;
}

inline long double largest_of(const std::vector<number>& a) {
    long double largest = 0;
    for (const number& each : a) {
        largest = std::max(largest, std::abs(each));
    }
    return largest;
}

/// A matrix of n times n elements, and after `factorize` its factors.
struct elimination {
    std::vector<number> factors;
    std::vector<std::size_t> pivots{};
    std::int64_t replaced = 0;  ///< pivots that were not larger than the least one
    std::size_t bad_row = 0;    ///< of a definite matrix the first row, counted from 1, whose pivot is not positive

    /// A definite matrix is eliminated without an exchange of rows.
    void factorize(std::size_t n, bool is_definite, long double least) {
        pivots.assign(n, 0);
        const auto at = [this, n](std::size_t i, std::size_t j) -> number& { return factors[i * n + j]; };
        for (std::size_t k = 0; k < n; ++k) {
            std::size_t best = k;
            for (std::size_t i = k + 1; i < n && !is_definite; ++i) {
                best = std::abs(at(i, k)) > std::abs(at(best, k)) ? i : best;
            }
            pivots[k] = best;
            for (std::size_t j = 0; j < n && best != k; ++j) {
                std::swap(at(k, j), at(best, j));
            }
            if (is_definite && !(at(k, k).real() > 0)) {
                bad_row = k + 1;
                return;
            }
            if (std::abs(at(k, k)) <= least) {
                at(k, k) = std::max(least, std::numeric_limits<long double>::min());
                ++replaced;
            }
            for (std::size_t i = k + 1; i < n; ++i) {
                at(i, k) /= at(k, k);
                for (std::size_t j = k + 1; j < n; ++j) {
                    at(i, j) -= at(i, k) * at(k, j);
                }
            }
        }
    }

    /// A right-hand side becomes its solution.
    void solve(std::vector<number>& y) const {
        const std::size_t n = y.size();
        for (std::size_t k = 0; k < n; ++k) {
            std::swap(y[k], y[pivots[k]]);
        }
        for (std::size_t i = 0; i < n; ++i) {
            for (std::size_t j = 0; j < i; ++j) {
                y[i] -= factors[i * n + j] * y[j];
            }
        }
        for (std::size_t i = n; i-- > 0;) {
            for (std::size_t j = i + 1; j < n; ++j) {
                y[i] -= factors[i * n + j] * y[j];
            }
            y[i] /= factors[i * n + i];
        }
    }
};

}  // namespace weir_fake
