#include "backend/cuda/kernels/included_files.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace weir::backend::cuda {

namespace {

constexpr std::string_view blanks = " \t\v\f";
constexpr std::string_view word_characters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

/// A line that ends in a backslash continues in the next one (C++20, [lex.phases]); some compilers allow blanks after it.
std::string without_splices(const std::string& source) {
    std::string joined;
    joined.reserve(source.size());
    for (std::size_t i = 0; i < source.size(); ++i) {
        if (source[i] == '\\') {
            const std::size_t end = source.find_first_not_of(" \t\v\f\r", i + 1);
            if (end != std::string::npos && source[end] == '\n') {
                i = end;
                continue;
            }
        }
        joined += source[i];
    }
    return joined;
}

/// Whether a name between < and > can only be found in folders of the compiler.
bool is_searched_for(std::string_view name) {
    return !name.empty() && name.front() != '/' && name.find("..") == std::string_view::npos &&
           name.find('\n') == std::string_view::npos;
}

/// Whether the word at `at`, of `length` characters, may make the line a directive that includes a file, other than `#word <name>`.
bool includes_a_file(std::string_view text, std::size_t at, std::size_t length) {
    std::string_view before = text.substr(0, at);
    const std::size_t last = before.find_last_not_of(" \t\v\f\r\n");
    before = last == std::string_view::npos ? std::string_view() : before.substr(0, last + 1);
    const bool is_plain = before.ends_with('#');
    // Other forms of directives: "%:" and "??=" are other spellings of '#', and a comment may precede the word.
    if (!is_plain && !before.ends_with("%:") && !before.ends_with("\?\?=") && !before.ends_with("*/")) {
        return false;
    }
    const std::size_t open = text.find_first_not_of(blanks, at + length);
    if (!is_plain || open == std::string_view::npos || text[open] != '<') {
        return true;
    }
    const std::size_t close = text.find('>', open);
    return close == std::string_view::npos || !is_searched_for(text.substr(open + 1, close - open - 1));
}

}  // namespace

bool may_include_files(const std::string& source) {
    const std::string joined = without_splices(source);
    const std::string_view text = joined;
    for (std::size_t at = text.find_first_of(word_characters); at != std::string_view::npos;) {
        const std::size_t end = std::min(text.find_first_not_of(word_characters, at), text.size());
        const std::string_view word = text.substr(at, end - at);
        if (word == "__has_include" || word == "__has_include_next" || word == "__has_embed") {
            return true;
        }
        if ((word == "include" || word == "include_next" || word == "import" || word == "embed") &&
            includes_a_file(text, at, word.size())) {
            return true;
        }
        at = text.find_first_of(word_characters, end);
    }
    return false;
}

}  // namespace weir::backend::cuda
