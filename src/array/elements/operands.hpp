#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "array/elements/signature.hpp"
#include "array/elements/source.hpp"
#include "weir/arithmetic.hpp"
#include "weir/array.hpp"
#include "weir/completion.hpp"
#include "weir/on.hpp"
#include "weir/shape.hpp"

namespace weir::elements {

/// The bytes of a number, in the type that the body sees.
struct number_bytes {
    alignas(16) std::array<std::byte, 16> bytes{};
};

/// The operands of one call, checked against the signature of a kernel: their types, the bytes of numbers, and the shape to which the
/// inputs broadcast. Keeps references to all that it is given.
class typed_operands {
public:
    /// `title` begins every message: "the element-wise kernel axpy(...): ". Throws argument_error, argument_type_error.
    typed_operands(const on& where, const std::string& title, const element_signature& signature,
                   std::span<const operand> inputs, std::span<std::optional<array>> outputs)
        : where_(where), title_(title), signature_(signature), inputs_(inputs), outputs_(outputs) {
        expect_counts();
        find_types();
        check_inputs();
        find_shape_of_inputs();
    }

protected:
    /// Calls `enqueue`, which makes the outputs that are not given. If it throws, they are not given again.
    template <class Enqueue>
    completion with_new_outputs(Enqueue&& enqueue) {
        std::array<bool, most_parameters> is_new{};
        for (std::size_t k = 0; k < outputs_.size(); ++k) {
            is_new[k] = !outputs_[k];
        }
        try {
            return enqueue();
        } catch (...) {
            for (std::size_t k = 0; k < outputs_.size(); ++k) {
                if (is_new[k]) {
                    outputs_[k].reset();
                }
            }
            throw;
        }
    }
    [[nodiscard]] const std::string& start() const noexcept { return title_; }
    /// The type of the operands that have this variable; none if there is no such variable.
    [[nodiscard]] std::optional<dtype> variable(const std::string& name) const;

    const on& where_;
    const std::string& title_;
    const element_signature& signature_;
    std::span<const operand> inputs_;
    std::span<std::optional<array>> outputs_;
    element_types types_;
    std::array<number_bytes, most_parameters> numbers_;  ///< for each input, used for numbers
    shape shape_;                                        ///< to which the inputs broadcast

private:
    void expect_counts() const;
    void find_types();
    void find_variable(const std::string& name, dtype found, const std::string& of);
    [[nodiscard]] dtype type_of(const element_parameter& one) const;
    void check_inputs();
    void find_shape_of_inputs();
    [[nodiscard]] std::string input_text(std::size_t k) const {
        return title_ + "the input \"" + elements::to_string(signature_.inputs[k]) + "\" got ";
    }

    std::vector<std::pair<std::string, dtype>> variables_;
};

}  // namespace weir::elements
