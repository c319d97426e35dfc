// The files that a trace writes, and the errors if it cannot.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "observer_script.hpp"
#include "support/scratch_folder.hpp"
#include "trace/collector.hpp"
#include "trace/log_reader.hpp"
#include "trace/perfetto_writer.hpp"
#include "weir/error.hpp"
#include "weir/trace.hpp"

namespace weir {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::observer_script;
using testing::reads;
using ::testing::ThrowsMessage;
using testing::writes;

class TraceFiles : public ::testing::Test {
protected:
    static std::string text_of(const std::filesystem::path& file) {
        std::ostringstream text;
        text << std::ifstream(file).rdbuf();
        return text.str();
    }

    test::scratch_folder folder_;
};

TEST_F(TraceFiles, V2_several_formats_by_their_endings) {
    {
        trace_scope trace({folder_ / "a.weirlog", folder_ / "a.html", folder_ / "a.json"});
        EXPECT_TRUE(std::filesystem::exists(folder_ / "a.html")) << "files are made at once";
    }
    std::ifstream log(folder_ / "a.weirlog");
    EXPECT_NO_THROW((void)trace::read_log(log));
    EXPECT_TRUE(nlohmann::json::parse(text_of(folder_ / "a.json"))["traceEvents"].is_array());
    const std::string page = text_of(folder_ / "a.html");
    EXPECT_THAT(page, AllOf(HasSubstr("<!DOCTYPE html>"), HasSubstr(R"({"format":"weirlog")"), HasSubstr("</html>")));
    EXPECT_EQ(page.find("@WEIR_LOG@"), std::string::npos);
    EXPECT_EQ(page.find("src=\"http"), std::string::npos);
}

TEST_F(TraceFiles, V2_a_trace_without_a_file_has_a_summary) {
    trace_scope trace;
    EXPECT_EQ(trace.summary().operations, 0U);
    trace.close();
    EXPECT_EQ(trace.summary().waits_minimal, 0U);
}

TEST_F(TraceFiles, V2_refuses_what_it_cannot_write_and_says_what_to_do) {
    EXPECT_THAT([&] { trace_scope trace(folder_ / "a.txt"); },
                ThrowsMessage<argument_error>(AllOf(HasSubstr("a.txt"), HasSubstr(".weirlog"))));
    EXPECT_THAT([&] { trace_scope trace(folder_ / "none" / "a.html"); },
                ThrowsMessage<argument_error>(AllOf(HasSubstr("No such file"), HasSubstr("folder that exists"))));
}

TEST_F(TraceFiles, V2_a_full_disk_is_reported_when_the_trace_is_closed) {
    if (!std::filesystem::exists("/dev/full")) {
        GTEST_SKIP() << "this system has no /dev/full";
    }
    std::filesystem::create_symlink("/dev/full", folder_ / "a.weirlog");
    trace_scope trace({folder_ / "a.weirlog", folder_ / "b.weirlog"});
    EXPECT_THAT([&] { trace.close(); },
                ThrowsMessage<file_error>(AllOf(HasSubstr("a.weirlog"), HasSubstr("No space left"))));
    EXPECT_NO_THROW(trace.close());
    std::ifstream other(folder_ / "b.weirlog");
    EXPECT_NO_THROW((void)trace::read_log(other)) << "the others are written nevertheless";
}

TEST_F(TraceFiles, V2_for_perfetto_operations_are_slices_and_waits_are_flows) {
    trace::collector told;
    observer_script program(told);
    auto& a = program.make_stream("a");
    auto& b = program.make_stream("b");
    program.allocate(a, 1, 1);
    const auto written = program.enqueue(a, 2, {writes(1)}, {}, "write");
    const auto read =
        program.enqueue(b, 3, {reads(1)}, {}, "read", {{written, order::reason::read_after_write, false}});
    program.drop(1);
    const auto now = std::chrono::steady_clock::now();
    told.executed({written, now, now + std::chrono::nanoseconds(1500)});
    told.executed({read, now + std::chrono::nanoseconds(2000), now + std::chrono::nanoseconds(2001)});
    std::ostringstream text;
    told.read([&](const trace::log& kept) { trace::write_perfetto(text, kept); });
    const auto events = nlohmann::json::parse(text.str())["traceEvents"];
    std::string phases;
    for (const auto& event : events) {
        phases += event["ph"].get<std::string>();
    }
    EXPECT_EQ(phases, "MMMCXXsfC");
    EXPECT_EQ(events[4]["name"], "write");
    EXPECT_DOUBLE_EQ(events[4]["dur"], 1.5);
    EXPECT_DOUBLE_EQ(events[5]["dur"], 0.001);
    EXPECT_EQ(events[6]["name"], "read_after_write");
    EXPECT_EQ(events[8]["args"]["bytes"], 0);
}

/// The time, in microseconds, of the host's allocation beside an operation that ran `start` after the log was begun.
double time_of_memory(std::chrono::milliseconds start, bool virtual_clock) {
    const auto begin = std::chrono::steady_clock::now();
    trace::collector told;
    observer_script program(told);
    auto& a = program.make_stream("a");
    const auto written = program.enqueue(a, 1, {}, {}, "write");
    told.executed({written, begin + start, begin + start + std::chrono::milliseconds(1), virtual_clock});
    program.allocate(a, 1, 2);
    std::ostringstream text;
    told.read([&](const trace::log& kept) { trace::write_perfetto(text, kept); });
    const auto events = nlohmann::json::parse(text.str())["traceEvents"];
    for (const auto& event : events) {
        if (event["ph"] == "C") {
            return event["ts"];
        }
    }
    return -1;
}

TEST_F(TraceFiles, V2_for_perfetto_what_the_host_did_stands_at_the_time_of_a_virtual_clock) {
    const std::chrono::hours far(1);
    EXPECT_NEAR(time_of_memory(far, true), 3600e6 + 1e3, 1e3);
    // The clock of the execution decides. The time at which the operation ended does not show which clock it was.
    EXPECT_NE(time_of_memory(-far, true), time_of_memory(-far, false));
    EXPECT_LT(time_of_memory(far, false), 3600e6);
}

}  // namespace
}  // namespace weir
