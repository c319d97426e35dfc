// The accesses of torch's operators, as the hooks in torch describe them (weir/_torch_hooks.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "../weir/_torch_hooks.h"
#include "weir/access.hpp"
#include "weir/detail/footprint.hpp"
#include "weir/detail/watched_program.hpp"

namespace weir::python {

/// Throws std::bad_alloc.
[[nodiscard]] inline detail::watched_access access_of(const weir_torch_access& what) {
    constexpr std::size_t most = 64;
    const auto dimensions = static_cast<std::size_t>(what.dimensions);
    const auto run = static_cast<std::uint64_t>(what.run);
    order::footprint where{what.offset, what.offset + run};
    if (dimensions > most) {
        where = {0, what.bytes};
    } else if (dimensions != 0) {
        std::array<order::level, most> levels;
        for (std::size_t i = 0; i < dimensions; ++i) {
            levels[i] = {what.strides[i], what.sizes[i]};
        }
        where = order::strided(what.offset, std::span(levels).first(dimensions), run);
    }
    return {what.storage, what.bytes, std::move(where), what.writes != 0 ? access_mode::write : access_mode::read,
            what.may_not_happen == 0 && dimensions <= most};
}
/// The same for several.
[[nodiscard]] inline std::vector<detail::watched_access> accesses_of(std::span<const weir_torch_access> what) {
    std::vector<detail::watched_access> all;
    all.reserve(what.size());
    for (const weir_torch_access& one : what) {
        all.push_back(access_of(one));
    }
    return all;
}

}  // namespace weir::python
