#pragma once

#include <cstdint>

namespace weir::runtime {

/// @{
/// A number that no other stream, resource or event of the process has, had or will have. Any thread.
[[nodiscard]] std::uint64_t next_stream_number() noexcept;
[[nodiscard]] std::uint64_t next_resource_number() noexcept;
[[nodiscard]] std::uint64_t next_event_number() noexcept;
/// @}

}  // namespace weir::runtime
