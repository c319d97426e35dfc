// What a report says, for people and for programs.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "check/detector.hpp"
#include "observer_script.hpp"

namespace weir::check {
namespace {

using testing::observer_script;
using testing::reads;
using testing::writes;

report report_of_a_race(const std::string& first, const std::string& second) {
    detector detecting({});
    observer_script program(detecting);
    auto& a = program.make_stream(first);
    auto& b = program.make_stream(second);
    detecting.allocated(1, 64, a.info, observer_script::line(12));
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
    const report twins = report_of_a_race("work", "work");
    EXPECT_EQ(twins.races()[0].mend,
              "weir::event e = work_11.record();  // after program.cpp:41\n"
              "work_12.wait(e);                   // before program.cpp:57");
    EXPECT_NE(twins.to_string().find("stream \"work\" (#12)"), std::string::npos);
}

TEST(Report, V1_says_so_when_nothing_was_found) {
    EXPECT_EQ(report().to_string(), "weir check: no races found\n");
    EXPECT_TRUE(report().empty());
}

TEST(Report, V1_as_json) {
    const auto json = nlohmann::json::parse(report_of_a_race("a\xff\"", "b").to_json());
    ASSERT_EQ(json["races"].size(), 1U);
    const auto& race = json["races"][0];
    EXPECT_EQ(race["kind"], "RAW");
    EXPECT_EQ(race["certainty"], "definite");
    EXPECT_EQ(race["first"]["line"], 41);
    EXPECT_EQ(race["first"]["mode"], "write");
    EXPECT_EQ(race["second"]["range"], nlohmann::json({0, 32}));
    EXPECT_EQ(race["times"], 1);
    EXPECT_TRUE(json["unseen"].empty());
}

}  // namespace
}  // namespace weir::check
