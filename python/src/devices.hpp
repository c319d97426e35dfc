// Devices and streams, as Python knows them.
#pragma once

#include "bind.hpp"

#include <optional>

#include "weir/device.hpp"
#include "weir/stream.hpp"

namespace weir::python {

void bind_devices(nanobind::module_& m);
void bind_streams(nanobind::module_& m);
void bind_events(nanobind::module_& m);

/// The device that an argument names: a Device, or a text such as "cuda:0"; None: that of the innermost `with stream:` of
/// the calling context, else the CPU. Throws argument_error, argument_type_error.
[[nodiscard]] device device_from(nanobind::handle argument);

/// The stream that an argument is: a Stream, one of another package, an integer handle of `on` (rule S5); None: the calling
/// context's current one of `on` (rule S7). Throws argument_error (a stream of another device, where `on` is given),
/// argument_type_error, state_error if it is closed.
[[nodiscard]] stream stream_from(nanobind::handle argument, std::optional<device> on = std::nullopt);

/// The current stream of a device in the calling Python context (rule S7). Unlike weir::current_stream, it has the thread follow
/// its context first, as `released` does: call it wherever the GIL is held.
[[nodiscard]] stream current_in_context(device on);

/// The current stream of the innermost `with stream:` of the calling context, else the CPU's current one.
[[nodiscard]] stream innermost_stream();

/// Drops what the calling thread and its context remember: at the interpreter's exit.
void forget_current_streams() noexcept;

/// A number of Python's, or an object of NumPy or another package that stands for one. Arrays of one element convert to a number, too,
/// and are excluded. Needs the GIL.
[[nodiscard]] bool is_integer(nanobind::handle argument);

/// Adopts a stream of another package or an integer. See `weir.adopt`.
[[nodiscard]] stream adopt(nanobind::handle argument, std::optional<device> on, nanobind::handle owner);

}  // namespace weir::python
