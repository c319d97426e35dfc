// Launches of kernels whose parameters a signature declares.
#pragma once

#include "bind.hpp"

#include <cstddef>
#include <span>
#include <string>

#include "weir/kernel.hpp"

namespace weir::python {

/// A kernel with a signature.
struct py_kernel {
    explicit py_kernel(kernel its);

    kernel code;
    const char* label;
};

[[nodiscard]] std::string repr(const py_kernel& self);

/// A number, or up to three of them. Throws argument_error, argument_type_error, which name `name`.
[[nodiscard]] dimensions dimensions_from(nb::handle argument, const char* name);
/// Throws argument_error, argument_type_error.
[[nodiscard]] std::size_t shared_bytes_from(nb::handle argument);
/// The configuration of a call, as Python's `launch` takes it; without the last two, none.
struct launch_numbers {
    nb::handle grid;
    nb::handle block;
    nb::handle shared;
    nb::handle cluster = {};
    bool cooperative = false;
};
/// Throws argument_error, argument_type_error, also where the kernel cannot be launched so.
[[nodiscard]] launch_config config_from(const py_kernel& of, const launch_numbers& given);

/// The parameters of a launch besides its arguments, as `launch` of Python has them.
struct launch_place {
    launch_config config;
    nb::handle on;
    nb::handle after;
    bool wait;
    nb::handle reads = {};   ///< what the kernel uses besides its arguments; null: nothing
    nb::handle writes = {};  ///< the same
};

/// Enqueues a launch; its event. Reads and writes the arrays as the signature says. Throws argument_error,
/// argument_type_error, and as `weir::launch` does.
[[nodiscard]] nb::object launch(const py_kernel& what, const launch_place& at, std::span<PyObject* const> arguments);

/// k[index], for `kernel`, which is a py_kernel: called with arguments it launches. Throws argument_error,
/// argument_type_error.
[[nodiscard]] nb::object launcher_of(nb::handle kernel, nb::handle index);
/// Makes the type of what launcher_of gives: at import. Throws nb::python_error.
void make_launcher_type();

}  // namespace weir::python
