#include "array/kernel_messages.hpp"

#include <array>

#include "weir/error.hpp"

namespace weir::kernels {

namespace {

/// How to correct an argument of a wrong kind or type.
std::string mend_of(const parameter& as) {
    if (as.use == parameter_use::structure) {
        return "pass a structure that is trivially copyable";
    }
    if (as.use != parameter_use::value) {
        return as.type ? "pass a weir::array of " + weir::name_of(*as.type) + ", astype(on, x, dtype) converts one"
                       : "pass a weir::array";
    }
    switch (kind_of(*as.type)) {
        case dtype_kind::boolean:
            return "pass a bool";
        case dtype_kind::unsigned_integer:
        case dtype_kind::signed_integer:
            return "pass an integer of " + weir::name_of(*as.type);
        case dtype_kind::complex:
            return "pass a number, or a complex one, of " + weir::name_of(*as.type);
        default:
            return "pass a number of " + weir::name_of(*as.type);
    }
}

}  // namespace

const char* name_of(parameter_use use) noexcept {
    switch (use) {
        case parameter_use::in:
            return "in";
        case parameter_use::out:
            return "out";
        case parameter_use::inout:
            return "inout";
        default:
            return "";
    }
}

std::string start_of_message(const kernel& what, std::size_t position, const parameter& as) {
    return "argument " + std::to_string(position + 1) + " of the kernel " + what.name() + " is \"" + to_string(as) +
           "\", and got ";
}

void refuse_count(const kernel& what, std::size_t given, std::size_t has) {
    throw argument_error("the kernel " + what.to_string() + " has " + std::to_string(has) + " parameters, and got " +
                         std::to_string(given) + " arguments: pass one for each parameter, in their order");
}

void refuse_type(const kernel& what, std::size_t position, const parameter& as, const std::string& got) {
    throw argument_type_error(start_of_message(what, position, as) + got + ": " + mend_of(as));
}

void refuse_size(const kernel& what, std::size_t position, const parameter& as, std::size_t got, std::size_t has) {
    throw argument_error(start_of_message(what, position, as) + "a structure of " + std::to_string(got) +
                         " bytes, and the parameter has " + std::to_string(has) +
                         ": declare the same fields, with the same alignment, as the kernel");
}

void refuse_use(const kernel& what, std::size_t position, const parameter& as, parameter_use got) {
    throw argument_error(start_of_message(what, position, as) + "an array as " + name_of(got) +
                         ": pass it as weir::" + name_of(as.use) + "(x), or change the signature");
}

void refuse_range(const kernel& what, std::size_t position, const parameter& as, const std::string& got) {
    throw argument_error(start_of_message(what, position, as) + got + ", which is out of range: pass a number of " +
                         weir::name_of(*as.type) + ", or declare a wider type");
}

}  // namespace weir::kernels
