// What library calls have in common, as Python gives it: operands of several packages, where to compute, how much memory.
#pragma once

#include "bind.hpp"

#include <cstdint>
#include <optional>
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

/// The operand of a library call: an array of Weir's, or one of NumPy's, of which a copy is computed with and whose results
/// are NumPy's again (rule P2).
class call_operand {
public:
    /// Takes the elements of an array of NumPy as they are now. Throws argument_type_error.
    call_operand(nb::handle a, const char* function, const source_location& where);

    [[nodiscard]] const array& get() const noexcept { return array_; }
    [[nodiscard]] bool is_numpy() const noexcept { return numpy_.is_valid(); }
    /// The stream that computes: `on`, or the current one of the device that computes.
    [[nodiscard]] stream stream_for(const execution_target& execution, nb::handle on) const;
    /// Takes NumPy's elements as they are now.
    void copy_again(const source_location& where);
    /// The result in the package of the operand; in `out`, if that is not None.
    [[nodiscard]] nb::object result(array&& made, nb::handle out, const source_location& where) const;

private:
    array array_;
    nb::object numpy_;
};

}  // namespace weir::python
