#include "array/kernel_signature.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "weir/error.hpp"

namespace weir::kernels {

namespace {

constexpr bool is_letter(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
constexpr bool is_space(char c) noexcept { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// Type names other than combinations of the words for integers.
constexpr std::array<std::pair<std::string_view, dtype>, 41> type_names = {{
    {"bool", dtype::bool_},
    {"int8", dtype::int8},
    {"int16", dtype::int16},
    {"int32", dtype::int32},
    {"int64", dtype::int64},
    {"uint8", dtype::uint8},
    {"uint16", dtype::uint16},
    {"uint32", dtype::uint32},
    {"uint64", dtype::uint64},
    {"int8_t", dtype::int8},
    {"int16_t", dtype::int16},
    {"int32_t", dtype::int32},
    {"int64_t", dtype::int64},
    {"uint8_t", dtype::uint8},
    {"uint16_t", dtype::uint16},
    {"uint32_t", dtype::uint32},
    {"uint64_t", dtype::uint64},
    {"size_t", dtype::uint64},
    {"ptrdiff_t", dtype::int64},
    {"intp", dtype::int64},
    {"uintp", dtype::uint64},
    {"float16", dtype::float16},
    {"half", dtype::float16},
    {"__half", dtype::float16},
    {"bfloat16", dtype::bfloat16},
    {"__nv_bfloat16", dtype::bfloat16},
    {"nv_bfloat16", dtype::bfloat16},
    {"float", dtype::float32},
    {"float32", dtype::float32},
    {"double", dtype::float64},
    {"float64", dtype::float64},
    {"complex64", dtype::complex64},
    {"complex128", dtype::complex128},
    {"float2", dtype::complex64},
    {"double2", dtype::complex128},
    {"cuFloatComplex", dtype::complex64},
    {"cuDoubleComplex", dtype::complex128},
    {"cuComplex", dtype::complex64},
    {"complex<float>", dtype::complex64},
    {"complex<double>", dtype::complex128},
    {"bool_", dtype::bool_},
}};

/// The words of one parameter: names with their "::" and "<...>", and stars.
class words {
public:
    explicit words(std::string_view text) : rest_(text) {
        for (std::string_view word = next(); !word.empty(); word = next()) {
            all_.push_back(word);
        }
    }

    [[nodiscard]] const std::vector<std::string_view>& all() const noexcept { return all_; }
    /// The first character that is not allowed; '\0' if there is none.
    [[nodiscard]] char wrong() const noexcept { return wrong_; }

private:
    std::string_view next() {
        rest_.remove_prefix(
            static_cast<std::size_t>(std::find_if_not(rest_.begin(), rest_.end(), is_space) - rest_.begin()));
        if (rest_.empty()) {
            return {};
        }
        std::size_t length = 1;
        if (is_letter(rest_.front())) {
            int depth = 0;
            for (; length < rest_.size(); ++length) {
                const char c = rest_[length];
                depth += c == '<' ? 1 : 0;
                if (!is_letter(c) && !is_digit(c) && c != ':' && c != '<' && !(depth > 0 && (c == '>' || c == ' '))) {
                    break;
                }
                depth -= c == '>' ? 1 : 0;
            }
        } else if (rest_.front() != '*') {
            wrong_ = rest_.front();
            return {};
        }
        const std::string_view word = rest_.substr(0, length);
        rest_.remove_prefix(length);
        return word;
    }

    std::string_view rest_;
    std::vector<std::string_view> all_;
    char wrong_ = '\0';
};

/// "unsigned", "long", "int" and so on, in any order, as in C++.
std::optional<dtype> integer_type(const std::vector<std::string_view>& names) {
    const auto count = [&](std::string_view word) { return std::count(names.begin(), names.end(), word); };
    const auto shorts = count("short");
    const auto longs = count("long");
    const auto chars = count("char");
    const auto signs = count("unsigned") + count("signed");
    const auto ints = count("int");
    const auto known = static_cast<std::size_t>(shorts + longs + chars + signs + ints);
    if (names.empty() || known != names.size() || shorts > 1 || longs > 2 || chars > 1 || signs > 1 || ints > 1 ||
        (shorts != 0) + (longs != 0) + (chars != 0) > 1 || (chars != 0 && ints != 0)) {
        return std::nullopt;
    }
    const bool is_unsigned = count("unsigned") != 0;
    if (chars != 0) {
        return is_unsigned ? dtype::uint8 : dtype::int8;
    }
    if (shorts != 0) {
        return is_unsigned ? dtype::uint16 : dtype::int16;
    }
    if (longs != 0) {
        return is_unsigned ? dtype::uint64 : dtype::int64;
    }
    return is_unsigned ? dtype::uint32 : dtype::int32;
}

std::optional<dtype> type_of(const std::vector<std::string_view>& names) {
    if (const std::optional<dtype> integer = integer_type(names)) {
        return integer;
    }
    if (names.size() != 1) {
        return std::nullopt;
    }
    std::string name(names.front());
    std::erase(name, ' ');
    for (const std::string_view space : {"::", "std::", "cuda::std::", "thrust::"}) {
        if (name.starts_with(space)) {
            name.erase(0, space.size());
            break;
        }
    }
    const auto* const found =
        std::find_if(type_names.begin(), type_names.end(), [&](const auto& each) { return each.first == name; });
    return found != type_names.end() ? std::optional(found->second) : std::nullopt;
}

[[noreturn]] void refuse(std::string_view part, const std::string& why) {
    part.remove_prefix(std::min(part.find_first_not_of(" \t\n"), part.size()));
    throw argument_error("the parameter \"" + std::string(part) + "\" of a kernel's signature " + why +
                         "; a signature looks like this: \"in float* x, inout float* y, float a, int64 n\"");
}

parameter_use use_of(std::string_view word) noexcept {
    if (word == "in") {
        return parameter_use::in;
    }
    if (word == "out") {
        return parameter_use::out;
    }
    return word == "inout" ? parameter_use::inout : parameter_use::value;
}

parameter parse_one(std::string_view part) {
    const words split(part);
    if (split.wrong() != '\0') {
        refuse(part, std::string("has a character that does not belong there, '") + split.wrong() + "'");
    }
    std::vector<std::string_view> names = split.all();
    if (names.empty()) {
        refuse(part, "is empty: there is a comma too many");
    }
    const bool constant = std::erase(names, "const") != 0;
    for (const std::string_view noise : {"__restrict__", "__restrict", "restrict"}) {
        std::erase(names, noise);
    }
    parameter made;
    if (names.size() > 1) {
        made.use = use_of(names.front());
        if (made.use != parameter_use::value) {
            names.erase(names.begin());
        }
    }
    if (names.size() < 2 || names.back() == "*") {
        refuse(part, "has no name, or no type");
    }
    made.name = names.back();
    names.pop_back();
    if (made.name.find_first_of(":<") != std::string::npos || made.name == "void" || type_of({made.name})) {
        refuse(part, "has no name");
    }

    if (names.front() == "struct" && names.size() == 2 && names.back() != "*") {
        if (made.use != parameter_use::value) {
            refuse(part, "is a value, which is neither in nor out");
        }
        made.use = parameter_use::structure;
        made.structure = names.back();
        return made;
    }
    const auto stars = std::count(names.begin(), names.end(), std::string_view("*"));
    const bool array = stars == 1 && names.back() == "*";
    if (stars > 1 || (stars == 1 && !array)) {
        refuse(part, "is no array of numbers: one * behind the type, then the name");
    }
    if (array) {
        names.pop_back();
    }
    if (array && made.use == parameter_use::value) {
        refuse(part, "does not say how the kernel uses the array: write in, out or inout before it");
    }
    if (!array && made.use != parameter_use::value) {
        refuse(part, "is a value, which is neither in nor out: write a * behind the type if it is an array");
    }
    if (constant && (made.use == parameter_use::out || made.use == parameter_use::inout)) {
        refuse(part, "is written and const at once");
    }
    if (array && names.size() == 1 && names.front() == "void") {
        return made;
    }
    made.type = type_of(names);
    if (!made.type) {
        std::string type;
        for (const std::string_view name : names) {
            type += (type.empty() ? "" : " ") + std::string(name);
        }
        refuse(part,
               "has a type that is not known, \"" + type +
                   "\": take a number type of C++ (float, unsigned, long long) or of NumPy (float32, uint32, int64, "
                   "complex64), void* for any array, or \"struct point\" for a structure by value");
    }
    return made;
}

}  // namespace

std::vector<parameter> parse_signature(std::string_view text) {
    std::vector<parameter> all;
    if (std::all_of(text.begin(), text.end(), is_space)) {
        return all;
    }
    for (std::size_t start = 0; start <= text.size();) {
        const std::size_t end = std::min(text.find(',', start), text.size());
        const std::string_view part = text.substr(start, end - start);
        parameter one = parse_one(part);
        if (std::any_of(all.begin(), all.end(), [&](const parameter& other) { return other.name == one.name; })) {
            refuse(part, "has a name that another one has");
        }
        all.push_back(std::move(one));
        start = end + 1;
    }
    return all;
}

std::optional<dtype> type_named(std::string_view name) {
    const words split(name);
    return split.wrong() == '\0' ? type_of(split.all()) : std::nullopt;
}

std::string to_string(const parameter& one) {
    if (one.use == parameter_use::structure) {
        return "struct " + one.structure + " " + one.name;
    }
    constexpr std::array<std::string_view, 4> uses = {"", "in ", "out ", "inout "};
    return std::string(uses[static_cast<std::size_t>(one.use)]) +
           (one.type ? name_of(*one.type) : std::string("void")) + (one.use == parameter_use::value ? " " : "* ") +
           one.name;
}

}  // namespace weir::kernels
