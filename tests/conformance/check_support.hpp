#pragma once

#include <cstdint>
#include <vector>

#include "support/devices.hpp"
#include "support/versions.hpp"
#include "weir/array.hpp"
#include "weir/launch.hpp"

namespace weir::test {

inline constexpr std::int64_t size = 64;

inline completion set(const on& where, array x, double value) {
    return parallel_for(
        where, x.size(), [value](std::size_t i, std::span<double> to) { to[i] = value; }, out(x.view<double>()));
}
inline completion duplicate(const on& where, const array& from, array& to) {
    return parallel_for(
        where, from.size(),
        [](std::size_t i, std::span<const double> source, std::span<double> target) { target[i] = source[i]; },
        in(from.view<double>()), out(to.view<double>()));
}
/// The last element, once everything is complete.
inline double last(const array& x) { return x.read<double>()[static_cast<std::size_t>(x.size()) - 1]; }

/// An array of zeros, which all streams may use, since the host has waited for it.
inline array zeroed(const scenario_run& run) {
    array made = zeros({size}, dtype::float64, run.s1);
    run.s1.synchronize();
    return made;
}

/// The tests of a scenario, on the device under test.
class check_scenario {
protected:
    const weir::device device_ = here();

    template <class Scenario>
    void prove(const std::vector<double>& right, const std::vector<expected_race>& races, Scenario&& scenario,
               const char* file) {
        expect_three_versions(right, races, file, scenario, device_);
    }
};

}  // namespace weir::test
