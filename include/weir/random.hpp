// Arrays of random numbers. Layer: array.
#pragma once

#include <cstdint>
#include <optional>

#include "weir/array.hpp"
#include "weir/export.hpp"

namespace weir {

/// An array of random numbers, distributed evenly over [0, 1): float32 or float64 (argument_type_error). The same seed gives the same
/// numbers on every device, in every build; without a seed they differ from call to call. Made by Philox4x32-10 (Salmon, Moraes, Dror,
/// Shaw: Parallel random numbers, SC 2011), with the seed as key: element i of float64 takes 53 bits of words 0 and 1, or 2 and 3, of
/// block i / 2; of float32, 24 bits of word i % 4 of block i / 4. Enqueued on `on`; does not block. Throws argument_type_error, and as
/// `empty` does.
[[nodiscard]] WEIR_EXPORT array random(const shape& extents, std::optional<std::uint64_t> seed = std::nullopt,
                                       dtype type = dtype::float64, const stream_ref& on = current_stream(),
                                       source_location where = source_location::current());

}  // namespace weir
