// What library calls have in common, as Python gives it: operands of several packages, where to compute, how much memory.
#pragma once

#include "bind.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "accesses.hpp"
#include "arguments.hpp"
#include "devices.hpp"
#include "interpreter.hpp"
#include "site.hpp"
#include "weir/array.hpp"
#include "weir/calls.hpp"
#include "weir/stream.hpp"

namespace weir::python {

/// None, "cpu", "cuda", "sim", or a device. Throws argument_error, argument_type_error.
[[nodiscard]] execution_target execution_from(nb::handle argument);
/// "auto" or True.
[[nodiscard]] call_blocking blocking_from(nb::handle argument);
/// Bytes, a part of the device's memory, or a text such as "80%" or "1.5 GiB".
[[nodiscard]] memory_limit memory_limit_from(nb::handle argument);
/// "float64 (4, 4)", for repr().
[[nodiscard]] std::string elements_in_words(const array& x);
/// The stream that computes for operands on a device: `on`, else the current one of the device that computes. Throws as stream_from.
[[nodiscard]] stream computing_stream(const execution_target& execution, const device& of_operands, nb::handle on);

/// The operand of a library call: an array of any package, and how results come back to it (rule P2). The call computes with a copy of
/// NumPy's array; of other packages' arrays it uses the same memory, as a live import (rule X6).
class call_operand {
public:
    /// Takes the elements of an array of NumPy as they are now. Throws argument_type_error for what is no array, exchange_error.
    call_operand(nb::handle a, const char* function, const source_location& where);

    [[nodiscard]] const array& get() const noexcept { return array_; }
    [[nodiscard]] bool is_numpy() const noexcept { return is_numpy_; }
    [[nodiscard]] bool is_weir() const noexcept { return !theirs_.is_valid(); }
    /// Whether calls with it block: its package has no queues, so that it may change the elements once the call has returned.
    [[nodiscard]] bool blocks() const noexcept;
    /// The package, in messages and for comparison: "weir", "numpy", "torch".
    [[nodiscard]] std::string package() const;
    /// The stream that computes: `on`; else the one that the operand's package works on now, if it computes where the operand
    /// lies; else the current one of the device that computes.
    [[nodiscard]] stream stream_for(const execution_target& execution, nb::handle on) const;
    /// Takes NumPy's elements as they are now.
    void copy_again(const source_location& where);
    /// Throws argument_type_error, argument_error unless the operand is NumPy's and `out` is an array of NumPy that can be written: before
    /// the work, after which `result` writes it.
    void expect_target(nb::handle out) const;
    /// The array for a result that the program gives as `out=`, of the operand's package, but not NumPy. Throws
    /// argument_type_error, and argument_error if it cannot be written.
    [[nodiscard]] array target(nb::handle out, const source_location& where) const;
    /// Whether `out`, of target(), has bytes in common with the operand without being it: then a result goes there by way of a
    /// copy, since two imports of one memory do not know of each other.
    [[nodiscard]] bool overlaps(const array& out) const noexcept;
    /// The result in the package of the operand; in `out`, of which expect_target has been called, if that is not None: for operands of NumPy alone.
    [[nodiscard]] nb::object result(array&& made, nb::handle out, const source_location& where) const;

private:
    [[nodiscard]] array array_of_target(nb::handle out, const source_location& where) const;

    array array_;
    nb::object theirs_;  ///< null for an array of Weir
    bool is_numpy_ = false;
};

}  // namespace weir::python
