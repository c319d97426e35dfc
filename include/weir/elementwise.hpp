// Element-wise kernels that a program gives as text: one source for the CPU and for CUDA devices. Layer: array.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/arithmetic.hpp"
#include "weir/array.hpp"
#include "weir/completion.hpp"
#include "weir/detail/passkey.hpp"
#include "weir/detail/submission.hpp"
#include "weir/export.hpp"
#include "weir/on.hpp"
#include "weir/operands.hpp"

namespace weir {

namespace detail {
class element_kernel;
}

/// A kernel that computes each element of its outputs from the elements of its inputs at the same place (rules K2, K3). The body is C++:
/// statements in which each parameter is one element. It runs on every device: the system's C++ compiler compiles it for the CPU and for
/// simulated devices, NVRTC for CUDA devices.
///
/// \code
/// const weir::elementwise_kernel axpy("float x, float a", "float y", "y = a * x + 1", "axpy");
/// weir::array y = axpy(s, x, 2.0F);
/// axpy.launch(s, {x, 2.0F}, {&y});
/// \endcode
///
/// Parameters are separated by commas. Their types have names of C++ or NumPy. A single capital letter, such as T, is any type, the same
/// one at all places; the body can use it as a type. An output is assigned and cannot be read, unless it is "inout float y"; an output that
/// the body does not assign is 0. An input "raw float x" is the whole array: the body reads `x[j]`, the element number j in C order, and
/// `x.size()`; it does not take part in the shape. Two more names are defined, unless parameters have them: `i`, the number of the element
/// in C order, and `n`, the number of elements. Elements of float16 and bfloat16 are float32 in the body. The body can call the functions
/// of `<cmath>`, min, max, rsqrt, conj, real and imag.
///
/// Results are the same on all devices as far as those of the called functions are: multiplications are not fused with additions. Copies
/// are the same kernel; any thread may use it. Compiled code stays loaded until the process ends, and is kept in the folder of compiled
/// kernels (WEIR_CACHE_DIR) for the next one.
class WEIR_EXPORT elementwise_kernel {
public:
    /// `name` names the operations in errors, reports and timelines; "elementwise" if it is empty. Throws argument_error, which quotes the
    /// parameter that is wrong. Compiles nothing: the first call for each combination of element types, and of arrays and numbers, does.
    elementwise_kernel(std::string_view inputs, std::string_view outputs, std::string_view body,
                       std::string_view name = {});

    /// A new array for the only output. Inputs are arrays and numbers; their shapes are broadcast. Reads the arrays. Throws as `run`, and
    /// argument_error if there are several outputs.
    template <class... Inputs>
        requires(std::convertible_to<const Inputs&, operand>&&...)
    [[nodiscard]] array operator()(const on& where, const Inputs&... inputs) const {
        const std::array<operand, sizeof...(Inputs)> all{operand(inputs)...};
        return compute_one(where, all);
    }

    /// @{
    /// New arrays for all outputs. Throws as `run`.
    [[nodiscard]] std::vector<array> compute(const on& where, std::span<const operand> inputs) const;
    [[nodiscard]] std::vector<array> compute(const on& where, std::initializer_list<operand> inputs) const {
        return compute(where, std::span(inputs.begin(), inputs.size()));
    }
    /// @}

    /// Writes all outputs to existing arrays. `tokens`: what the operation uses besides (rule K5). Throws as `run`.
    completion launch(const on& where, std::initializer_list<operand> inputs, std::initializer_list<array*> outputs,
                      std::initializer_list<token_argument> tokens = {}) const;

    /// The same for numbers of operands that are known at run time only. Empty outputs become new arrays; an "inout" output must not be
    /// empty.
    ///
    /// One operation, which reads the inputs and writes the outputs, all elements of those that are not inout. Returns once enqueued;
    /// blocks while a compiler runs, for the first call with such types. An array must have the element type that its parameter declares;
    /// a number is converted to a type of its kind or a higher one. Outputs may be inputs, or overlap them: the results are as if
    /// everything had been computed first.
    ///
    /// Throws argument_error: another number of operands, no shape for new outputs (all arrays are raw), shapes that do not broadcast to
    /// those of the outputs, a number out of range, an array of another device, outputs that share memory, a body that does not compile
    /// (the compiler's message, with lines of the body) or reads an output; argument_type_error: other element types, two types for T, or
    /// none; missing_library: no compiler (the message says what to install); device_error, out_of_memory. Then nothing was enqueued.
    completion run(const on& where, std::span<const operand> inputs, std::span<std::optional<array>> outputs,
                   std::initializer_list<token_argument> tokens = {}) const;
    /// The same for Weir's other parts, with other accesses than those of tokens.
    completion run_beside(const on& where, std::span<const operand> inputs, std::span<std::optional<array>> outputs,
                          std::span<const runtime::access_request> besides, detail::passkey key) const;

    /// @{
    /// Compiles and loads the code that a call with such operands runs, so that the call itself does neither (rule K6). Of arrays only
    /// the types, the shapes, the strides and what they overlap count; numbers stand for all numbers. Without `given` outputs, as for new
    /// ones, for which there has to be memory. Neither reads nor writes an element, and enqueues nothing; blocks while a compiler runs, and
    /// on a CUDA device until the code is loaded, which may wait for the device's work. Throws as `run`.
    void prepare(const on& where, std::span<const operand> inputs,
                 std::span<const std::optional<array>> given = {}) const;
    void prepare(const on& where, std::initializer_list<operand> inputs) const {
        prepare(where, std::span(inputs.begin(), inputs.size()));
    }
    /// @}

    /// The name; "elementwise" if none was given.
    [[nodiscard]] const std::string& name() const noexcept;
    /// The number of inputs.
    [[nodiscard]] std::size_t inputs() const noexcept;
    /// The number of outputs.
    [[nodiscard]] std::size_t outputs() const noexcept;
    /// `<weir.elementwise axpy(float32 x, float32 a -> float32 y)>`.
    [[nodiscard]] std::string to_string() const;

private:
    [[nodiscard]] array compute_one(const on& where, std::span<const operand> inputs) const;

    std::shared_ptr<const detail::element_kernel> kernel_;
};

}  // namespace weir
