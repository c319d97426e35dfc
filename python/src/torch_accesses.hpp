// The accesses of torch's operators, as the hooks in torch describe them (weir/_torch_hooks/hooks.h).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "../weir/_torch_hooks/hooks.h"
#include "weir/access.hpp"
#include "weir/detail/footprint.hpp"
#include "weir/detail/watched_program.hpp"

namespace weir::python {

/// `Program`: a watched_program or an ordered_program, which knows the storages. Throws std::bad_alloc.
template <class Program>
[[nodiscard]] detail::watched_access access_of([[maybe_unused]] const Program& program, const weir_torch_access& what) {
    constexpr std::size_t most = 64;
    std::uint64_t storage = what.storage;
    std::uint64_t bytes = what.bytes;
    std::uint64_t offset = what.offset;
    if constexpr (std::is_same_v<Program, detail::watched_program>) {  // the other finds that itself
        if (what.is_within != 0) {
            if (const std::optional<detail::watched_block> block = program.block_at(storage)) {
                offset += storage - block->address;
                storage = block->address;
                bytes = std::max(bytes + offset - what.offset, block->bytes);
            }
        }
    }
    const auto dimensions = static_cast<std::size_t>(what.dimensions);
    const auto run = static_cast<std::uint64_t>(what.run);
    order::footprint where{offset, offset + run};
    if (dimensions > most) {
        where = {0, bytes};
    } else if (dimensions != 0) {
        std::array<order::level, most> levels;
        for (std::size_t i = 0; i < dimensions; ++i) {
            levels[i] = {what.strides[i], what.sizes[i]};
        }
        where = order::strided(offset, std::span(levels).first(dimensions), run);
    }
    return {storage, bytes, std::move(where), what.writes != 0 ? access_mode::write : access_mode::read,
            what.may_not_happen == 0 && dimensions <= most};
}
/// The same for several. Valid until the thread's next call.
template <class Program>
[[nodiscard]] std::span<const detail::watched_access> accesses_of(const Program& program,
                                                                  std::span<const weir_torch_access> what) {
    thread_local std::vector<detail::watched_access> all;
    all.clear();
    for (const weir_torch_access& one : what) {
        all.push_back(access_of(program, one));
    }
    return all;
}

}  // namespace weir::python
