// Arrays from and to vectors of numbers.
#pragma once

#include <span>
#include <type_traits>
#include <vector>

#include "support/dft.hpp"
#include "weir/array.hpp"
#include "weir/launch.hpp"

namespace weir::test {

template <class T>
inline constexpr bool is_complex_type = !std::is_floating_point_v<T>;

/// The numbers converted to a type: rounded, and without imaginary part if it is real.
template <class T>
std::vector<T> as_type(const std::vector<precise>& numbers) {
    std::vector<T> values;
    for (const precise& each : numbers) {
        if constexpr (is_complex_type<T>) {
            values.emplace_back(static_cast<typename T::value_type>(each.real()),
                                static_cast<typename T::value_type>(each.imag()));
        } else {
            values.push_back(static_cast<T>(each.real()));
        }
    }
    return values;
}

template <class T>
std::vector<precise> as_precise(const std::vector<T>& values) {
    std::vector<precise> numbers;
    for (const T& each : values) {
        if constexpr (is_complex_type<T>) {
            numbers.emplace_back(each.real(), each.imag());
        } else {
            numbers.emplace_back(each);
        }
    }
    return numbers;
}

/// An array that holds the values once `on` reaches it.
template <class T>
array make_array(const stream_ref& on, const shape& extents, const std::vector<T>& values) {
    array made = empty(extents, dtype_of<T>, on);
    copy_from_host(on, made, std::as_bytes(std::span(values)));
    return made;
}

/// The current elements of the array. Blocks.
template <class T>
std::vector<T> values_of(const array& a) {
    const host_view<const T> view = a.read<T>();
    return {view.begin(), view.end()};
}

}  // namespace weir::test
