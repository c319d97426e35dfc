#include <algorithm>
#include <vector>

#include <nlohmann/json.hpp>

#include "check/wording.hpp"
#include "weir/check.hpp"
#include "weir/detail/footprint.hpp"

namespace weir {

namespace {

using nlohmann::ordered_json;

ordered_json to_object(const race_access& access) {
    return {{"file", access.file},
            {"line", access.line},
            {"function", access.function},
            {"stream", access.stream},
            {"stream_id", access.stream_id},
            {"label", access.label},
            {"mode", access.mode == order::access_mode::write ? "write" : "read"},
            {"resource", access.resource},
            {"array", access.array},
            {"range", {access.range.begin, access.range.end}},
            {"is_drop", access.is_drop},
            {"is_token", access.is_token}};
}

/// What the two accesses of each race have in common.
std::string shared_by(const std::vector<race>& races) {
    const auto is_on_token = [](const race& one) { return one.second.is_token; };
    if (std::none_of(races.begin(), races.end(), is_on_token)) {
        return "memory";
    }
    return std::all_of(races.begin(), races.end(), is_on_token) ? "token" : "memory or token";
}

}  // namespace

std::string report::to_string() const {
    std::string text;
    if (races_.empty()) {
        text = "weir check: no races found\n";
    } else if (races_.size() == 1) {
        text = "weir check: 1 race found: two operations use the same " + shared_by(races_) +
               ", and nothing orders them\n";
    } else {
        text = "weir check: " + std::to_string(races_.size()) + " races found: in each, two operations use the same " +
               shared_by(races_) + ", and nothing orders them\n";
    }
    std::size_t number = 0;
    for (const race& one : races_) {
        text += "\n[" + std::to_string(++number) + "] " + check::text_of(one);
    }
    for (const std::string& one : unseen_) {
        text += "\nNot seen: " + one + "\n";
    }
    return text;
}

std::string report::to_json() const {
    ordered_json races = ordered_json::array();
    for (const race& one : races_) {
        races.push_back({{"kind", one.kind},
                         {"certainty", one.certainty},
                         {"first", to_object(one.first)},
                         {"second", to_object(one.second)},
                         {"reason", one.reason},
                         {"mend", one.mend},
                         {"times", one.times}});
    }
    const ordered_json all = {{"races", std::move(races)}, {"unseen", unseen_}};
    // Names are the user's and need not be valid UTF-8.
    return all.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace weir
