#pragma once

#include "weir/array.hpp"
#include "weir/calls.hpp"

namespace weir::calls {

/// Whether operations of one of the devices can use memory of the other.
[[nodiscard]] bool share_memory(device a, device b) noexcept;

/// The device of an operand's memory; that of `stream` if it has no elements, and so no memory.
[[nodiscard]] device device_of(const array& operand, device of_stream) noexcept;

/// The device on which a call computes if no stream is given, for operands on `home`.
[[nodiscard]] device computing_device(const execution_target& wanted, device home);
/// The same for an operand.
[[nodiscard]] device computing_device(const execution_target& wanted, const array& operand);

/// The device on which a call computes if a stream is given. Throws argument_error if the stream belongs to another device.
[[nodiscard]] device computing_device(const char* call, const execution_target& wanted, const array& operand,
                                      const stream_ref& stream);

}  // namespace weir::calls
