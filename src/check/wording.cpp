#include "check/wording.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "weir/source_location.hpp"

namespace weir::check {

namespace {

std::string_view base_name(std::string_view path) {
    const auto slash = path.find_last_of('/');
    return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string place(const race_access& access) { return access.file + ":" + std::to_string(access.line); }

std::string short_place(std::string_view file, std::uint32_t line) {
    return std::string(base_name(file)) + ":" + std::to_string(line);
}
std::string short_place(const race_access& access) { return short_place(access.file, access.line); }
std::string short_place(const source_location& where) { return short_place(where.file, where.line); }

/// Whether a place in the program is Python: a file by its ending, or a prompt such as <stdin>.
bool is_python(const race_access& access) {
    const std::string_view name = base_name(access.file);
    const auto dot = name.find_last_of('.');
    if (name.empty() || name.starts_with('<')) {
        return !name.empty();
    }
    // Python programs may have no ending; C++ sources have one.
    return dot == std::string_view::npos || name.substr(dot) == ".py" || name.substr(dot) == ".pyw";
}

/// The stream's name as a variable: "load" stays, "stream 3" becomes stream_3. `with_number`: names need not be unique.
std::string variable(const race_access& access, bool with_number) {
    std::string name = access.stream;
    std::replace_if(
        name.begin(), name.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_'; },
        '_');
    // "default", the name of Weir's default stream of a device, is a keyword of C++; the others are keywords that are likely as names.
    const bool is_taken = name == "default" || name == "import" || name == "in" || name == "export" || name == "and" ||
                          name == "not" || name == "or" || name == "with" || name == "from" || name == "for";
    if (name.empty() || is_taken || std::isdigit(static_cast<unsigned char>(name.front())) != 0) {
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

std::string_view deed(const race_access& access) {
    if (access.is_drop) {
        return "drops ";
    }
    return access.mode == order::access_mode::write ? "writes" : "reads ";
}

/// "    first   writes bytes [0, 4096) in "load" on stream "copy"", and in the next line the place in the program.
std::string line_of(std::string_view which, const race_access& access, bool with_number) {
    std::string line = "    " + std::string(which) + std::string(deed(access));
    line += access.is_token
                ? " the token"
                : " bytes [" + std::to_string(access.range.begin) + ", " + std::to_string(access.range.end) + ")";
    if (access.stream_id == 0) {
        line += " on the host";
    } else {
        line += access.label.empty() ? std::string() : " in \"" + access.label + "\"";
        line += " on " + stream_in_words(access, with_number);
    }
    line += access.is_drop ? "\n           allocated at " : "\n           ";
    line += place(access);
    return line + (access.function.empty() ? "\n" : " in " + access.function + "\n");
}

std::string consequence(const race& one) {
    const std::string first = operation_in_words(one.first);
    const std::string second = one.second.stream_id == 0 ? "the host" : operation_in_words(one.second);
    if (one.second.is_token) {
        return second + " may begin before " + first + " is over";
    }
    if (one.second.is_drop) {
        return "others may use the memory while " + first + " still does";
    }
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

/// In torch's own words, which are the same for CUDA and for torch's other devices.
std::string mend_in_torch(const race& one) {
    const bool numbers = same_name(one.first, one.second);
    const std::string first = variable(one.first, numbers);
    if (one.second.is_drop) {
        return "x.record_stream(" + first + ")  # x: what " + short_place(one.first) +
               " uses, before its last owner lets go";
    }
    std::string record = "e = " + first + ".record_event()";
    std::string wait = one.second.stream_id == 0 ? "e.synchronize()" : variable(one.second, numbers) + ".wait_event(e)";
    const std::size_t column = std::max(record.size(), wait.size());
    record.resize(column, ' ');
    wait.resize(column, ' ');
    return record + "  # after " + short_place(one.first) + "\n" + wait + "  # " +
           (one.kind == "stale-event" ? "after that, " : "") + "before " + short_place(one.second);
}

/// One of the two streams is Weir's. A wait of Weir's takes any stream.
std::string mend_between(const race& one, bool second_is_weirs) {
    const bool numbers = same_name(one.first, one.second);
    const std::string first = variable(one.first, numbers);
    const std::string second = variable(one.second, numbers);
    return (second_is_weirs ? second : "weir.adopt(" + second + ")") + ".wait(" + first + ")  # after " +
           short_place(one.first) + ", before " + short_place(one.second);
}

}  // namespace

std::string mend_of(const race& one, std::string_view first_by, std::string_view second_by) {
    if (first_by == "torch" && second_by == "torch") {
        return mend_in_torch(one);
    }
    if (!first_by.empty() || !second_by.empty()) {
        return mend_between(one, second_by.empty());
    }
    const bool numbers = same_name(one.first, one.second);
    const bool is_stale = one.kind == "stale-event";
    const std::string recording = variable(one.first, numbers);
    const bool first_in_python = is_python(one.first);
    const bool second_in_python = is_python(one.second);
    std::string record = is_stale          ? "e.record(" + recording + ")"
                         : first_in_python ? "e = " + recording + ".record()"
                                           : "weir::event e = " + recording + ".record()";
    std::string wait = one.second.stream_id == 0 ? "e.wait()" : variable(one.second, numbers) + ".wait(e)";
    record += first_in_python ? "" : ";";
    wait += second_in_python ? "" : ";";
    const std::size_t column = std::max(record.size(), wait.size());
    record.resize(column, ' ');
    wait.resize(column, ' ');
    const std::string before = one.second.is_drop ? "the last owner lets go" : short_place(one.second);
    return record + (first_in_python ? "  # after " : "  // after ") + short_place(one.first) + "\n" + wait +
           (second_in_python ? "  # " : "  // ") + (is_stale ? "after that, " : "") + "before " + before;
}

std::string reason_of(const stale_wait& stale) {
    std::string text = "The wait at " + short_place(stale.wait);
    if (stale.taken) {
        text += " took the record of " + short_place(*stale.taken);
    } else {
        text += " came before any record of its event, and waited for nothing";
    }
    if (stale.better) {
        return text + "; the one of " + short_place(*stale.better) + " would have ordered the two.";
    }
    return text + ", which was made too early.";
}

std::string reason_of_sharing(std::string_view library) {
    return "Weir orders an operation on memory of " + std::string(library) + "'s with " + std::string(library) +
           "'s current stream, which was another one.";
}

std::string reason_of(const race& one, observe::default_kind first, observe::default_kind second) {
    const auto sentence = [](const race_access& access, observe::default_kind of) -> std::string {
        const std::string runs = "What " + short_place(access) + " enqueued runs on ";
        switch (of) {
            case observe::default_kind::none:
                break;
            case observe::default_kind::device:
                return runs + "Weir's default stream, where work goes that is given no stream.";
            case observe::default_kind::legacy:
                return runs + "the legacy default stream, which the driver orders with blocking streams only.";
            case observe::default_kind::thread:
                return runs + "the default stream of a thread, which the driver orders with the legacy one only.";
        }
        return {};
    };
    const std::string one_of_them = sentence(one.first, first);
    const std::string other = sentence(one.second, second);
    return one_of_them + (one_of_them.empty() || other.empty() ? "" : " ") + other;
}

std::string text_of(const race& one) {
    const bool numbers = same_name(one.first, one.second);
    std::string text = one.kind + " race on " + one.second.array;
    text += one.certainty == "definite" ? "\n" : " (" + one.certainty + ")\n";
    text += line_of("first   ", one.first, numbers);
    text += line_of("second  ", one.second, numbers);
    text += "    " + summary_of(one) + "\n";
    if (one.times > 1) {
        text += "    Seen " + std::to_string(one.times) + " times from these two lines.\n";
    }
    text += "    To mend it, add:\n" + indented(one.mend, "        ") + "\n";
    return text;
}

std::string summary_of(const race& one) {
    const bool numbers = same_name(one.first, one.second);
    std::string text = "Nothing in the program makes " + stream_in_words(one.second, numbers) + " wait for " +
                       stream_in_words(one.first, numbers) + " in between: " + consequence(one) + ".";
    return one.reason.empty() ? text : text + " " + one.reason;
}

}  // namespace weir::check
