#include "array/elements/operands.hpp"

#include <algorithm>
#include <cmath>
#include <variant>

#include "array/operation.hpp"
#include "array/promotion.hpp"
#include "weir/error.hpp"
#include "weir/scalar.hpp"

namespace weir::elements {

void typed_operands::expect_counts() const {
    if (inputs_.size() != signature_.inputs.size()) {
        throw argument_error(title_ + "it has " + std::to_string(signature_.inputs.size()) + " inputs, and got " +
                             std::to_string(inputs_.size()) +
                             ": pass an array or a number for each input, in their order, and the outputs apart");
    }
    if (outputs_.size() != signature_.outputs.size()) {
        throw argument_error(title_ + "it has " + std::to_string(signature_.outputs.size()) +
                             " outputs, and got arrays for " + std::to_string(outputs_.size()) +
                             ": pass one for each output");
    }
    for (std::size_t k = 0; k < outputs_.size(); ++k) {
        if (!outputs_[k] && signature_.outputs[k].use == element_use::inout) {
            throw argument_error(title_ + "the output \"" + elements::to_string(signature_.outputs[k]) +
                                 "\" is read as well, and there is no array for it: pass the array as an output");
        }
    }
}

void typed_operands::find_variable(const std::string& name, dtype found, const std::string& of) {
    const auto known =
        std::find_if(variables_.begin(), variables_.end(), [&](const auto& one) { return one.first == name; });
    if (known == variables_.end()) {
        variables_.emplace_back(name, found);
    } else if (known->second != found) {
        throw argument_type_error(title_ + name + " is " + name_of(known->second) + " for one operand and " +
                                  name_of(found) + " for " + of + ": convert one of them with astype(on, x, dtype)");
    }
}

void typed_operands::find_types() {
    for (std::size_t k = 0; k < inputs_.size(); ++k) {
        const element_parameter& one = signature_.inputs[k];
        if (!one.type && inputs_[k].is_array()) {
            find_variable(one.variable, inputs_[k].of_array().dtype(), one.name);
        }
    }
    for (std::size_t k = 0; k < outputs_.size(); ++k) {
        const element_parameter& one = signature_.outputs[k];
        if (!one.type && outputs_[k]) {
            find_variable(one.variable, outputs_[k]->dtype(), one.name);
        }
    }
    // If all operands are numbers, they have the default types of their kinds.
    std::vector<std::pair<std::string, dtype>> of_numbers;
    for (std::size_t k = 0; k < inputs_.size(); ++k) {
        const element_parameter& one = signature_.inputs[k];
        const auto names_it = [&](const auto& each) { return each.first == one.variable; };
        if (one.type || inputs_[k].is_array() || std::any_of(variables_.begin(), variables_.end(), names_it)) {
            continue;
        }
        const dtype alone = promotion::alone(inputs_[k].number());
        const auto known = std::find_if(of_numbers.begin(), of_numbers.end(), names_it);
        if (known == of_numbers.end()) {
            of_numbers.emplace_back(one.variable, alone);
        } else {
            known->second = promote_types(known->second, alone);
        }
    }
    variables_.insert(variables_.end(), of_numbers.begin(), of_numbers.end());
    for (std::size_t k = 0; k < inputs_.size(); ++k) {
        types_.inputs.push_back(type_of(signature_.inputs[k]));
        types_.is_whole.push_back(!inputs_[k].is_array() || signature_.inputs[k].is_raw);
    }
    for (const element_parameter& one : signature_.outputs) {
        types_.outputs.push_back(type_of(one));
    }
}

dtype typed_operands::type_of(const element_parameter& one) const {
    if (one.type) {
        return *one.type;
    }
    const auto found = std::find_if(variables_.begin(), variables_.end(),
                                    [&](const auto& each) { return each.first == one.variable; });
    if (found == variables_.end()) {
        throw argument_type_error(
            title_ + "the type " + one.variable + " of \"" + elements::to_string(one) +
            "\" is not known, since no operand has it: pass an array for the output, or declare a "
            "type such as float32");
    }
    detail::expect_arithmetic(found->second, "an element-wise kernel");
    return found->second;
}

void typed_operands::check_inputs() {
    for (std::size_t k = 0; k < inputs_.size(); ++k) {
        const dtype type = types_.inputs[k];
        if (signature_.inputs[k].is_raw && !inputs_[k].is_array()) {
            throw argument_type_error(input_text(k) + "the number " + inputs_[k].number().to_string() +
                                      ": pass an array, which the body indexes");
        }
        if (inputs_[k].is_array()) {
            const array& x = inputs_[k].of_array();
            if (x.dtype() != type) {
                throw argument_type_error(input_text(k) + "an array of " + name_of(x.dtype()) +
                                          ": convert it with astype(on, x, dtype), or declare the input \"T " +
                                          signature_.inputs[k].name + "\"");
            }
            operation::expect_on_device_of(where_, x);
            continue;
        }
        const scalar& number = inputs_[k].number();
        const bool is_lower = number.kind() <= kind_of(type) ||
                              (number.kind() <= dtype_kind::signed_integer && kind_of(type) != dtype_kind::boolean);
        // Bindings pass integers beyond all integer types as real numbers, rounded.
        if (const auto* const real = std::get_if<double>(&number.value());
            real != nullptr && is_integer(type) && std::isfinite(*real) && std::abs(*real) >= 0x1p63) {
            throw argument_error(input_text(k) + "the number " + number.to_string() +
                                 ", which is out of range: pass one of " + name_of(type) + ", or declare another type");
        }
        if (!is_lower) {
            throw argument_type_error(input_text(k) + "the number " + number.to_string() +
                                      ": pass one of its kind, or declare another type");
        }
        number.expect_fits(type);
        number.store(type, numbers_[k].bytes.data());
        if (const dtype seen = seen_as(type); seen != type) {
            scalar::load(type, numbers_[k].bytes.data()).store(seen, numbers_[k].bytes.data());
        }
    }
}

void typed_operands::find_shape_of_inputs() {
    for (std::size_t k = 0; k < inputs_.size(); ++k) {
        if (inputs_[k].is_array() && !signature_.inputs[k].is_raw) {
            try {
                shape_ = broadcast_shapes(shape_, inputs_[k].of_array().shape());
            } catch (const argument_error&) {
                throw argument_error(input_text(k) + "the shape " + inputs_[k].of_array().shape().to_string() +
                                     ", which does not broadcast with " + shape_.to_string() +
                                     " of the inputs before it: extents are the same, or 1");
            }
        }
    }
}

std::optional<dtype> typed_operands::variable(const std::string& name) const {
    for (const auto& [known, type] : variables_) {
        if (known == name) {
            return type;
        }
    }
    return std::nullopt;
}

}  // namespace weir::elements
