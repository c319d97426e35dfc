// The verifier detects errors: a good log of Weir, falsified in every way that matters, gives a finding or is refused; and no damage
// to a log makes the verifier fail.
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "observe/observers.hpp"
#include "support/effort.hpp"
#include "trace/collector.hpp"
#include "trace/log_writer.hpp"
#include "verify_support.hpp"
#include "weir/testing.hpp"
#include "weir/weir.hpp"

namespace weir_verify::testing {
namespace {

using nlohmann::json;
using lines = std::vector<json>;

/// A program with an operation of each kind, first while nothing can run, and again after the host has waited.
std::string trace_a_program() {
    weir::trace::collector told;
    weir::observe::observers::add(told);
    told.knows_all_streams();
    {
        const weir::stream a(weir::cpu(), {0, "a"});
        const weir::stream b(weir::cpu(), {0, "b"});
        const weir::stream c(weir::cpu(), {0, "c"});
        weir::testing::gate gate;
        for (const weir::stream* each : {&a, &b, &c}) {
            gate.hold(*each);
        }
        using weir::dtype;
        weir::array x = weir::empty({64}, dtype::float32, a);
        weir::array y = weir::empty({64}, dtype::float32, b);
        weir::array z = weir::empty({64}, dtype::float32, c);
        const auto nothing = [](auto&&...) {};
        weir::array w = weir::empty({64}, dtype::float32, b);
        weir::access(weir::on(a).label("write x"), nothing, weir::out(x));
        weir::access(weir::on(a).label("write x again"), nothing, weir::out(x));
        // Two that read the same and write halves of the same.
        weir::access(weir::on(b).label("left"), nothing, weir::in(x), weir::out(y.slice(0, 32)));
        weir::access(weir::on(c).label("right"), nothing, weir::in(x), weir::out(y.slice(32, 64)));
        weir::access(weir::on(a).label("overwrite x"), nothing, weir::out(x));
        weir::access(weir::on(c).label("both"), nothing, weir::in(y), weir::inout(x));
        // The program's own order.
        const weir::completion end = weir::access(weir::on(b).label("named"), nothing, weir::out(z));
        weir::event event = a.record();
        weir::access(weir::on(a).label("after").after({end}), nothing);
        b.wait(event);
        c.wait(a);
        // Memory that has several owners in turn while it is used.
        {
            weir::array temporary = weir::empty({64}, dtype::float32, a);
            weir::access(weir::on(b).label("use"), nothing, weir::out(temporary));
        }
        weir::access(weir::on(b).label("before the host's wait"), nothing, weir::out(w));
        gate.open();
        a.synchronize();
        b.synchronize();
        weir::testing::gate second;
        weir::access(weir::on(c).label("after the host's wait"), nothing, weir::in(w));
        second.hold(a);
        weir::access(weir::on(a).label("held"), nothing, weir::out(z));
        weir::access(weir::on(b).label("behind"), nothing, weir::inout(z));
        second.open();
        (void)z.read<float>();
    }
    weir::cpu().synchronize();
    weir::observe::observers::remove(told);
    std::ostringstream text;
    told.read([&](const weir::trace::log& kept) { weir::trace::write_log(text, kept); });
    return text.str();
}

const std::string& good_log() {
    static const std::string log = trace_a_program();
    return log;
}

lines records_of(const std::string& log) {
    lines all;
    std::istringstream from(log);
    for (std::string line; std::getline(from, line);) {
        all.push_back(json::parse(line));
    }
    return {all.begin() + 1, all.end() - 1};
}

/// The log of these records, with times and their number corrected: only their contents can reveal the change.
std::string log_of(lines records) {
    std::string text = R"({"format":"weirlog","version":2,"clock":"steady"})"
                       "\n";
    std::uint64_t time = 0;
    for (json& one : records) {
        one["t"] = ++time;
        text += one.dump() + "\n";
    }
    return text + json{{"type", "end"}, {"records", records.size()}, {"lost", 0}}.dump() + "\n";
}

class VerifyMutation : public ::testing::Test {
protected:
    const lines good_ = records_of(good_log());

    [[nodiscard]] const json& labelled(const std::string& label) const {
        return *std::find_if(good_.begin(), good_.end(),
                             [&](const json& one) { return one.value("label", "") == label; });
    }
    /// Changes a copy of the log by `change(records, i)` for each record of a type, and expects that each is found. How
    /// many there were.
    int expect_found(const std::string& type, const std::function<bool(lines&, std::size_t)>& change,
                     audit_options options = {}) const {
        int changed = 0;
        for (std::size_t i = 0; i < good_.size(); ++i) {
            lines records = good_;
            if (records[i]["type"] == type && change(records, i)) {
                const judged result = judge(log_of(records), options);
                EXPECT_EQ(result.status, 1) << "changed: " << good_[i] << "\n" << result.said << log_of(records);
                ++changed;
            }
        }
        return changed;
    }
    /// The same for each entry of a list of the operations.
    int expect_each_found(const std::string& list,
                          const std::function<bool(json& operation, std::size_t)>& change) const {
        int changed = 0;
        for (std::size_t entry = 0; entry < 8; ++entry) {
            changed += expect_found("operation", [&](lines& records, std::size_t i) {
                return entry < records[i][list].size() && change(records[i], entry);
            });
        }
        return changed;
    }
};

TEST_F(VerifyMutation, V4_the_log_itself_is_proved) {
    const judged result = judge(good_log());
    EXPECT_EQ(result.status, 0) << result.said << good_log();
    EXPECT_EQ(result.found.count(severity::note), 0U) << result.said;
    EXPECT_GE(result.sum.waits, 6U);
    EXPECT_GE(result.sum.elisions, 4U);
    EXPECT_EQ(judge(log_of(good_)).status, 0) << "taken apart and put together again";
    EXPECT_EQ(judge(good_log(), {.trust_completion = false}).status, 0) << "nothing is in order by luck";
}

TEST_F(VerifyMutation, V4_a_wait_that_was_not_issued) {
    EXPECT_GE(expect_each_found("waits",
                                [](json& one, std::size_t i) {
                                    one["waits"].erase(i);
                                    one["elisions"].clear();  // no other record refers to it
                                    return true;
                                }),
              6);
    EXPECT_GE(expect_found("stream_wait",
                           [](lines& records, std::size_t i) {
                               records.erase(records.begin() + static_cast<std::ptrdiff_t>(i));
                               return true;
                           }),
              2);
    EXPECT_GE(expect_found("stream_wait",
                           [](lines& records, std::size_t i) {
                               const bool was_issued = records[i]["issued"];
                               records[i]["issued"] = false;
                               return was_issued;
                           }),
              1);
}

TEST_F(VerifyMutation, V4_a_wait_for_too_little) {
    EXPECT_GE(expect_each_found("waits",
                                [](json& one, std::size_t i) {
                                    json& target = one["waits"][i]["target"];
                                    target[1] = target[1].get<std::uint64_t>() - 1;
                                    one["elisions"].clear();
                                    return true;
                                }),
              6);
    EXPECT_GE(expect_each_found("waits",
                                [](json& one, std::size_t i) {
                                    one["waits"][i]["target"][1] = 99;
                                    return true;
                                }),
              6);
}

TEST_F(VerifyMutation, V4_a_wait_of_the_hosts_that_did_not_happen) {
    lines records = good_;
    std::erase_if(records, [](const json& one) { return one["type"] == "host_wait"; });
    EXPECT_EQ(judge(log_of(records), {.trust_completion = false}).status, 1);
    EXPECT_EQ(judge(log_of(records)).status, 0) << "that the work had run is proof enough";
    std::erase_if(records, [](const json& one) { return one["type"] == "execution"; });
    EXPECT_EQ(judge(log_of(records)).status, 1);
}

TEST_F(VerifyMutation, V4_a_wait_of_the_hosts_that_returned_early) {
    EXPECT_GE(expect_found("execution",
                           [](lines& records, std::size_t i) {
                               // As if the operation had not run, nor any later one of its stream.
                               const json at = records[i]["at"];
                               std::erase_if(records, [&](const json& one) {
                                   return one["type"] == "execution" && one["at"][0] == at[0] && one["at"][1] >= at[1];
                               });
                               return true;
                           }),
              6);
}

TEST_F(VerifyMutation, V4_epochs_that_are_shifted) {
    for (const std::string type : {"operation", "stream_wait", "event", "execution"}) {
        for (const int shift : {-1, 1, 50}) {
            EXPECT_GE(expect_found(type,
                                   [&](lines& records, std::size_t i) {
                                       json& epoch = records[i]["at"][1];
                                       const std::int64_t shifted = epoch.get<std::int64_t>() + shift;
                                       // Before everything nothing is wrong, and an event may stand for it.
                                       epoch = static_cast<std::uint64_t>(std::max<std::int64_t>(shifted, 0));
                                       return shifted > 0;
                                   }),
                      1)
                << type << " " << shift;
        }
    }
}

TEST_F(VerifyMutation, V4_accesses_that_were_declared_too_small) {
    lines records = good_;
    for (json& one : records) {
        if (one.value("label", "") == "left") {
            one["accesses"][1]["end"] = 132;
        }
    }
    EXPECT_EQ(judge(log_of(records)).status, 1) << "one byte into the other half";
    EXPECT_GE(expect_found("operation",
                           [](lines& all, std::size_t i) {
                               const bool touches = !all[i]["accesses"].empty();
                               if (touches) {
                                   all[i]["accesses"][0]["end"] =
                                       all[i]["accesses"][0]["bytes"].get<std::uint64_t>() + 1;
                               }
                               return touches;
                           }),
              6);
}

TEST_F(VerifyMutation, V4_writes_that_were_declared_as_reads) {
    for (const std::string label : {"left", "right"}) {
        lines records = good_;
        for (json& one : records) {
            if (one.value("label", "") == label) {
                ASSERT_EQ(one["accesses"][0]["mode"], "read");
                one["accesses"][0]["mode"] = "write";
            }
        }
        EXPECT_EQ(judge(log_of(records)).status, 1) << label;
    }
}

TEST_F(VerifyMutation, V4_records_in_another_order) {
    int swapped = 0;
    for (std::size_t i = 0; i + 1 < good_.size(); ++i) {
        lines records = good_;
        std::swap(records[i], records[i + 1]);
        const json& first = good_[i];
        const json& second = good_[i + 1];
        const bool same_stream = first.contains("at") && second.contains("at") && first["at"][0] == second["at"][0];
        const bool both_enqueued = first["type"] != "execution" && first["type"] != "event" &&
                                   second["type"] != "execution" && second["type"] != "event";
        const int status = judge(log_of(records)).status;
        if (same_stream && both_enqueued) {
            EXPECT_EQ(status, 1) << first << "\n" << second;
            ++swapped;
        }
    }
    EXPECT_GE(swapped, 1);
    // An operation that is reported after it ran, or that waits for one that comes later.
    EXPECT_GE(expect_found("operation",
                           [](lines& records, std::size_t i) {
                               const json one = records[i];
                               records.erase(records.begin() + static_cast<std::ptrdiff_t>(i));
                               records.push_back(one);
                               return one["kind"] != "gate";
                           }),
              6);
}

TEST_F(VerifyMutation, V4_witnesses_that_prove_nothing) {
    EXPECT_GE(expect_each_found("elisions",
                                [](json& one, std::size_t i) {
                                    one["elisions"][i]["witness"][1] = 0;
                                    return one["elisions"][i]["because"] == "other_wait" ||
                                           one["elisions"][i]["because"] == "complete" || one["at"][1] > 1;
                                }),
              4);
    EXPECT_GE(expect_each_found("elisions",
                                [](json& one, std::size_t i) {
                                    json& elided = one["elisions"][i];
                                    const bool is_other_stream = elided["target"][0] != one["at"][0];
                                    elided["because"] = "same_stream";
                                    return is_other_stream;
                                }),
              2);
    EXPECT_GE(expect_each_found("elisions",
                                [](json& one, std::size_t i) {
                                    json& elided = one["elisions"][i];
                                    const bool is_other = elided["because"] == "other_wait";
                                    elided["because"] = "complete";
                                    elided["witness"] = elided["target"];
                                    return is_other;
                                }),
              1);
}

TEST_F(VerifyMutation, V4_memory_that_is_handed_out_twice) {
    EXPECT_GE(expect_found("allocation",
                           [](lines& records, std::size_t i) {
                               for (std::size_t earlier = 0; earlier < i; ++earlier) {
                                   if (records[earlier]["type"] == "allocation") {
                                       records[i]["address"] = records[earlier]["address"].get<std::uint64_t>() + 4;
                                       return true;  // the first one stays alive
                                   }
                               }
                               return false;
                           }),
              2);
    EXPECT_GE(expect_found("drop",
                           [](lines& records, std::size_t i) {
                               // Dropped at once, and used nevertheless.
                               const json one = records[i];
                               records.erase(records.begin() + static_cast<std::ptrdiff_t>(i));
                               const auto made = std::find_if(records.begin(), records.end(), [&](const json& other) {
                                   return other["type"] == "allocation" && other["resource"] == one["resource"];
                               });
                               records.insert(made + 1, one);
                               return true;
                           }),
              3);
}

TEST_F(VerifyMutation, V4_a_log_that_is_cut_short_is_refused) {
    const std::string& log = good_log();
    for (std::size_t end = 0; end < log.size(); end += 1 + end % 97) {
        ASSERT_EQ(judge(log.substr(0, end)).status, 2) << "cut after " << end << " bytes";
    }
    ASSERT_EQ(judge(log.substr(0, log.size() - 1)).status, 2);
    lines records = good_;
    records.pop_back();
    std::string shorter = log_of(records);
    shorter.insert(shorter.rfind("\"records\":") + 10, "1");
    EXPECT_EQ(judge(shorter).status, 2) << "the end knows how many there were";
}

TEST_F(VerifyMutation, V4_nothing_that_is_done_to_the_bytes_makes_it_fail) {
    std::mt19937 random(7);  // NOLINT: the same damage every time
    const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
    const int tries = weir::test::repeated(3000);
    int refused = 0;
    for (int i = 0; i < tries; ++i) {
        std::string log = good_log();
        for (std::size_t times = 1 + below(3); times > 0; --times) {
            const std::size_t at = below(log.size());
            switch (below(4)) {
                case 0:
                    log[at] = static_cast<char>(below(256));
                    break;
                case 1:
                    log.erase(at, 1 + below(20));
                    break;
                case 2:
                    log.insert(at, log.substr(below(log.size()), below(30)));
                    break;
                default:
                    log[at] = "0123456789[]{},:\"-"[below(18)];
                    break;
            }
        }
        const int status = judge(log).status;
        ASSERT_TRUE(status >= 0 && status <= 2);
        refused += status == 2 ? 1 : 0;
    }
    EXPECT_GT(refused, tries / 2);
}

TEST_F(VerifyMutation, V4_nothing_that_is_done_to_the_records_makes_it_fail) {
    std::mt19937 random(8);  // NOLINT: the same damage every time
    const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
    const std::vector<std::uint64_t> numbers = {0, 1, 2, 3, 64, 1ULL << 62, ~0ULL - 1, ~0ULL};
    // Gives one number somewhere inside another value.
    const std::function<bool(json&)> falsify = [&](json& one) {
        if (one.is_number()) {
            one = below(2) == 0 ? numbers[below(numbers.size())] : below(10);
            return true;
        }
        if (!one.is_structured() || one.empty()) {
            return false;
        }
        auto at = one.begin();
        std::advance(at, static_cast<std::ptrdiff_t>(below(one.size())));
        return falsify(*at);
    };
    const int tries = weir::test::repeated(3000);
    int found = 0;
    for (int i = 0; i < tries; ++i) {
        lines records = good_;
        for (std::size_t times = 1 + below(3); times > 0; --times) {
            const std::size_t at = below(records.size());
            switch (below(4)) {
                case 0:
                    records.erase(records.begin() + static_cast<std::ptrdiff_t>(at));
                    break;
                case 1:
                    records.insert(records.begin() + static_cast<std::ptrdiff_t>(at), records[below(records.size())]);
                    break;
                case 2:
                    std::swap(records[at], records[below(records.size())]);
                    break;
                default:
                    falsify(records[at]);
                    break;
            }
        }
        const int status =
            judge(log_of(records),
                  {.as_automatic = below(2) == 0, .trust_completion = below(2) == 0, .window = 1 + below(40)})
                .status;
        ASSERT_TRUE(status >= 0 && status <= 2);
        found += status != 0 ? 1 : 0;
    }
    EXPECT_GT(found, tries * 2 / 3);
}

}  // namespace
}  // namespace weir_verify::testing
