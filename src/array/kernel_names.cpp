#include "array/kernel_names.hpp"

#include <algorithm>

namespace weir::kernels {

namespace {

constexpr bool is_name(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$';
}

/// The text after the parenthesis that closes the one at the start.
std::size_t behind_parentheses(std::string_view text) {
    int depth = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        depth += text[i] == '(' ? 1 : 0;
        depth -= text[i] == ')' ? 1 : 0;
        if (depth == 0) {
            return i + 1;
        }
    }
    return text.size();
}

std::string_view next_name(std::string_view text) {
    for (;;) {
        const std::size_t open = text.find_first_of("(;{");
        if (open == std::string_view::npos || text[open] != '(') {
            return {};
        }
        std::size_t end = open;
        while (end > 0 && !is_name(text[end - 1]) && text[end - 1] != '>') {
            --end;
        }
        std::size_t start = end;
        while (start > 0 && is_name(text[start - 1])) {
            --start;
        }
        const std::string_view name = text.substr(start, end - start);
        // Attributes: __launch_bounds__(256), __attribute__((...)).
        if (!name.starts_with("__")) {
            return name;
        }
        text.remove_prefix(open);
        text.remove_prefix(behind_parentheses(text));
    }
}

}  // namespace

std::vector<std::string> names_after(std::string_view text, std::string_view marker) {
    std::vector<std::string> names;
    for (std::size_t at = text.find(marker); at != std::string_view::npos; at = text.find(marker, at + 1)) {
        const std::string name(next_name(text.substr(at + marker.size())));
        if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end()) {
            names.push_back(name);
        }
    }
    return names;
}

std::string list_of(const std::vector<std::string>& names) {
    if (names.empty()) {
        return "; it has none that could be found";
    }
    std::string text;
    for (const std::string& name : names) {
        text += (text.empty() ? "; it has " : ", ") + name;
    }
    return text;
}

}  // namespace weir::kernels
