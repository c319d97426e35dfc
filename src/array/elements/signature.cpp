#include "array/elements/signature.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "array/kernel_signature.hpp"
#include "weir/error.hpp"

namespace weir::elements {

namespace {

constexpr std::string_view spaces = " \t\r\n\v\f";

bool starts_name(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_in_name(char c) noexcept { return starts_name(c) || (c >= '0' && c <= '9'); }

std::string_view trimmed(std::string_view text) {
    const std::size_t first = text.find_first_not_of(spaces);
    return first == std::string_view::npos ? std::string_view()
                                           : text.substr(first, text.find_last_not_of(spaces) - first + 1);
}

[[noreturn]] void refuse_parameter(std::string_view part, const std::string& why) {
    throw argument_error("the parameter \"" + std::string(trimmed(part)) + "\" of an element-wise kernel " + why +
                         "; parameters look like this: inputs \"float x, T a\", outputs \"float y, inout T z\"");
}

/// Removes the first word from `text` if it is `word`.
bool take_word(std::string_view& text, std::string_view word) {
    if (!text.starts_with(word) || text.size() == word.size() || is_in_name(text[word.size()])) {
        return false;
    }
    text = trimmed(text.substr(word.size()));
    return true;
}

/// Keywords of C++, which the body cannot use as the name of an operand.
bool is_reserved(std::string_view name) {
    constexpr std::array words = {
        "alignas",  "alignof", "and",     "asm",      "auto",   "bitand",   "bitor",     "bool",     "break",
        "case",     "catch",   "char",    "class",    "compl",  "const",    "continue",  "decltype", "default",
        "delete",   "do",      "double",  "else",     "enum",   "explicit", "extern",    "false",    "float",
        "for",      "friend",  "goto",    "if",       "inline", "int",      "long",      "mutable",  "namespace",
        "new",      "not",     "nullptr", "operator", "or",     "private",  "protected", "public",   "register",
        "return",   "short",   "signed",  "sizeof",   "static", "struct",   "switch",    "template", "this",
        "throw",    "true",    "try",     "typedef",  "union",  "unsigned", "using",     "virtual",  "void",
        "volatile", "while",   "xor"};
    return std::find(words.begin(), words.end(), name) != words.end();
}

element_parameter parsed(std::string_view part, bool is_output) {
    std::string_view rest = trimmed(part);
    if (rest.empty()) {
        refuse_parameter(part, "is empty: there is a comma too many");
    }
    element_parameter made;
    made.use = is_output ? element_use::out : element_use::in;
    const bool is_constant = take_word(rest, "const");
    if (take_word(rest, "inout")) {
        made.use = element_use::inout;
    } else if (take_word(rest, "out")) {
        made.use = element_use::out;
    } else if (take_word(rest, "in")) {
        made.use = element_use::in;
    }
    made.is_raw = take_word(rest, "raw");
    if (made.is_raw && is_output) {
        refuse_parameter(
            part,
            "is an output, and raw: the body writes the element at its own place alone; to write elsewhere, write a "
            "Kernel or a weir.kernel");
    }
    if ((made.use == element_use::in) == is_output) {
        refuse_parameter(part, is_output ? "is an output, and not in: read and written elements are \"inout\""
                                         : "is an input: list what is written with the outputs");
    }
    if (is_output && is_constant) {
        refuse_parameter(part, "is written and const at once");
    }
    std::size_t start = rest.size();
    while (start > 0 && is_in_name(rest[start - 1])) {
        --start;
    }
    made.name = rest.substr(start);
    const std::string_view type = trimmed(rest.substr(0, start));
    if (made.name.empty() || !starts_name(made.name.front()) || type.empty()) {
        refuse_parameter(part, rest.find('*') != std::string_view::npos
                                   ? "is a pointer: an element-wise kernel sees single elements, so leave out the *"
                                   : "has no name, or no type");
    }
    if (is_reserved(made.name) || kernels::type_named(made.name)) {
        refuse_parameter(part, "has no name of its own: \"" + made.name + "\" is a word of C++ or a type");
    }
    if (made.name.starts_with("weir") || made.name.starts_with("_")) {
        refuse_parameter(part, "has a name that Weir uses itself: names start with a letter, and not with \"weir\"");
    }
    made.type = kernels::type_named(type);
    if (!made.type) {
        if (type.size() == 1 && type.front() >= 'A' && type.front() <= 'Z') {
            made.variable = type;
            return made;
        }
        if (type.find('*') != std::string_view::npos) {
            refuse_parameter(part, "is a pointer: an element-wise kernel sees single elements, so leave out the *");
        }
        refuse_parameter(part, "has a type that is not known, \"" + std::string(type) +
                                   "\": take a number type of C++ (float, unsigned, long long) or of NumPy (float32, "
                                   "int64, complex64), or one capital letter for any (T)");
    }
    return made;
}

std::vector<element_parameter> parsed_list(std::string_view text, bool is_output) {
    std::vector<element_parameter> all;
    if (trimmed(text).empty()) {
        return all;
    }
    for (std::size_t start = 0; start <= text.size();) {
        const std::size_t end = std::min(text.find(',', start), text.size());
        all.push_back(parsed(text.substr(start, end - start), is_output));
        start = end + 1;
    }
    return all;
}

/// Refuses a name that one of `others` has, too.
void expect_new_name(const element_parameter& one, std::vector<std::string>& others) {
    if (std::find(others.begin(), others.end(), one.name) != others.end()) {
        refuse_parameter(elements::to_string(one), "has a name that another one has");
    }
    others.push_back(one.name);
}

std::string listed(const std::vector<element_parameter>& all) {
    std::string text;
    for (const element_parameter& one : all) {
        text += (text.empty() ? "" : ", ") + elements::to_string(one);
    }
    return text;
}

}  // namespace

std::string to_string(const element_parameter& one) {
    const std::string use = one.use == element_use::inout ? "inout " : one.is_raw ? "raw " : "";
    return use + (one.type ? name_of(*one.type) : one.variable) + " " + one.name;
}

element_signature::element_signature(std::string_view inputs_text, std::string_view outputs_text)
    : inputs(parsed_list(inputs_text, false)), outputs(parsed_list(outputs_text, true)) {
    if (outputs.empty()) {
        throw argument_error(
            "an element-wise kernel has at least one output, such as \"float y\", and the outputs are \"\"");
    }
    if (inputs.size() + outputs.size() > most_parameters) {
        throw argument_error("an element-wise kernel has " + std::to_string(most_parameters) +
                             " parameters at most, and these are " + std::to_string(inputs.size() + outputs.size()));
    }
    std::vector<std::string> names;
    for (const auto* const list : {&inputs, &outputs}) {
        for (const element_parameter& one : *list) {
            expect_new_name(one, names);
        }
    }
}

std::string element_signature::to_string() const { return listed(inputs) + " -> " + listed(outputs); }

std::vector<element_parameter> parsed_fields(std::string_view text) {
    std::vector<element_parameter> all = parsed_list(text, false);
    std::vector<std::string> names;
    for (const element_parameter& one : all) {
        expect_new_name(one, names);
    }
    return all;
}

bool declares(const element_signature& signature, std::string_view name) {
    for (const auto* const list : {&signature.inputs, &signature.outputs}) {
        for (const element_parameter& one : *list) {
            if (one.name == name) {
                return true;
            }
        }
    }
    return false;
}

bool mentions(std::string_view text, std::string_view name) {
    for (std::size_t at = 0; at < text.size();) {
        const char c = text[at];
        if (text.substr(at).starts_with("//")) {
            at = std::min(text.find('\n', at), text.size());
        } else if (text.substr(at).starts_with("/*")) {
            const std::size_t end = text.find("*/", at + 2);
            at = end == std::string_view::npos ? text.size() : end + 2;
        } else if (c == '"' || c == '\'') {
            for (++at; at < text.size() && text[at] != c; ++at) {
                if (text[at] == '\\') {
                    ++at;
                }
            }
            ++at;
        } else if (is_in_name(c)) {
            const std::size_t start = at;
            const bool is_number = !starts_name(c);  // in a number ' may separate digits: 1'000
            while (at < text.size() && (is_in_name(text[at]) || (is_number && text[at] == '\''))) {
                ++at;
            }
            if (text.substr(start, at - start) == name) {
                return true;
            }
        } else {
            ++at;
        }
    }
    return false;
}

}  // namespace weir::elements
