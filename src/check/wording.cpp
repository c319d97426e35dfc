#include "check/wording.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace weir::check {

namespace {

std::string_view base_name(std::string_view path) {
    const auto slash = path.find_last_of('/');
    return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string place(const race_access& access) { return access.file + ":" + std::to_string(access.line); }

std::string short_place(const race_access& access) {
    return std::string(base_name(access.file)) + ":" + std::to_string(access.line);
}

/// The stream's name as a C++ variable: "load" stays, "stream 3" becomes stream_3. Names need not be unique.
std::string variable(const race_access& access, bool with_number) {
    std::string name = access.stream;
    std::replace_if(
        name.begin(), name.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_'; },
        '_');
    if (name.empty() || std::isdigit(static_cast<unsigned char>(name.front())) != 0) {
        name.insert(0, "stream_");
    }
    return with_number ? name + "_" + std::to_string(access.stream_id) : name;
}

std::string stream_in_words(const race_access& access, bool with_number) {
    if (access.stream_id == 0) {
        return "the host";
    }
    return "stream \"" + access.stream + "\"" + (with_number ? " (#" + std::to_string(access.stream_id) + ")" : "");
}

bool same_name(const race_access& a, const race_access& b) {
    return a.stream == b.stream && a.stream_id != b.stream_id && b.stream_id != 0;
}

std::string operation_in_words(const race_access& access) {
    return access.label.empty() ? std::string("the operation") : "\"" + access.label + "\"";
}

/// "    1st  writes bytes [0, 4096) in \"load\" on stream "copy", at main.cpp:41 in run".
std::string line_of(std::string_view which, const race_access& access, bool with_number) {
    std::string line = "    " + std::string(which) + (access.mode == order::access_mode::write ? "writes" : "reads ");
    line += " bytes [" + std::to_string(access.range.begin) + ", " + std::to_string(access.range.end) + ")";
    if (access.stream_id == 0) {
        line += " on the host";
    } else {
        line += access.label.empty() ? std::string() : " in \"" + access.label + "\"";
        line += " on " + stream_in_words(access, with_number);
    }
    line += "\n           " + place(access);
    return line + (access.function.empty() ? "\n" : " in " + access.function + "\n");
}

std::string consequence(const race& one) {
    const std::string first = operation_in_words(one.first);
    const std::string second = one.second.stream_id == 0 ? "the host" : operation_in_words(one.second);
    if (one.second.mode == order::access_mode::read) {
        return second + " may read what was there before " + first + ", or half of it";
    }
    if (one.first.mode == order::access_mode::read) {
        return second + " may overwrite what " + first + " has not read yet";
    }
    return "the result of " + second + " may be overwritten by " + first;
}

std::string indented(const std::string& text, std::string_view by) {
    std::string result(by);
    for (const char c : text) {
        result += c;
        if (c == '\n') {
            result += by;
        }
    }
    return result;
}

}  // namespace

std::string mend_of(const race_access& first, const race_access& second) {
    const bool numbers = same_name(first, second);
    std::string record = "weir::event e = " + variable(first, numbers) + ".record();";
    std::string wait = second.stream_id == 0 ? "e.wait();" : variable(second, numbers) + ".wait(e);";
    const std::size_t column = std::max(record.size(), wait.size());
    record.resize(column, ' ');
    wait.resize(column, ' ');
    return record + "  // after " + short_place(first) + "\n" + wait + "  // before " + short_place(second);
}

std::string text_of(const race& one) {
    const bool numbers = same_name(one.first, one.second);
    std::string text = one.kind + " race on " + one.second.array;
    text += one.certainty == "definite" ? "\n" : " (" + one.certainty + ")\n";
    text += line_of("first   ", one.first, numbers);
    text += line_of("second  ", one.second, numbers);
    text += "    Nothing in the program makes " + stream_in_words(one.second, numbers) + " wait for " +
            stream_in_words(one.first, numbers) + " in between: " + consequence(one) + ".\n";
    if (one.times > 1) {
        text += "    Seen " + std::to_string(one.times) + " times from these two lines.\n";
    }
    text += "    To mend it, add:\n" + indented(one.mend, "        ") + "\n";
    return text;
}

}  // namespace weir::check
