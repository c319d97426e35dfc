// SARIF 2.1.0, the Static Analysis Results Interchange Format of OASIS: one run, one rule for each kind of race, one result for each
// race. The result's location is that of the second access; the first access is a related location.
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <string_view>

#include "check/wording.hpp"
#include "weir/check.hpp"

namespace weir {

namespace {

using nlohmann::ordered_json;

struct rule {
    std::string_view id;
    std::string_view text;
};

constexpr std::array<rule, 8> rules = {{
    {"RAW", "An operation reads what another one, not ordered before it, writes"},
    {"WAR", "An operation writes what another one, not ordered before it, reads"},
    {"WAW", "An operation writes what another one, not ordered before it, writes"},
    {"host", "The host touches what an operation may still use"},
    {"stale-event", "A wait took a record of its event that does not cover what it should"},
    {"default-stream", "One of two accesses that nothing orders runs on a default stream"},
    {"use-after-free", "Memory is dropped while an operation may still use it"},
    {"early-reuse", "Memory has a new owner while an operation of the former one may still use it"},
}};

/// A path as a URI reference: an absolute path gets a scheme, and special characters are escaped.
std::string uri_of(std::string_view path) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    std::string uri = path.starts_with('/') ? "file://" : "";
    for (const char c : path) {
        const auto byte = static_cast<unsigned char>(c);
        if ((std::isalnum(byte) != 0 && byte < 0x80) || std::string_view("-._~/").find(c) != std::string_view::npos) {
            uri += c;
        } else {
            uri += {'%', digits[byte >> 4U], digits[byte & 15U]};
        }
    }
    return uri;
}

ordered_json location_of(const race_access& access, std::string_view what) {
    ordered_json physical = {{"artifactLocation", {{"uri", uri_of(access.file)}}}};
    if (access.line != 0) {  // line numbers of a region begin with 1
        physical["region"] = {{"startLine", access.line}};
    }
    ordered_json location = {{"physicalLocation", std::move(physical)}, {"message", {{"text", what}}}};
    if (!access.function.empty()) {
        location["logicalLocations"] = {{{"fullyQualifiedName", access.function}, {"kind", "function"}}};
    }
    return location;
}

ordered_json result_of(const race& one) {
    std::size_t index = 0;
    while (index < rules.size() && rules[index].id != one.kind) {
        ++index;
    }
    ordered_json related = location_of(one.first, "the access that was enqueued first, on " + one.first.stream);
    related["id"] = 1;
    const std::string second = one.second.is_drop ? "the memory that was dropped is allocated here, on "
                                                  : "the access that was enqueued second, on ";
    return {{"ruleId", one.kind},
            {"ruleIndex", index},
            {"level", one.certainty == "definite" ? "error" : "warning"},
            {"message",
             {{"text", one.kind + " race on " + one.second.array + ". " + check::summary_of(one) +
                           " To mend it, add:\n" + one.mend}}},
            {"locations", {location_of(one.second, second + one.second.stream)}},
            {"relatedLocations", {std::move(related)}},
            {"occurrenceCount", one.times}};
}

}  // namespace

std::string report::to_sarif() const {
    ordered_json described = ordered_json::array();
    for (const rule& one : rules) {
        described.push_back({{"id", one.id}, {"shortDescription", {{"text", one.text}}}});
    }
    ordered_json results = ordered_json::array();
    for (const race& one : races_) {
        results.push_back(result_of(one));
    }
    ordered_json notes = ordered_json::array();
    for (const std::string& one : unseen_) {
        notes.push_back({{"level", "warning"}, {"message", {{"text", "Not seen: " + one}}}});
    }
    const ordered_json run = {
        {"tool", {{"driver", {{"name", "weir check"}, {"rules", std::move(described)}}}}},
        {"invocations", {{{"executionSuccessful", true}, {"toolExecutionNotifications", std::move(notes)}}}},
        {"results", std::move(results)}};
    const ordered_json all = {{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                              {"version", "2.1.0"},
                              {"runs", ordered_json::array({run})}};
    return all.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace weir
