#include "array/elements/reduction_program.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <string>
#include <variant>

#include "array/elements/host_compiler.hpp"
#include "array/elements/kernel.hpp"
#include "array/kernel_signature.hpp"
#include "weir/error.hpp"

namespace weir::detail {

namespace {

/// What `parse` returns, in whose messages an element-wise kernel becomes a reduction.
template <class Parse>
auto parsed_for_reduction(Parse&& parse) {
    try {
        return parse();
    } catch (const argument_error& wrong) {
        std::string message = wrong.what();
        const std::string said = "an element-wise kernel";
        for (std::size_t at = message.find(said); at != std::string::npos; at = message.find(said)) {
            message.replace(at, said.size(), "a reduction");
        }
        throw argument_error(message);
    }
}

bool is_blank(std::string_view text) noexcept { return text.find_first_not_of(" \t\r\n") == std::string_view::npos; }

/// An expression, which ends where its text ends.
std::string expression(std::string_view text, const char* what, const std::string& title) {
    while (!text.empty() && (std::isspace(static_cast<unsigned char>(text.back())) != 0)) {
        text.remove_suffix(1);
    }
    if (text.ends_with(';')) {
        throw argument_error(title + "the " + what + " \"" + std::string(text) +
                             "\" ends with a semicolon: it is one expression, such as " +
                             (what == std::string_view(elements::map_file) ? "\"x * x\"" : "\"a + b\"") +
                             "; statements belong into post");
    }
    return std::string(text);
}

/// A real number as an expression, exactly. Infinities and NaN by their bits, since no header declares names for them on CUDA devices.
std::string literal(double value) {
    if (std::isnan(value)) {
        return "static_cast<float64>(float_of(0x7fc00000U))";
    }
    if (std::isinf(value)) {
        return std::string(value < 0 ? "-" : "") + "static_cast<float64>(float_of(0x7f800000U))";
    }
    std::array<char, 32> text{};
    const auto end = std::to_chars(text.begin(), text.end(), value, std::chars_format::scientific);
    return {text.data(), end.ptr};
}
std::string literal(bool value) { return value ? "true" : "false"; }
std::string literal(std::uint64_t value) { return std::to_string(value) + "ULL"; }
std::string literal(std::int64_t value) {
    // The smallest one has no literal.
    return value == std::numeric_limits<std::int64_t>::min() ? "(-9223372036854775807LL - 1)"
                                                             : std::to_string(value) + "LL";
}
std::string literal(const std::complex<double>& value) {
    return "complex128{" + literal(value.real()) + ", " + literal(value.imag()) + "}";
}

/// A key for maps: the types that code is compiled for.
std::string fingerprint(const elements::element_types& types, const elements::value_types& value) {
    std::string text = types.fingerprint();
    for (const dtype one : value) {
        text += name_of(one) + " ";
    }
    return text;
}

/// The text that a compiler's log names first, as "map:1:5: error: ..." or "map(1): error: ...".
const char* text_in_log(const std::string& log) {
    const char* found = nullptr;
    std::size_t first = std::string::npos;
    for (const char* const name :
         {elements::map_file, elements::reduce_file, elements::post_file, elements::identity_file}) {
        const std::string file = name;
        for (std::size_t at = log.find(file); at != std::string::npos && at < first; at = log.find(file, at + 1)) {
            const std::size_t next = at + file.size();
            const bool is_start = at == 0 || std::isspace(static_cast<unsigned char>(log[at - 1])) != 0;
            if (is_start && next < log.size() && (log[next] == ':' || log[next] == '(')) {
                first = at;
                found = name;
            }
        }
    }
    return found;
}

std::string first_error_in_log(const std::string& log) {
    const std::string word = "error: ";
    const std::size_t at = log.find(word);
    return at == std::string::npos ? std::string()
                                   : ": " + log.substr(at + word.size(), log.find('\n', at) - at - word.size());
}

[[noreturn]] void refuse_texts(const reduction_program& what, const std::string& compiler, const std::string& log) {
    const std::string one = "the reduction " + what.to_string();
    if (const elements::element_parameter* const output =
            elements::read_output(what.text().signature, log, what.text().post)) {
        throw argument_error("the post of " + one + " reads the output " + output->name +
                             ", which it can only assign: read a, or a variable of post\n" + compiler + " says:\n" +
                             elements::without_context(log));
    }
    const char* const file = text_in_log(log);
    const std::string place = file == nullptr ? one : std::string("the ") + file + " of " + one;
    throw argument_error(place + " does not compile" + first_error_in_log(log) + "\n" + compiler + " says:\n" +
                         elements::without_context(log));
}

}  // namespace

reduction_program::reduction_program(std::string_view inputs, std::string_view outputs, const reduction_texts& texts)
    : text_{parsed_for_reduction([&] { return elements::element_signature(inputs, outputs); }),
            {},
            {},
            texts.post,
            {},
            {}},
      identity_(texts.identity.number()),
      name_(texts.name.empty() ? "reduction" : texts.name),
      title_("the reduction " + to_string() + ": "),
      label_(elements::kept_label(name_)) {
    for (const elements::element_parameter& one : text_.signature.inputs) {
        if (one.is_raw) {
            throw argument_error(
                title_ + "the input \"" + elements::to_string(one) +
                "\" is raw: a reduction sees one element of each input; compute what needs others with an "
                "element-wise kernel before");
        }
    }
    for (const std::string_view one :
         {texts.map, texts.reduce, texts.post, texts.identity.expression(), texts.type, texts.name}) {
        if (one.find('\0') != std::string_view::npos) {
            throw argument_error(title_ + "one of its texts has a character 0 in it: leave it out");
        }
    }
    if (is_blank(texts.map) || is_blank(texts.reduce)) {
        throw argument_error(title_ + (is_blank(texts.map) ? "the map is empty: say what is reduced, as in \"x * x\""
                                                           : "reduce is empty: combine a and b, as in \"a + b\""));
    }
    text_.map = expression(texts.map, elements::map_file, title_);
    text_.reduce = expression(texts.reduce, elements::reduce_file, title_);
    read_value(texts.type);
    if (identity_) {
        if (text_.has_fields()) {
            throw argument_error(title_ + "its values have fields and the identity is the number " +
                                 identity_->to_string() +
                                 ": give a text with a value for each field, as in \"{0, -1}\"");
        }
        text_.identity = std::visit([](const auto& value) { return literal(value); }, identity_->value());
    } else if (!is_blank(texts.identity.expression())) {
        text_.identity = expression(texts.identity.expression(), elements::identity_file, title_);
    }
    if (is_blank(texts.post)) {
        text_.post.clear();
        if (text_.has_fields()) {
            throw argument_error(
                title_ + "its values have fields and there is no post: assign the outputs there, as in \"y = a." +
                text_.value.back().name + "\"");
        }
        if (text_.signature.outputs.size() > 1) {
            throw argument_error(title_ +
                                 "it has several outputs and no post: assign them there, as in \"y = a; z = "
                                 "a / 2\"");
        }
    }
    for (const elements::element_parameter& one : text_.signature.outputs) {
        if (one.use == elements::element_use::inout) {
            throw argument_error(title_ + "the output \"" + elements::to_string(one) +
                                 "\" is inout: a reduction writes its outputs and reads none");
        }
        if (one.name == "a") {
            throw argument_error(title_ +
                                 "an output is called a, which is the reduced value in post: take another name");
        }
    }
}

/// Sets the fields of the reduced values.
void reduction_program::read_value(std::string_view type) {
    elements::element_parameter number;
    if (is_blank(type)) {
        number.type = text_.signature.outputs.front().type;
        number.variable = text_.signature.outputs.front().variable;
    } else if (number.type = kernels::type_named(type); !number.type) {
        if (type.find_first_of(" ,") != std::string_view::npos) {
            text_.value = parsed_for_reduction([&] { return elements::parsed_fields(type); });
        }
        number.variable = type;
    }
    if (text_.value.empty()) {
        text_.value.push_back(number);
    }
    if (text_.value.size() > elements::most_parameters) {
        throw argument_error(title_ + "its values have " + std::to_string(text_.value.size()) + " fields, of at most " +
                             std::to_string(elements::most_parameters));
    }
    for (const elements::element_parameter& field : text_.value) {
        const auto has_it = [&](const elements::element_parameter& one) { return one.variable == field.variable; };
        if (!field.type && std::none_of(text_.signature.inputs.begin(), text_.signature.inputs.end(), has_it) &&
            std::none_of(text_.signature.outputs.begin(), text_.signature.outputs.end(), has_it)) {
            throw argument_error(
                title_ + "the type \"" + field.variable +
                "\" of the reduced values is not known: take a number type of C++ or NumPy, such as "
                "float64, a type variable of its operands, or fields such as \"T value, int64 index\"");
        }
    }
}

void reduction_program::expect_identity(const elements::value_types& value) const {
    if (!identity_) {
        return;
    }
    const dtype type = value[0];
    const auto* const real = std::get_if<double>(&identity_->value());
    const auto* const complex = std::get_if<std::complex<double>>(&identity_->value());
    const auto becomes_infinite = [](double number) {
        return std::isfinite(number) && !std::isfinite(static_cast<float>(number));
    };
    bool fits = true;
    try {
        identity_->expect_fits(type);
    } catch (const argument_error&) {
        fits = false;
    }
    if (type == dtype::float32 || type == dtype::complex64) {
        fits = fits && (real == nullptr || !becomes_infinite(*real)) &&
               (complex == nullptr || !(becomes_infinite(complex->real()) || becomes_infinite(complex->imag())));
    }
    if (real != nullptr && is_integer(type)) {
        fits = fits && std::trunc(*real) == *real;
    }
    if (!fits) {
        throw argument_error(
            title_ + "the identity " + identity_->to_string() + " is no value of " + name_of(type) +
            ", the type of the reduced values: give a number of that type, or another type for the values");
    }
}

std::string reduction_program::to_string() const { return name_ + "(" + text_.signature.to_string() + ")"; }

elements::host_reduction reduction_program::on_host(const elements::element_types& types,
                                                    const elements::value_types& value) const {
    const std::string wanted = fingerprint(types, value);
    {
        const std::lock_guard lock(mutex_);
        if (const auto found = host_.find(wanted); found != host_.end()) {
            return found->second;
        }
    }
    expect_identity(value);
    try {
        // The function has another type than that of an element-wise kernel: it is called as what it is.
        const auto function =
            reinterpret_cast<void (*)()>(elements::load_loop(elements::host_source(text_, types, value)));
        const auto made = reinterpret_cast<elements::host_reduction>(function);
        const std::lock_guard lock(mutex_);
        return host_.try_emplace(wanted, made).first->second;
    } catch (const elements::compile_failure& why) {
        refuse_texts(*this, "The compiler " + why.compiler, why.log);
    }
}

backend::capability::function_handle reduction_program::on_device(const array_kernels::kernels& in,
                                                                  const elements::element_types& types,
                                                                  const elements::value_types& value,
                                                                  const elements::reduction_form& form) const {
    const device_key wanted(&in, fingerprint(types, value) + form.fingerprint());
    {
        const std::lock_guard lock(mutex_);
        if (const auto found = device_.find(wanted); found != device_.end()) {
            return found->second;
        }
    }
    expect_identity(value);
    try {
        const backend::capability::function_handle made =
            elements::loaded_from(in, elements::cuda_source(text_, types, value, form));
        const std::lock_guard lock(mutex_);
        return device_.try_emplace(wanted, made).first->second;
    } catch (const argument_error& why) {
        refuse_texts(*this, "NVRTC", elements::compiler_log(why));
    }
}

}  // namespace weir::detail
