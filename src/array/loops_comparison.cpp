#include <cmath>
#include <complex>
#include <utility>

#include "array/loops.hpp"
#include "array/visit.hpp"

namespace weir::loops {

namespace {

struct equal {
    template <class A, class B>
    bool operator()(const A& a, const B& b) const noexcept {
        if constexpr (std::is_same_v<A, B>) {
            return a == b;
        } else {
            return std::cmp_equal(a, b);
        }
    }
};

/// Whether neither imaginary part is NaN.
template <class T>
bool are_ordered(const T& a, const T& b) noexcept {
    return !std::isnan(a.imag()) && !std::isnan(b.imag());
}

/// Complex numbers are compared by their real parts, and by the imaginary parts where those are equal.
struct less {
    template <class A, class B>
    bool operator()(const A& a, const B& b) const noexcept {
        if constexpr (!std::is_same_v<A, B>) {
            return std::cmp_less(a, b);
        } else if constexpr (detail::is_complex_element<A>) {
            return are_ordered(a, b) && (a.real() < b.real() || (a.real() == b.real() && a.imag() < b.imag()));
        } else {
            return a < b;
        }
    }
};

/// Not the negation of another comparison: both are false for NaN.
struct less_equal {
    template <class A, class B>
    bool operator()(const A& a, const B& b) const noexcept {
        if constexpr (!std::is_same_v<A, B>) {
            return std::cmp_less_equal(a, b);
        } else if constexpr (detail::is_complex_element<A>) {
            return are_ordered(a, b) && (a.real() < b.real() || (a.real() == b.real() && a.imag() <= b.imag()));
        } else {
            return a <= b;
        }
    }
};

template <class A, class B, class F, bool Swapped, bool Negated>
void each(const std::byte* a, const std::byte* b, std::byte* out, std::size_t count) {
    const auto* const x = reinterpret_cast<const A*>(a);
    const auto* const y = reinterpret_cast<const B*>(b);
    auto* const z = reinterpret_cast<bool*>(out);
    for (std::size_t i = 0; i < count; ++i) {
        if constexpr (Swapped) {
            z[i] = F()(y[i], x[i]) != Negated;
        } else {
            z[i] = F()(x[i], y[i]) != Negated;
        }
    }
}

template <class A, class B>
binary for_types(binary_operation what) noexcept {
    switch (what) {
        case binary_operation::equal:
            return each<A, B, equal, false, false>;
        case binary_operation::not_equal:
            return each<A, B, equal, false, true>;
        case binary_operation::less:
            return each<A, B, less, false, false>;
        case binary_operation::less_equal:
            return each<A, B, less_equal, false, false>;
        case binary_operation::greater:
            return each<A, B, less, true, false>;
        default:
            return each<A, B, less_equal, true, false>;
    }
}

}  // namespace

binary comparison(binary_operation what, dtype type) noexcept {
    return detail::visit(type, [&]<class T>(std::type_identity<T>) -> binary {
        if constexpr (detail::is_short_float<T>) {
            return nullptr;
        } else {
            return for_types<T, T>(what);
        }
    });
}

binary_loop find_mixed(binary_operation what) noexcept {
    return {for_types<std::uint64_t, std::int64_t>(what), dtype::uint64, dtype::int64, dtype::bool_};
}

}  // namespace weir::loops
