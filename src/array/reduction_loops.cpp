#include "array/reduction_loops.hpp"

#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "array/convert.hpp"
#include "array/visit.hpp"

namespace weir::loops {

namespace {

using elements::reduction_step;
constexpr std::int64_t lanes = elements::reduction_lanes;
constexpr std::int64_t cache_line = 64;

struct plus {
    template <class T>
    T operator()(const T& a, const T& b) const noexcept {
        if constexpr (std::is_integral_v<T>) {
            using bits = std::make_unsigned_t<T>;
            return static_cast<T>(static_cast<bits>(a) + static_cast<bits>(b));
        } else {
            return a + b;
        }
    }
};

template <class T>
bool is_nan(const T& value) noexcept {
    return value != value;  // NOLINT(misc-redundant-expression): complex numbers have no std::isnan
}

template <class T>
bool is_less(const T& a, const T& b) noexcept {
    if constexpr (detail::is_complex_element<T>) {
        return a.real() < b.real() || (a.real() == b.real() && a.imag() < b.imag());
    } else {
        return a < b;
    }
}

struct lesser {
    template <class T>
    T operator()(const T& a, const T& b) const noexcept {
        return is_less(b, a) || is_nan(b) ? (is_nan(a) ? a : b) : a;
    }
};
struct larger {
    template <class T>
    T operator()(const T& a, const T& b) const noexcept {
        return is_less(a, b) || is_nan(b) ? (is_nan(a) ? a : b) : a;
    }
};

template <class Value>
[[gnu::always_inline]] inline Value* values_at(std::byte* at) noexcept {
    return reinterpret_cast<Value*>(at);
}
/// An element in the type in which it is reduced.
template <class Value, class Element>
[[gnu::always_inline]] inline Value value_at(const std::byte* at) noexcept {
    return convert::element<Value>(*reinterpret_cast<const Element*>(at));
}

/// Reduces `left` elements of one result to its lanes, which lie `results` values apart; element 0 is number `at` of its chunk.
/// `IsPacked`: the elements are adjacent.
template <bool IsPacked, class Element, class Value, class Combine>
[[gnu::always_inline]] inline void reduce_row(const std::byte* x, std::int64_t apart, std::int64_t left,
                                              std::int64_t at, Value* kept, std::int64_t results) noexcept {
    if constexpr (IsPacked) {
        apart = sizeof(Element);
    }
    const auto next = [&] {
        const Value value = value_at<Value, Element>(x);
        x += apart;
        return value;
    };
    for (; left > 0 && at < lanes; --left) {
        kept[at++ * results] = next();
    }
    for (; left > 0 && at % lanes != 0; --left) {
        Value& lane = kept[at++ % lanes * results];
        lane = Combine()(lane, next());
    }
    if (left >= lanes) {
        Value lane[lanes];
        for (std::int64_t k = 0; k < lanes; ++k) {
            lane[k] = kept[k * results];
        }
        for (; left >= lanes; left -= lanes, x += lanes * apart) {
            for (std::int64_t k = 0; k < lanes; ++k) {
                lane[k] = Combine()(lane[k], value_at<Value, Element>(x + k * apart));
            }
        }
        for (std::int64_t k = 0; k < lanes; ++k) {
            kept[k * results] = lane[k];
        }
    }
    for (; left > 0; --left) {
        Value& lane = kept[at++ % lanes * results];
        lane = Combine()(lane, next());
    }
}

/// One result after the other.
template <bool IsPacked, class Element, class Value, class Combine>
[[gnu::always_inline]] inline void reduce_rows(const reduction_step& s) noexcept {
    for (std::int64_t r = 0; r < s.results; ++r) {
        reduce_row<IsPacked, Element, Value, Combine>(s.first[0] + r * s.result_strides[0], s.strides[0], s.count,
                                                      s.position, values_at<Value>(s.lanes) + r, s.results);
    }
}

/// All results side by side. `IsPacked`: their elements are adjacent.
template <bool IsPacked, class Element, class Value, class Combine>
[[gnu::always_inline]] inline void reduce_columns(const reduction_step& s) noexcept {
    const auto apart = IsPacked ? static_cast<std::int64_t>(sizeof(Element)) : s.result_strides[0];
    const auto row = [&](std::int64_t j) { return s.first[0] + j * s.strides[0]; };
    const auto lane_of = [&](std::int64_t j) {
        return values_at<Value>(s.lanes) + (s.position + j) % lanes * s.results;
    };
    std::int64_t j = 0;
    for (; j < s.count && s.position + j < lanes; ++j) {
        const std::byte* const x = row(j);
        Value* const lane = lane_of(j);
        for (std::int64_t r = 0; r < s.results; ++r) {
            lane[r] = value_at<Value, Element>(x + r * apart);
        }
    }
    // Four elements for each time that a lane is read and written.
    for (; j + 4 * lanes <= s.count; j += 4 * lanes) {
        for (std::int64_t k = j; k < j + lanes; ++k) {
            const std::byte* const x0 = row(k);
            const std::byte* const x1 = row(k + lanes);
            const std::byte* const x2 = row(k + 2 * lanes);
            const std::byte* const x3 = row(k + 3 * lanes);
            Value* const lane = lane_of(k);
            if constexpr (IsPacked) {
                // Rows may be far apart, where the processor does not foresee them.
                const std::int64_t ahead = 2 * s.strides[0];
                for (std::int64_t at = 0; at < s.results * apart; at += cache_line) {
                    for (const std::byte* const x : {x0, x1, x2, x3}) {
                        __builtin_prefetch(x + ahead + at);
                    }
                }
            }
            for (std::int64_t r = 0; r < s.results; ++r) {
                const std::int64_t at = r * apart;
                Value value = Combine()(lane[r], value_at<Value, Element>(x0 + at));
                value = Combine()(value, value_at<Value, Element>(x1 + at));
                value = Combine()(value, value_at<Value, Element>(x2 + at));
                lane[r] = Combine()(value, value_at<Value, Element>(x3 + at));
            }
        }
    }
    for (; j < s.count; ++j) {
        const std::byte* const x = row(j);
        Value* const lane = lane_of(j);
        for (std::int64_t r = 0; r < s.results; ++r) {
            lane[r] = Combine()(lane[r], value_at<Value, Element>(x + r * apart));
        }
    }
}

template <class Element, class Value, class Combine>
[[gnu::always_inline]] inline void reduce_elements(const reduction_step& s) noexcept {
    constexpr auto size = static_cast<std::int64_t>(sizeof(Element));
    const auto distance = [](std::int64_t stride) { return stride < 0 ? -stride : stride; };
    if (s.results == 1 || distance(s.strides[0]) <= distance(s.result_strides[0])) {
        s.strides[0] == size ? reduce_rows<true, Element, Value, Combine>(s)
                             : reduce_rows<false, Element, Value, Combine>(s);
    } else {
        s.result_strides[0] == size ? reduce_columns<true, Element, Value, Combine>(s)
                                    : reduce_columns<false, Element, Value, Combine>(s);
    }
}

template <class Element, class Value, class Combine>
[[gnu::noinline]] void reduce_on_any(const reduction_step& s) noexcept {
    reduce_elements<Element, Value, Combine>(s);
}

#if defined(__x86_64__)
/// The same results by wider instructions.
template <class Element, class Value, class Combine>
[[gnu::noinline, gnu::target("avx2")]] void reduce_on_avx2(const reduction_step& s) noexcept {
    reduce_elements<Element, Value, Combine>(s);
}
bool has_avx2() noexcept {
    static const bool has = __builtin_cpu_supports("avx2") != 0;
    return has;
}
#endif

template <class Element, class Value, class Combine>
void reduce_on_this_processor(const reduction_step& s) noexcept {
#if defined(__x86_64__)
    if constexpr (std::is_same_v<Combine, plus>) {
        if (has_avx2()) {
            return reduce_on_avx2<Element, Value, Combine>(s);
        }
    }
#endif
    reduce_on_any<Element, Value, Combine>(s);
}

/// into[r] = combined with others[r]
template <class Value, class Combine>
void combine(Value* into, const Value* others, std::int64_t results) noexcept {
    for (std::int64_t r = 0; r < results; ++r) {
        into[r] = Combine()(into[r], others[r]);
    }
}

template <class Value, class Combine>
void combine_lanes(const reduction_step& s) noexcept {
    Value* const all = values_at<Value>(s.lanes);
    std::int64_t count = std::min(s.count, lanes);
    for (std::int64_t half = lanes / 2; half > 0; half /= 2) {
        for (std::int64_t k = 0; k + half < count; ++k) {
            combine<Value, Combine>(all + k * s.results, all + (k + half) * s.results, s.results);
        }
        count = std::min(count, half);
    }
    std::copy_n(all, s.results, values_at<Value>(s.values));
}

template <class Value, class Result, bool IsMean>
void write_results(const reduction_step& s) noexcept {
    for (std::int64_t r = 0; r < s.results; ++r) {
        Value value = values_at<Value>(s.values)[r];
        if constexpr (IsMean && detail::is_complex_element<Value>) {
            value /= static_cast<typename Value::value_type>(s.total);
        } else if constexpr (IsMean) {
            value /= static_cast<Value>(s.total);
        }
        *reinterpret_cast<Result*>(s.first[0] + r * s.result_strides[0]) = convert::element<Result>(value);
    }
}

template <class Element, class Value, class Result, class Combine, bool IsMean>
void run(const reduction_step* what) noexcept {
    switch (what->what) {
        case reduction_step::elements:
            return reduce_on_this_processor<Element, Value, Combine>(*what);
        case reduction_step::lanes_of_chunk:
            return combine_lanes<Value, Combine>(*what);
        case reduction_step::pairs:
            return combine<Value, Combine>(values_at<Value>(what->values), values_at<Value>(what->lanes),
                                           what->results);
        case reduction_step::outputs:
            return write_results<Value, Result, IsMean>(*what);
        default:  // what has no elements is a fill, or an error
            return;
    }
}

template <class Element, class Value, class Result, class Combine, bool IsMean = false>
constexpr reducer reducer_of = {run<Element, Value, Result, Combine, IsMean>, dtype_of<Value>, dtype_of<Result>};

/// The reducers of one type of elements.
template <class Element>
reducer find_for(reduction what) noexcept {
    constexpr bool is_integer = std::is_integral_v<Element>;  // or bool
    constexpr bool is_unsigned = std::is_unsigned_v<Element> && !std::is_same_v<Element, bool>;
    using integer = std::conditional_t<is_unsigned, std::uint64_t, std::int64_t>;
    using real = std::conditional_t<detail::is_complex_element<Element>, std::complex<double>, double>;
    using summed = std::conditional_t<is_integer, integer, real>;
    using compared = std::conditional_t<detail::is_short_float<Element>, float, Element>;
    switch (what) {
        case reduction::sum:
            return reducer_of<Element, summed, std::conditional_t<is_integer, integer, Element>, plus>;
        case reduction::min:
            return reducer_of<Element, compared, Element, lesser>;
        case reduction::max:
            return reducer_of<Element, compared, Element, larger>;
        case reduction::mean:
            break;
    }
    return reducer_of<Element, real, std::conditional_t<is_integer, double, Element>, plus, true>;
}

}  // namespace

reducer find(reduction what, dtype type) {
    return detail::visit(type, [what]<class Element>(std::type_identity<Element>) { return find_for<Element>(what); });
}

}  // namespace weir::loops
