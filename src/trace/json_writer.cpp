#include "trace/json_writer.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace weir::trace {

json_writer& json_writer::value(std::string_view text) {
    separate();
    const bool is_plain =
        std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
    std::string quoted;
    if (is_plain) {
        ((quoted += '"') += text) += '"';
    } else {
        quoted = nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    }
    for (const char c : quoted) {
        if (c == '<') {
            *out_ += "\\u003c";
        } else {
            *out_ += c;
        }
    }
    return *this;
}

}  // namespace weir::trace
