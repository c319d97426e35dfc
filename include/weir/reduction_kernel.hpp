// Reductions along axes that a program gives as text: one source for the CPU and for CUDA devices. Layer: array.
#pragma once

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
#include "weir/dtype.hpp"
#include "weir/export.hpp"
#include "weir/on.hpp"
#include "weir/operands.hpp"
#include "weir/reduction.hpp"
#include "weir/scalar.hpp"

namespace weir {

namespace detail {
class reduction_program;
}

/// The value of no elements in a reduction: a C++ expression, or a number.
class reduction_identity {
public:
    /// There is none.
    reduction_identity() = default;
    /// A C++ expression such as "0", or a list of fields in braces; empty: there is none.
    template <std::convertible_to<std::string_view> Text>
    reduction_identity(const Text& expression)  // NOLINT(google-explicit-constructor): a text is the common case
        : expression_(std::string_view(expression)) {}
    /// @{
    /// A number, infinities and NaN included. It must be in the range of the type of the reduced values, which a call knows; for integers it
    /// has no fraction.
    reduction_identity(const scalar& number) noexcept : number_(number) {}  // NOLINT(google-explicit-constructor)
    template <element Number>
    reduction_identity(Number number) noexcept : number_(number) {}  // NOLINT(google-explicit-constructor)
    /// @}

    /// The expression; empty if it is a number, or nothing.
    [[nodiscard]] const std::string& expression() const noexcept { return expression_; }
    /// The number; empty if it is an expression, or nothing.
    [[nodiscard]] const std::optional<scalar>& number() const noexcept { return number_; }

private:
    std::string expression_;
    std::optional<scalar> number_;
};

/// The texts of a reduction: C++ expressions, and statements for `post`.
struct reduction_texts {
    std::string map;  ///< what is reduced, of one element of each input: "x * x"; "{x, i}" if values have fields
    std::string reduce = "a + b";  ///< one value for the two values a and b
    std::string post =
        {};  ///< assigns the outputs, from the reduced value a: "y = sqrt(a)"; empty: the one output is a
    reduction_identity identity = {};  ///< the value of no elements: "0", or 0; empty: no elements are an error
    std::string type =
        {};  ///< of the values that are reduced: "float64", "T", fields "T value, int64 index"; empty: that of the first output
    std::string name = {};  ///< of the operations in errors, reports and timelines; empty: "reduction"
};

/// A kernel that reduces its inputs along axes (rules K2, K3): it maps the elements of the inputs at the same place to one value, combines
/// these values in pairs, and computes the outputs from the last one. It runs on every device, as elementwise_kernel does.
///
/// \code
/// const weir::reduction_kernel norm("T x", "T y", {.map = "x * x", .post = "y = sqrt(a)", .identity = "0", .name = "norm"});
/// weir::array lengths = norm(s, {x}, weir::along(1));
/// \endcode
///
/// In `map`, `i` is the number of the element among those that are reduced to the same result, in C order of the reduced axes (of the
/// inputs' common shape), and `n` is how many these are; `post` knows `n`, too. An input or output of such a name hides it. Where `type`
/// is a list of fields, a value is a struct: texts refer to `a.value`, and give a value as a list of its fields in braces. So the first
/// largest element of each row, and where it is, are:
///
/// \code
/// const weir::reduction_kernel argmax("T x", "T most, int64 where",
///                                     {.map = "{x, i}",
///                                      .reduce = "a.value > b.value || (a.value == b.value && a.index < b.index) ? a : b",
///                                      .post = "most = a.value; where = a.index",
///                                      .type = "T value, int64 index"});
/// \endcode
///
/// `reduce` must be associative and commutative, up to rounding. The order in which values are combined depends only on the shape, on a
/// CUDA device also on whether results or the elements of one are closer in memory: results are the same bits in every run, with any
/// number of threads, and on every GPU. On the CPU at most 64 values are combined one after the other, on a CUDA device 32; all else in
/// pairs: a sum of n numbers is within (68 + log2(n / 1024)) units of rounding of the sum of their magnitudes.
/// Elements of float16 and bfloat16 are float32 in the texts; multiplications are not fused with additions.
///
/// Copies are the same kernel; any thread may use it. Compiled code stays loaded until the process ends, and is kept in the folder of
/// compiled kernels (WEIR_CACHE_DIR) for the next one.
class WEIR_EXPORT reduction_kernel {
public:
    /// Inputs and outputs are those of elementwise_kernel, but no output is inout. Throws argument_error, which quotes what is wrong.
    /// Compiles nothing: the first call for each combination of element types, and of arrays and numbers, does.
    reduction_kernel(std::string_view inputs, std::string_view outputs, const reduction_texts& texts);

    /// A new array for the only output: the shape to which the inputs broadcast, without the reduced axes, or with extents of 1
    /// there (`along::keep`). Throws as `run`, and argument_error if there are several outputs.
    [[nodiscard]] array operator()(const on& where, std::initializer_list<operand> inputs,
                                   const along& axes = {}) const {
        return compute_one(where, std::span(inputs.begin(), inputs.size()), axes);
    }

    /// New arrays for all outputs. Throws as `run`.
    [[nodiscard]] std::vector<array> compute(const on& where, std::span<const operand> inputs,
                                             const along& axes = {}) const;

    /// Writes all outputs to existing arrays. `tokens`: what the operation uses besides (rule K5). Throws as `run`.
    completion launch(const on& where, std::initializer_list<operand> inputs, std::initializer_list<array*> outputs,
                      const along& axes = {}, std::initializer_list<token_argument> tokens = {}) const;

    /// The same for numbers of operands that are known at run time only. Empty outputs become new arrays.
    ///
    /// One operation, which reads the inputs and writes every element of the outputs. Returns once enqueued; blocks while a compiler runs,
    /// for the first call with such types, which on a CUDA device may also wait for the device's work (rule K6). Arrays have exactly the
    /// declared types; numbers are converted. Outputs may overlap inputs: results are as if all had been computed first.
    ///
    /// Throws argument_error: another number of operands, shapes that do not broadcast, an axis that is not there or is named twice,
    /// outputs of another shape or that share memory, no elements and no identity, an array of another device, a text that does not
    /// compile (with the compiler's message); argument_type_error: other element types; missing_library: no compiler; device_error,
    /// out_of_memory. Then nothing was enqueued.
    completion run(const on& where, std::span<const operand> inputs, std::span<std::optional<array>> outputs,
                   const along& axes = {}, std::initializer_list<token_argument> tokens = {}) const;
    /// The same for Weir's other parts, with other accesses than those of tokens.
    completion run_beside(const on& where, std::span<const operand> inputs, std::span<std::optional<array>> outputs,
                          const along& axes, std::span<const runtime::access_request> besides,
                          detail::passkey key) const;

    /// @{
    /// Compiles and loads the code that a call with such operands runs, as elementwise_kernel::prepare does. Throws as `run`.
    void prepare(const on& where, std::span<const operand> inputs, const along& axes = {}) const;
    void prepare(const on& where, std::initializer_list<operand> inputs, const along& axes = {}) const {
        prepare(where, std::span(inputs.begin(), inputs.size()), axes);
    }
    /// @}

    /// The name; "reduction" if none was given.
    [[nodiscard]] const std::string& name() const noexcept;
    /// The number of inputs.
    [[nodiscard]] std::size_t inputs() const noexcept;
    /// The number of outputs.
    [[nodiscard]] std::size_t outputs() const noexcept;
    /// `<weir.reduction norm(T x -> T y)>`.
    [[nodiscard]] std::string to_string() const;

private:
    [[nodiscard]] array compute_one(const on& where, std::span<const operand> inputs, const along& axes) const;

    std::shared_ptr<const detail::reduction_program> kernel_;
};

}  // namespace weir
