// The text of a report, for readers and for programs.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "check/detector.hpp"
#include "check/wording.hpp"
#include "observer_script.hpp"

namespace weir::check {
namespace {

using nlohmann::json;
using testing::observer_script;
using testing::reads;
using testing::writes;

report report_of_a_race(const std::string& first, const std::string& second) {
    detector detecting({});
    observer_script program(detecting);
    auto& a = program.make_stream(first);
    auto& b = program.make_stream(second);
    program.allocate(a, 1, 12);
    program.enqueue(a, 41, {writes(1)}, {}, "window");
    program.enqueue(b, 57, {reads(1, {0, 32})}, {}, "transform");
    return detecting.report();
}

TEST(Report, V1_says_what_raced_and_what_to_add) {
    EXPECT_EQ(report_of_a_race("load", "work").to_string(),
              R"(weir check: 1 race found: two operations use the same memory, and nothing orders them

[1] RAW race on memory #1 of 64 bytes, allocated at program.cpp:12
    first   writes bytes [0, 64) in "window" on stream "load"
           program.cpp:41 in run
    second  reads  bytes [0, 32) in "transform" on stream "work"
           program.cpp:57 in run
    Nothing in the program makes stream "work" wait for stream "load" in between: "transform" may read what was there before "window", or half of it.
    To mend it, add:
        weir::event e = load.record();  // after program.cpp:41
        work.wait(e);                   // before program.cpp:57
)");
}

TEST(Report, V1_the_mend_is_valid_cpp_whatever_streams_are_called) {
    const report unnamed = report_of_a_race("stream 3", "4th");
    EXPECT_EQ(unnamed.races()[0].mend,
              "weir::event e = stream_3.record();  // after program.cpp:41\n"
              "stream_4th.wait(e);                 // before program.cpp:57");
    EXPECT_EQ(report_of_a_race("default", "work").races()[0].mend,
              "weir::event e = stream_default.record();  // after program.cpp:41\n"
              "work.wait(e);                             // before program.cpp:57");
    const report twins = report_of_a_race("work", "work");
    EXPECT_EQ(twins.races()[0].mend,
              "weir::event e = work_11.record();  // after program.cpp:41\n"
              "work_12.wait(e);                   // before program.cpp:57");
    EXPECT_NE(twins.to_string().find("stream \"work\" (#12)"), std::string::npos);
}

TEST(Report, V1_each_line_of_a_mend_is_in_the_language_of_its_file) {
    race one;
    one.kind = "RAW";
    one.first.stream = "load";
    one.second.stream = "in";
    one.first.stream_id = 1;
    one.second.stream_id = 2;
    one.first.file = "run.py";
    one.first.line = 3;
    one.second.file = "<stdin>";
    one.second.line = 4;
    EXPECT_EQ(mend_of(one),
              "e = load.record()  # after run.py:3\n"
              "stream_in.wait(e)  # before <stdin>:4");
    one.second.file = "work.cpp";
    EXPECT_EQ(mend_of(one),
              "e = load.record()   # after run.py:3\n"
              "stream_in.wait(e);  // before work.cpp:4");
    one.kind = "stale-event";
    one.second.stream_id = 0;
    one.second.file = "/usr/bin/run";
    EXPECT_EQ(mend_of(one),
              "e.record(load)  # after run.py:3\n"
              "e.wait()        # after that, before run:4");
}

TEST(Report, V1_says_so_when_nothing_was_found) {
    EXPECT_EQ(report().to_string(), "weir check: no races found\n");
    EXPECT_TRUE(report().empty());
}

TEST(Report, V1_says_of_a_drop_where_the_memory_was_allocated) {
    detector detecting({});
    observer_script program(detecting);
    auto& a = program.make_stream("load");
    auto& b = program.make_stream("work");
    program.allocate(a, 1, 12);
    program.enqueue(b, 41, {writes(1)}, {}, "window");
    program.drop(1);
    EXPECT_EQ(detecting.report().to_string(),
              R"(weir check: 1 race found: two operations use the same memory, and nothing orders them

[1] use-after-free race on memory #1 of 64 bytes, allocated at program.cpp:12
    first   writes bytes [0, 64) in "window" on stream "work"
           program.cpp:41 in run
    second  drops  bytes [0, 64) on stream "load"
           allocated at program.cpp:12 in run
    Nothing in the program makes stream "load" wait for stream "work" in between: others may use the memory while "window" still does.
    To mend it, add:
        weir::event e = work.record();  // after program.cpp:41
        load.wait(e);                   // before the last owner lets go
)");
}

TEST(Report, V1_as_json) {
    const auto all = json::parse(report_of_a_race("a\xff\"", "b").to_json());
    ASSERT_EQ(all["races"].size(), 1U);
    const auto& race = all["races"][0];
    EXPECT_EQ(race["kind"], "RAW");
    EXPECT_EQ(race["certainty"], "definite");
    EXPECT_EQ(race["first"]["line"], 41);
    EXPECT_EQ(race["first"]["mode"], "write");
    EXPECT_EQ(race["second"]["range"], json({0, 32}));
    EXPECT_EQ(race["times"], 1);
    EXPECT_TRUE(all["unseen"].empty());
}

TEST(Report, V1_sarif_has_what_the_format_requires) {
    detector detecting({});
    observer_script program(detecting);
    auto& a = program.make_stream("a");
    auto& b = program.make_stream("b");
    program.allocate(a, 1, 12);
    program.enqueue(a, 41, {writes(1)}, {}, "window");
    program.enqueue(b, 57, {reads(1, {0, 32})}, {}, "transform");
    program.drop(1);
    program.enqueue(a, 60, {writes(9)});
    program.enqueue(b, 0, {writes(9)});
    program.drop(9);  // the log has no allocation of it
    const report found = detecting.report();
    const json all = json::parse(found.to_sarif());
    EXPECT_EQ(all.at("version"), "2.1.0");
    EXPECT_TRUE(all.at("$schema").get<std::string>().starts_with("https://"));
    ASSERT_EQ(all.at("runs").size(), 1U);
    const json& run = all["runs"][0];
    const json& driver = run.at("tool").at("driver");
    EXPECT_FALSE(driver.at("name").get<std::string>().empty());
    std::set<std::string> ids;
    for (const json& rule : driver.at("rules")) {
        EXPECT_TRUE(ids.insert(rule.at("id").get<std::string>()).second);
        EXPECT_FALSE(rule.at("shortDescription").at("text").get<std::string>().empty());
    }
    const json& invocation = run.at("invocations").at(0);
    EXPECT_TRUE(invocation.at("executionSuccessful").is_boolean());
    ASSERT_EQ(invocation.at("toolExecutionNotifications").size(), found.unseen().size());
    EXPECT_EQ(invocation["toolExecutionNotifications"][0].at("level"), "warning");
    EXPECT_FALSE(invocation["toolExecutionNotifications"][0].at("message").at("text").get<std::string>().empty());
    ASSERT_EQ(run.at("results").size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {
        const json& result = run["results"][i];
        const std::string id = result.at("ruleId").get<std::string>();
        EXPECT_EQ(id, found.races()[i].kind);
        EXPECT_EQ(driver["rules"].at(result.at("ruleIndex").get<std::size_t>()).at("id"), id);
        EXPECT_EQ(result.at("level"), "error");
        EXPECT_NE(result.at("message").at("text").get<std::string>().find(found.races()[i].mend), std::string::npos);
        ASSERT_EQ(result.at("locations").size(), 1U);
        ASSERT_EQ(result.at("relatedLocations").size(), 1U);
        const json& place = result["locations"][0].at("physicalLocation");
        EXPECT_EQ(place.at("artifactLocation").at("uri"), "program.cpp");
        if (found.races()[i].second.line == 0) {
            EXPECT_FALSE(place.contains("region")) << "lines begin with 1";
        } else {
            EXPECT_EQ(place.at("region").at("startLine"), found.races()[i].second.line);
        }
        EXPECT_EQ(result["relatedLocations"][0].at("physicalLocation").at("region").at("startLine"),
                  found.races()[i].first.line);
        EXPECT_EQ(result.at("occurrenceCount"), 1);
    }
}

TEST(Report, V1_sarif_explains_every_kind) {
    for (const char* const kind :
         {"RAW", "WAR", "WAW", "host", "stale-event", "default-stream", "use-after-free", "early-reuse"}) {
        race one;
        one.kind = kind;
        one.certainty = "definite";
        const json run = json::parse(report({one}, {}).to_sarif()).at("runs").at(0);
        const auto index = run.at("results").at(0).at("ruleIndex").get<std::size_t>();
        const json& rules = run.at("tool").at("driver").at("rules");
        ASSERT_LT(index, rules.size()) << kind;
        EXPECT_EQ(rules[index].at("id"), kind);
    }
}

TEST(Report, V1_sarif_names_files_by_uris) {
    race one;
    one.kind = "RAW";
    one.certainty = "possible";
    one.first.file = "/home/me/my program/100%.cpp";
    one.second.file = "../a\xff?.cpp";
    one.first.line = one.second.line = 3;
    const json result = json::parse(report({one}, {}).to_sarif()).at("runs").at(0).at("results").at(0);
    EXPECT_EQ(result.at("level"), "warning");
    const auto uri = [&](const char* of) {
        return result.at(of).at(0).at("physicalLocation").at("artifactLocation").at("uri").get<std::string>();
    };
    EXPECT_EQ(uri("relatedLocations"), "file:///home/me/my%20program/100%25.cpp");
    EXPECT_EQ(uri("locations"), "../a%FF%3F.cpp");
}

}  // namespace
}  // namespace weir::check
