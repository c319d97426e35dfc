// Rule V1: random programs in which Weir and another library use the same memory, compared with a second, much simpler implementation: what
// comes before what is a set for each operation, and each two accesses are compared.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "check/detector.hpp"
#include "observe/observers.hpp"
#include "observer_script.hpp"
#include "weir/detail/watched_program.hpp"

namespace weir::check {
namespace {

using detail::watched_access;
using testing::observer_script;

constexpr std::uint64_t base = 0x1000;
constexpr std::uint64_t bytes = 128;
constexpr frontiers::timeline_id first = 1'000'000;  // the library's streams and memory have numbers of the process
constexpr std::uint64_t handles[] = {0x10, 0x20, 0x30};

/// The lines of operations.
using lines = std::set<std::uint32_t>;

/// What comes before what, and which accesses race.
class oracle {
public:
    void operation(std::size_t queue, std::uint32_t line, std::uint64_t begin, std::uint64_t end, bool writes,
                   const lines& after = {}) {
        lines& before = queues_[queue];
        before.insert(host_.begin(), host_.end());
        before.insert(after.begin(), after.end());
        for (const access& past : accesses_) {
            const bool conflict = (writes || past.writes) && begin < past.end && past.begin < end;
            if (conflict && !before.contains(past.line)) {
                races_.emplace(past.line, line);
            }
        }
        accesses_.push_back({line, begin, end, writes});
        before_[line] = before;
        before.insert(line);
    }
    [[nodiscard]] lines up_to(std::size_t queue) const { return queues_[queue]; }
    /// The operation, and what comes before it.
    [[nodiscard]] lines up_to_line(std::uint32_t line) const {
        lines all = before_.at(line);
        all.insert(line);
        return all;
    }
    void wait(std::size_t queue, const lines& for_) {
        queues_[queue].insert(host_.begin(), host_.end());
        queues_[queue].insert(for_.begin(), for_.end());
    }
    void host_waits(const lines& for_) { host_.insert(for_.begin(), for_.end()); }
    [[nodiscard]] const std::set<std::pair<std::uint32_t, std::uint32_t>>& races() const { return races_; }

private:
    struct access {
        std::uint32_t line;
        std::uint64_t begin;
        std::uint64_t end;
        bool writes;
    };
    lines queues_[std::size(handles)];
    lines host_;
    std::vector<access> accesses_;
    std::map<std::uint32_t, lines> before_;
    std::set<std::pair<std::uint32_t, std::uint32_t>> races_;
};

/// One random program, which is reported to a detector and to the oracle.
class program {
public:
    explicit program(std::uint32_t seed) : random_(seed) {  // NOLINT(cert-msc51-cpp): the same program each time
        observe::observers::add(detector_);
        for (std::size_t i = 0; i < std::size(handles); ++i) {
            streams_.push_back(&script_.make_stream("w" + std::to_string(i), nullptr, 100 + i,
                                                    observe::default_kind::none, handles[i]));
        }
        imports_.resize(2);
    }
    ~program() { observe::observers::remove(detector_); }
    program(const program&) = delete;
    program& operator=(const program&) = delete;

    void run(int steps) {
        for (int i = 0; i < steps; ++i) {
            step();
        }
    }
    /// The races that the detector has found, by lines.
    [[nodiscard]] std::set<std::pair<std::uint32_t, std::uint32_t>> found() const {
        std::set<std::pair<std::uint32_t, std::uint32_t>> all;
        for (const race& one : detector_.report().races()) {
            all.emplace(one.first.line, one.second.line);
        }
        return all;
    }
    /// Whether these are operations of Weir by two imports, which it takes for two memories as long as the library has not used it.
    [[nodiscard]] bool by_two_imports(std::uint32_t a, std::uint32_t b) const {
        const auto one = by_.find(a);
        const auto two = by_.find(b);
        return one != by_.end() && two != by_.end() && one->second != two->second;
    }
    [[nodiscard]] std::string report() const { return detector_.report().to_string(); }
    [[nodiscard]] const oracle& truth() const { return truth_; }
    [[nodiscard]] const std::string& text() const { return text_; }

private:
    struct import {
        std::uint64_t number = 0;
        std::uint64_t offset = 0;
        std::vector<std::pair<std::uint32_t, std::pair<order::footprint, bool>>>
            uses;  ///< line, part, whether it writes
    };

    std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_); }
    template <class... Words>
    void say(std::uint32_t line, const Words&... words) {
        std::ostringstream text;
        text << line << ":";
        ((text << " " << words), ...);
        text_ += text.str() + "\n";
    }
    order::footprint part(std::uint64_t size) {
        const std::uint64_t begin = below(size);
        return {begin, begin + 1 + below(size - begin)};
    }

    void step() {
        const std::uint32_t line = ++line_;
        const std::size_t q = below(std::size(handles));
        const detail::watched_stream theirs{0, handles[q]};
        switch (below(10)) {
            case 0:
            case 1:
            case 2: {
                const order::footprint where = part(bytes);
                const bool writes = below(2) == 0;
                const watched_access all[] = {
                    {base, bytes, where, writes ? access_mode::write : access_mode::read, true}};
                say(line, "torch", q, writes ? "writes" : "reads", where.begin, where.end);
                truth_.operation(q, line, where.begin, where.end, writes);
                torch_.operation(theirs, "aten::op", all, {"program.cpp", "run", line});
                break;
            }
            case 3:
            case 4:
            case 5:
                of_weirs(q, line);
                break;
            case 6:
            case 7: {  // an event of the library's, recorded and waited for
                const lines held = truth_.up_to(q);
                const std::size_t other = below(std::size(handles));
                say(line, "torch's event of", q, "for", other);
                torch_.event_recorded(line, theirs, {"program.cpp", "run", line});
                if (below(2) == 0) {
                    of_weirs(q, line);  // which the event does not hold
                }
                torch_.stream_waits({0, handles[other]}, line, {"program.cpp", "run", line});
                truth_.wait(other, held);
                break;
            }
            case 8: {  // and one of Weir's
                const lines held = truth_.up_to(q);
                const std::size_t other = below(std::size(handles));
                say(line, "Weir's event of", q, "for", other);
                const frontiers::point at = script_.enter(*streams_[q]);
                script_.wait(*streams_[other], at);
                truth_.wait(other, held);
                break;
            }
            default:
                if (below(4) != 0) {
                    let_go(below(imports_.size()));
                } else if (below(2) == 0) {
                    say(line, "torch's host waits for", q);
                    torch_.host_waited_for_stream(theirs, {"program.cpp", "run", line});
                    truth_.host_waits(truth_.up_to(q));
                } else {
                    say(line, "Weir's host waits for", q);
                    script_.host_waits(script_.enter(*streams_[q]));
                    truth_.host_waits(truth_.up_to(q));
                }
        }
    }

    /// An operation on an import, which Weir orders with the library's current stream, 0, or not at all.
    void of_weirs(std::size_t q, std::uint32_t line) {
        import& one = imports_[below(imports_.size())];
        if (one.number == 0) {
            one.number = ++numbers_;
            one.offset = below(2) * 64;
        }
        const order::footprint where = part(64);
        const bool writes = below(2) == 0;
        const bool by_weir = below(2) == 0;
        observer_script::access access =
            writes ? testing::writes(one.number, where) : testing::reads(one.number, where);
        access.shared = observe::sharing::imported;
        access.address = base + one.offset;
        lines after;
        if (by_weir) {
            access = testing::automatic(access);
            for (const auto& [past, how] : one.uses) {
                if ((writes || how.second) && order::overlap(how.first, where)) {
                    const lines all = truth_.up_to_line(past);
                    after.insert(all.begin(), all.end());
                }
            }
        }
        by_[line] = one.number;
        one.uses.push_back({line, {where, writes}});
        const bool goes_through = by_weir && q != 0;
        if (goes_through) {
            const lines current = truth_.up_to(0);
            after.insert(current.begin(), current.end());
        }
        say(line, by_weir ? "Weir orders" : "Weir", q, writes ? "writes" : "reads", one.offset + where.begin,
            one.offset + where.end, "by", one.number);
        truth_.operation(q, line, one.offset + where.begin, one.offset + where.end, writes, after);
        if (goes_through) {
            script_.enqueue_between(*streams_[q], *streams_[0], line, {access});
            truth_.wait(0, truth_.up_to_line(line));
        } else {
            script_.enqueue(*streams_[q], line, {access});
        }
    }

    void let_go(std::size_t which) {
        if (imports_[which].number != 0) {
            say(line_, "dropped", imports_[which].number);
            script_.drop(imports_[which].number);
            imports_[which] = {};
        }
    }

    std::mt19937 random_;
    detector detector_{{}};
    observer_script script_{detector_, first};
    detail::watched_program torch_{"torch", "cuda"};
    oracle truth_;
    std::vector<observer_script::stream*> streams_;
    std::vector<import> imports_;
    std::uint64_t numbers_ = first;
    std::uint32_t line_ = 0;
    std::string text_;                           ///< what it does
    std::map<std::uint32_t, std::uint64_t> by_;  ///< the import of each operation of Weir's
};

TEST(DetectorLibrariesRandom, V1_random_programs_have_the_races_that_a_simpler_implementation_finds) {
    std::size_t races = 0;
    std::size_t silent = 0;
    for (std::uint32_t seed = 1; seed <= 3000; ++seed) {
        program one(seed);
        one.run(4 + static_cast<int>(seed % 30));
        const auto found = one.found();
        const auto& truth = one.truth().races();
        for (const auto& each : found) {
            ASSERT_TRUE(truth.contains(each))
                << "program " << seed << ": " << each.first << "->" << each.second << " are in order\n"
                << one.text() << one.report();
        }
        // An access that a later one covers need not be named: the later one is, which races with the same.
        for (const auto& each : truth) {
            ASSERT_TRUE(one.by_two_imports(each.first, each.second) ||
                        std::any_of(found.begin(), found.end(), [&](const auto& f) { return f.second == each.second; }))
                << "program " << seed << ": " << each.first << "->" << each.second << " was not found\n"
                << one.text();
        }
        races += found.size();
        silent += found.empty() ? 1U : 0U;
    }
    EXPECT_GT(races, 3000U);
    EXPECT_GT(silent, 300U);
}

}  // namespace
}  // namespace weir::check
