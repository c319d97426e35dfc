#pragma once

#include "weir/array.hpp"
#include "weir/calls.hpp"

namespace weir::calls {

/// Whether operations of one of the devices can use memory of the other.
[[nodiscard]] bool share_memory(device a, device b) noexcept;

/// The device whose memory an operand is; that of `stream` if it has no elements, and so none.
[[nodiscard]] device device_of(const array& operand, device of_stream) noexcept;

/// Where a call computes on whose stream is said nothing.
[[nodiscard]] device computing_device(const execution_target& wanted, const array& operand);

/// Where a call computes that is given a stream. Throws argument_error if the stream is one of another device.
[[nodiscard]] device computing_device(const char* call, const execution_target& wanted, const array& operand,
                                      const stream_ref& stream);

}  // namespace weir::calls
