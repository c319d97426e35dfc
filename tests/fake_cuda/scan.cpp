#include "scan.hpp"

#include <algorithm>
#include <cctype>
#include <regex>

namespace weir_fake {

namespace {

/// Replaces comments and texts by spaces, so that positions stay the same.
std::string without_comments(const std::string& source) {
    std::string text = source;
    enum { code, line, block, quote, letter } in = code;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char now = text[i];
        const char next = i + 1 < text.size() ? text[i + 1] : '\0';
        const auto blank = [&](std::size_t count) {
            for (std::size_t k = 0; k < count; ++k) {
                text[i + k] = text[i + k] == '\n' ? '\n' : ' ';
            }
            i += count - 1;
        };
        if (in == code) {
            if (now == '/' && (next == '/' || next == '*')) {
                in = next == '/' ? line : block;
                blank(2);
            } else if (now == '"') {
                in = quote;
            } else if (now == '\'' && (i == 0 || std::isalnum(static_cast<unsigned char>(text[i - 1])) == 0)) {
                in = letter;
            }
        } else if (in == line) {
            in = now == '\n' ? code : line;
            blank(1);
        } else if (in == block) {
            const bool ends = now == '*' && next == '/';
            in = ends ? code : block;
            blank(ends ? 2 : 1);
        } else if (now == '\\' && next != '\0') {
            blank(2);
        } else if (now == (in == quote ? '"' : '\'')) {
            in = code;
        } else {
            blank(1);
        }
    }
    return text;
}

std::vector<std::string> tokens_of(const std::string& text) {
    std::vector<std::string> tokens;
    for (std::size_t i = 0; i < text.size();) {
        const auto is_word = [&](std::size_t at) {
            return at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_');
        };
        if (text[i] == '#') {
            // A directive ends with its line.
            while (i < text.size() && text[i] != '\n') {
                i += text[i] == '\\' ? 2U : 1U;
            }
        } else if (is_word(i)) {
            const std::size_t start = i;
            while (is_word(i)) {
                ++i;
            }
            tokens.push_back(text.substr(start, i - start));
        } else {
            if (std::isspace(static_cast<unsigned char>(text[i])) == 0) {
                tokens.emplace_back(1, text[i]);
            }
            ++i;
        }
    }
    return tokens;
}

bool is_name(const std::string& token) {
    return std::isalpha(static_cast<unsigned char>(token[0])) != 0 || token[0] == '_';
}

/// The name of the kernel whose declaration continues at `i`; empty if there is none.
std::string kernel_name(const std::vector<std::string>& tokens, std::size_t i) {
    for (; i + 1 < tokens.size() && tokens[i] != ";" && tokens[i] != "{"; ++i) {
        if (tokens[i + 1] != "(" || !is_name(tokens[i])) {
            continue;
        }
        if (tokens[i].rfind("__", 0) != 0) {
            return tokens[i];
        }
        // An attribute with arguments, such as __launch_bounds__(256).
        int depth = 0;
        do {
            ++i;
            depth += tokens[i] == "(" ? 1 : tokens[i] == ")" ? -1 : 0;
        } while (depth > 0 && i + 1 < tokens.size());
    }
    return {};
}

std::vector<std::string> kernels_in(const std::vector<std::string>& tokens) {
    std::vector<std::string> found;
    std::vector<std::string> scopes;  // of each brace: "ns::", or nothing
    std::string next_scope;
    bool is_template = false;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        const std::string& token = tokens[i];
        if (token == "{") {
            scopes.push_back(next_scope);
            next_scope.clear();
            is_template = false;
        } else if (token == "}" || token == ";") {
            if (token == "}" && !scopes.empty()) {
                scopes.pop_back();
            }
            next_scope.clear();
            is_template = false;
        } else if (token == "template") {
            is_template = true;
        } else if (token == "namespace") {
            for (std::size_t k = i + 1; k < tokens.size() && (is_name(tokens[k]) || tokens[k] == ":"); ++k) {
                next_scope += tokens[k];
            }
            next_scope += next_scope.empty() ? "" : "::";
        } else if (token == "__global__" && !is_template) {
            std::string name;
            for (const std::string& scope : scopes) {
                name += scope;
            }
            const std::string last = kernel_name(tokens, i + 1);
            name += last;
            if (!last.empty() && std::find(found.begin(), found.end(), name) == found.end()) {
                found.push_back(name);
            }
        }
    }
    return found;
}

/// `extern __shared__ T name[];` in a function is a pointer to the launch's shared memory.
std::string with_shared_pointers(const std::string& source) {
    static const std::regex declaration(
        R"(extern\s+__shared__\s+(?:__align__\s*\(\s*\w+\s*\)\s+|alignas\s*\(\s*\w+\s*\)\s+)?([\w\s:<>]+?)\s+(\w+)\s*\[\s*\]\s*;)");
    static const std::regex other_order(
        R"(extern\s+(?:__align__\s*\(\s*\w+\s*\)|alignas\s*\(\s*\w+\s*\))\s+__shared__\s+([\w\s:<>]+?)\s+(\w+)\s*\[\s*\]\s*;)");
    // The capture is an error outside of a function, where the pointer would be that of the first launch.
    const char* const pointer = "$1* const $2 = [&] { return static_cast<$1*>(weir_fake_view->dynamic_shared); }();";
    return std::regex_replace(std::regex_replace(source, declaration, pointer), other_order, pointer);
}

}  // namespace

scanned_source scan(const std::string& source) {
    return {with_shared_pointers(source), kernels_in(tokens_of(without_comments(source)))};
}

}  // namespace weir_fake
