// The evidence log: what is written can be read, and logs that cannot be trusted are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "observe/observer.hpp"
#include "observer_script.hpp"
#include "trace/collector.hpp"
#include "trace/log_reader.hpp"
#include "trace/log_writer.hpp"
#include "trace/summary.hpp"
#include "weir/error.hpp"

namespace weir::trace {
namespace {

using testing::automatic;
using ::testing::HasSubstr;
using testing::observer_script;
using testing::reads;
using ::testing::ThrowsMessage;
using testing::writes;

std::string text_of(const collector& from) {
    std::ostringstream text;
    from.read([&](const log& kept) { write_log(text, kept); });
    return text.str();
}

log read_text(const std::string& text) {
    std::istringstream stream(text);
    return read_log(stream, "some.weirlog");
}

const std::string header = R"({"format":"weirlog","version":2,"revision":1,"clock":"steady"})"
                           "\n";

/// One record of each kind.
void play(collector& told) {
    observer_script program(told);
    auto& load = program.make_stream("lo\"ad\xff<");
    auto& work = program.make_stream("work");
    program.allocate(load, 7, 3);
    const auto written = program.enqueue(load, 10, {automatic(writes(7, {8, 16}))}, {}, "window");
    program.record(load, 5, 11);
    program.wait(work, written, 5, false, 12);
    program.enqueue(work, 13, {reads(7)}, {written}, nullptr, {{written, order::reason::read_after_write, true}},
                    {{written, order::reason::dependency, order::witness_kind::known, {work.info.timeline, 1}}});
    program.host_waits(written);
    program.host_accesses(automatic(reads(7)), 14);
    program.drop(7);
    const auto now = std::chrono::steady_clock::now();
    told.executed({written, now, now + std::chrono::nanoseconds(250)});
    told.executed({{work.info.timeline, 2}, now, now + std::chrono::hours(1), true});
}

TEST(EvidenceLog, V2_what_is_written_can_be_read_and_written_again) {
    collector told;
    play(told);
    const std::string text = text_of(told);
    const log read = read_text(text);
    EXPECT_EQ(read.records.size(), 12U);
    std::ostringstream again;
    write_log(again, read);
    EXPECT_EQ(again.str(), text);
}

TEST(EvidenceLog, V2_an_operation_keeps_its_evidence) {
    collector told;
    play(told);
    const log read = read_text(text_of(told));
    const auto& one = std::get<operation>(read.records[6].what);
    EXPECT_EQ(one.at, (moment{12, 2}));
    EXPECT_EQ(one.from.label, nullptr);
    EXPECT_STREQ(one.from.where.file, "program.cpp");
    EXPECT_EQ(one.from.where.line, 13U);
    ASSERT_EQ(one.accesses.size(), 1U);
    EXPECT_EQ(one.accesses[0].resource, 7U);
    EXPECT_EQ(one.accesses[0].where, (order::footprint{0, 64}));
    EXPECT_EQ(one.accesses[0].mode, order::access_mode::read);
    EXPECT_EQ(one.accesses[0].ordering, ordering_mode::manual);
    EXPECT_THAT(one.after, ::testing::ElementsAre(moment{11, 1}));
    ASSERT_EQ(one.waits.size(), 1U);
    EXPECT_EQ(one.waits[0].target, (moment{11, 1}));
    EXPECT_EQ(one.waits[0].why, order::reason::read_after_write);
    EXPECT_TRUE(one.waits[0].for_check);
    ASSERT_EQ(one.elisions.size(), 1U);
    EXPECT_EQ(one.elisions[0].kind, order::witness_kind::known);
    EXPECT_EQ(one.elisions[0].witness, (moment{12, 1}));
}

TEST(EvidenceLog, V2_says_which_times_are_a_virtual_clocks) {
    collector told;
    play(told);
    const std::string text = text_of(told);
    const log read = read_text(text);
    EXPECT_EQ(std::get<execution>(read.records[10].what).by, clock_kind::steady);
    EXPECT_EQ(std::get<execution>(read.records[11].what).by, clock_kind::virtual_time);
    EXPECT_NE(text.find(R"("clock":"virtual"})"), std::string::npos);
}

TEST(EvidenceLog, S6_says_what_the_device_orders_by_itself) {
    collector told;
    observer_script program(told);
    auto& first = program.make_stream("first");
    auto& second = program.make_stream("second");
    const auto written = program.enqueue(first, 10, {automatic(writes(7))});
    program.wait(second, written);
    program.follow(second, written);
    const std::string text = text_of(told);
    const log read = read_text(text);
    EXPECT_EQ(std::get<stream_wait>(read.records[3].what).how, observe::wait_made::issued);
    EXPECT_EQ(std::get<stream_wait>(read.records[4].what).how, observe::wait_made::by_device);
    EXPECT_EQ(text.find("by_device"), text.rfind("by_device")) << "only where it is so";
    EXPECT_EQ(summarise(read).waits_issued, 1U);
    EXPECT_EQ(summarise(read).waits_elided, 0U);
}

TEST(EvidenceLog, V2_reads_logs_of_earlier_revisions) {
    const std::string end = R"({"type":"end","records":1,"lost":0})";
    const std::string ran = R"({"t":9,"type":"execution","at":[1,1],"start":2,"end":900000)";
    const auto clock_in = [&](const std::string& first, const std::string& clock) {
        const log read = read_text(first + ran + clock + "}\n" + end);
        return std::get<execution>(read.records[0].what).by;
    };
    const std::string older = R"({"format":"weirlog","version":2,"clock":"steady"})"
                              "\n";
    EXPECT_EQ(clock_in(older, ""), clock_kind::steady);
    EXPECT_EQ(clock_in(header, ""), clock_kind::steady);
    EXPECT_EQ(clock_in(header, R"(,"clock":"virtual")"), clock_kind::virtual_time);
    EXPECT_THAT([&] { (void)clock_in(header, R"(,"clock":"sundial")"); },
                ThrowsMessage<argument_error>(HasSubstr("\"clock\" is \"sundial\"")));
    EXPECT_THAT(
        [&] {
            (void)read_text(R"({"format":"weirlog","version":2,"revision":"new"})"
                            "\n");
        },
        ThrowsMessage<argument_error>(HasSubstr("\"revision\"")));
}

TEST(EvidenceLog, V2_every_kind_of_work_has_a_name) {
    using runtime::work_kind;
    const std::vector<work_kind> kinds = {work_kind::device, work_kind::host_task, work_kind::copy, work_kind::gate,
                                          work_kind::moment};
    collector told;
    observer_script program(told);
    auto& s = program.make_stream("s");
    for (std::size_t i = 0; i < kinds.size(); ++i) {
        told.operation({&s.info, i + 1, {}, kinds[i], {}, {}, {}, {}});
    }
    const log read = read_text(text_of(told));
    for (std::size_t i = 0; i < kinds.size(); ++i) {
        EXPECT_EQ(std::get<operation>(read.records[i + 1].what).kind, kinds[i]);
    }
}

TEST(EvidenceLog, V2_a_stream_that_is_met_late_is_introduced) {
    collector early;
    observer_script program(early);
    auto& old = program.make_stream("old");
    collector told;
    told.operation({&old.info, 5, {}, runtime::work_kind::device, {}, {}, {}, {}});
    told.operation({&old.info, 6, {}, runtime::work_kind::device, {}, {}, {}, {}});
    const log read = read_text(text_of(told));
    ASSERT_EQ(read.records.size(), 3U);
    EXPECT_STREQ(std::get<stream_made>(read.records[0].what).name, "old");
}

TEST(EvidenceLog, V2_the_heir_of_a_timeline_is_another_stream) {
    collector told;
    observer_script program(told);
    auto& old = program.make_stream("old");
    program.enqueue(old, 1, {});
    auto& heir = program.make_stream("heir", &old);
    program.enqueue(heir, 2, {});
    told.host_waited({old.info.timeline, 1}, {});
    told.host_waited({old.info.timeline, 2}, {});
    told.host_waited({99, 1}, {});
    const log read = read_text(text_of(told));
    EXPECT_EQ(std::get<host_wait>(read.records[4].what).target, (moment{old.info.id, 1}));
    EXPECT_EQ(std::get<host_wait>(read.records[5].what).target, (moment{heir.info.id, 2}));
    EXPECT_EQ(std::get<host_wait>(read.records[6].what).target, (moment{0, 1}));
}

TEST(EvidenceLog, V2_every_line_is_json_that_can_stand_in_a_page) {
    collector told;
    play(told);
    std::istringstream lines(text_of(told));
    for (std::string line; std::getline(lines, line);) {
        EXPECT_TRUE(nlohmann::json::accept(line)) << line;
        EXPECT_EQ(line.find('<'), std::string::npos) << line;
    }
}

TEST(EvidenceLog, V2_refuses_what_it_does_not_know_with_the_line) {
    const auto reading = [](const std::string& text) { return [text] { (void)read_text(text); }; };
    const auto refused = [](const std::string& why) { return ThrowsMessage<argument_error>(HasSubstr(why)); };
    EXPECT_THAT(reading(""), refused("some.weirlog:0: the log ends here"));
    EXPECT_THAT(reading("x\n"), refused("some.weirlog:1: this is no JSON"));
    EXPECT_THAT(reading("[]\n"), refused("some.weirlog:1: expected an object"));
    EXPECT_THAT(reading("{\"format\":\"other\"}\n"), refused("some.weirlog:1: this is no evidence log"));
    EXPECT_THAT(reading("{\"format\":\"weirlog\",\"version\":1}\n"), refused("some.weirlog:1: version 1"));
    EXPECT_THAT(reading(header), refused("some.weirlog:1: the log ends here without its end record"));
    EXPECT_THAT(reading(header + R"({"t":1,"type":"drop"})"), refused("some.weirlog:2: the field \"resource\""));
    EXPECT_THAT(reading(header + R"({"t":1,"type":"drop","resource":-1})"), refused("some.weirlog:2: \"resource\""));
    EXPECT_THAT(reading(header + R"({"t":1,"type":"drop","resource":1)"), refused("some.weirlog:2: this is no JSON"));
    EXPECT_THAT(reading(header + R"({"t":1,"type":"flood"})"), refused("no records of type \"flood\""));
    EXPECT_THAT(reading(header + R"({"type":"end","records":3,"lost":0})"), refused("has 0 records and says"));
    EXPECT_THAT(reading(header + R"({"type":"end","records":0,"lost":0})" + "\n{}\n"),
                refused(":3: nothing may follow"));
}

TEST(EvidenceLog, V2_passes_over_unknown_fields) {
    const log read = read_text(header + R"({"t":1,"type":"drop","resource":1,"mood":"good"})" + "\n" +
                               R"({"type":"end","records":1,"lost":2})");
    EXPECT_EQ(read.records.size(), 1U);
    EXPECT_EQ(read.lost, 2U);
}

TEST(EvidenceLog, V2_the_example_of_the_documentation_is_a_log) {
    std::ifstream page(WEIR_DOCS "/evidence-log.md");
    ASSERT_TRUE(page) << WEIR_DOCS;
    std::string example;
    bool is_inside = false;
    for (std::string line; std::getline(page, line);) {
        if (line.starts_with("```")) {
            is_inside = line == "```json";
        } else if (is_inside) {
            example += line + "\n";
        }
    }
    const trace_summary sum = summarise(read_text(example));
    EXPECT_EQ(sum.operations, 3U);
    EXPECT_EQ(sum.waits_issued, 1U);
    EXPECT_EQ(sum.waits_elided, 1U);
    EXPECT_EQ(sum.waits_minimal, 1U);
}

}  // namespace
}  // namespace weir::trace
