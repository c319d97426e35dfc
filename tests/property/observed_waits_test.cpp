// Check and trace see the waits of unobserved programs: random programs give a queue the same waits with an observer and without one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backend/cpu/driver.hpp"
#include "backend/timeline.hpp"
#include "runtime/devices/device_state.hpp"
#include "weir/check.hpp"
#include "weir/trace.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

/// The waits that queues were given, by the steps of the program: they can be compared where epochs cannot. Used by one thread.
///
/// With an observer, a wait that the program asks for and that is implied takes an epoch of its own, a marker. An event that is
/// recorded there, and the end of the stream, are then a point that other streams are not ordered after, though they come after all
/// the work before it. They get a wait for it that orders nothing. Such waits are counted separately; any other wait that orders
/// nothing is a mistake.
class wait_record {
public:
    void begin() {
        entries_.clear();
        given_.clear();
        step = 0;
    }
    /// The queue took the operation at `at`, or the program's wait, which starts after the targets.
    void took(backend::point at, const std::vector<backend::point>& targets, bool is_operation) {
        entry now = of({at.timeline, at.at - 1});
        std::set<std::string> names;
        std::set<std::string> after = now.after;
        for (const backend::point& one : targets) {
            const entry target = of(one);
            const bool is_implied = now.after.count(target.name) != 0 ||
                                    std::any_of(targets.begin(), targets.end(), [&](const auto& other) {
                                        const entry theirs = of(other);
                                        return theirs.name != target.name && theirs.after.count(target.name) != 0;
                                    });
            if (is_implied) {
                ++redundant;
                unexplained += target.is_marker ? 0U : 1U;
            } else {
                names.insert(target.name);
                after.insert(target.after.begin(), target.after.end());
            }
        }
        waits += names.size();
        now.is_marker = !is_operation && names.empty();
        if (!now.is_marker) {
            now.name = "step " + std::to_string(step);
            std::string line = now.name + ":";
            for (const std::string& one : names) {
                line += " waits for " + one;
            }
            given_.push_back(std::move(line));
            after.insert(now.name);
        }
        now.after = std::move(after);
        entries_[key(at)] = std::move(now);
    }
    [[nodiscard]] const std::vector<std::string>& given() const noexcept { return given_; }

    int step = 0;                 ///< of the program, which is enqueued now
    std::size_t waits = 0;        ///< of all programs, those that order something
    std::size_t redundant = 0;    ///< of all programs: waits that order nothing
    std::size_t unexplained = 0;  ///< of these, waits whose target is no marker

private:
    /// One entry that a queue took.
    struct entry {
        std::string name = "something before the program";
        std::set<std::string> after;  ///< the names of everything that it comes after, and its own
        bool is_marker = false;
    };
    using epoch_key = std::pair<frontiers::timeline_id, frontiers::epoch>;
    [[nodiscard]] static epoch_key key(backend::point at) noexcept { return {at.timeline, at.at}; }
    [[nodiscard]] entry of(backend::point at) const {
        const auto found = entries_.find(key(at));
        return found == entries_.end() ? entry() : found->second;
    }

    std::map<epoch_key, entry> entries_;
    std::vector<std::string> given_;
};

wait_record& record() {
    static wait_record one;
    return one;
}

/// A queue of the CPU that records what it is given.
class recording_queue final : public backend::queue {
public:
    recording_queue(std::unique_ptr<backend::queue> to, frontiers::timeline_id timeline)
        : to_(std::move(to)), timeline_(timeline) {}
    void reserve(std::size_t waits, const detail::task_ref& work) override { to_->reserve(waits, work); }
    void wait(backend::point target) noexcept override {
        targets_.push_back(target);
        to_->wait(target);
    }
    void submit(backend::epoch at, const backend::operation& what) noexcept override {
        record().took({timeline_, at}, std::exchange(targets_, {}), what.work.type != nullptr);
        to_->submit(at, what);
    }
    void flush(backend::point upto) noexcept override { to_->flush(upto); }

private:
    std::unique_ptr<backend::queue> to_;
    frontiers::timeline_id timeline_;
    std::vector<backend::point> targets_;
};

class recording_driver final : public backend::driver {
public:
    [[nodiscard]] std::string_view name() const noexcept override { return "recording"; }
    [[nodiscard]] std::unique_ptr<backend::queue> make_queue(backend::timeline& line, backend::queue_events& events,
                                                             const backend::queue_options& how) override {
        return std::make_unique<recording_queue>(cpu_.make_queue(line, events, how), line.number());
    }
    [[nodiscard]] backend::memory_chunk allocate(std::size_t bytes) noexcept override { return cpu_.allocate(bytes); }
    void deallocate(backend::memory_chunk memory, std::size_t bytes) noexcept override {
        cpu_.deallocate(memory, bytes);
    }
    [[nodiscard]] std::size_t total_memory() const noexcept override { return cpu_.total_memory(); }
    [[nodiscard]] bool host_reaches_memory() const noexcept override { return true; }
    void fetch(std::byte* host, const std::byte* device, std::size_t bytes) override {
        cpu_.fetch(host, device, bytes);
    }
    void store(std::byte* device, const std::byte* host, std::size_t bytes) override {
        cpu_.store(device, host, bytes);
    }

private:
    backend::cpu::cpu_driver cpu_;
};

/// One of two devices that use the CPU's memory, each with a driver of its own.
device recording_device(std::size_t which) {
    const auto make = [](int id) {
        return new runtime::device_state(device_kind::cpu, id, std::make_unique<recording_driver>(),
                                         &cpu().state(detail::key));
    };
    // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): they live for ever, as all devices do
    static runtime::device_state* const both[] = {make(1), make(2)};
    return device(detail::key, *both[which]);
}

enum class watched { not_at_all, by_trace, by_check };

/// Whether Weir or the program orders a random program.
enum class ordered {
    by_weir,
    by_the_program,  ///< by a scope
    by_both,         ///< some arrays and some streams are left to the program, and change in between
};

constexpr std::int64_t elements = 12;
constexpr auto nothing = [](auto&&...) {};

/// A random program, the same for the same number. Its operations touch memory in each mode, depend on events and on each other, and
/// run on two devices.
class program {
public:
    program(std::uint32_t seed, ordered how) : random_(seed), how_(how) {  // NOLINT(cert-msc51-cpp): the same each time
        const std::size_t stream_count = 2 + below(3);
        for (std::size_t i = 0; i < stream_count; ++i) {
            streams_.emplace_back(recording_device(i % 2));
        }
        for (std::size_t i = 0; i < array_count; ++i) {
            arrays_.push_back(zeros({elements}, dtype::float64));
        }
    }
    [[nodiscard]] const std::vector<stream>& streams() const noexcept { return streams_; }

    void enqueue_step() {
        const stream& s = streams_[below(streams_.size())];
        const stream& other = streams_[below(streams_.size())];
        event& moment = events_[below(event_count)];
        array a = part();
        array b = part();
        array c = part();
        switch (below(16)) {
            case 0:
                return moment.record(s);
            case 1:
                return s.wait(moment);
            case 2:
                return s.wait(other);
            case 3:
                return s.wait(last_);
            case 4:
                last_ = access(on(s).after(last_), nothing, in(a));
                return;
            case 5:
                last_ = access(on(s).after(moment).after(last_), nothing, inout(a));
                return;
            case 6:
                last_ = access(s, nothing, in(a), in(a), out(a));  // names memory twice
                return;
            case 7:
                last_ = access(s, nothing, in(a));
                return;
            case 8:
                last_ = access(s, nothing, out(a));
                return;
            case 9:
                last_ = access(s, nothing, inout(a));
                return;
            case 10:
                last_ = host_task(s, nothing, in(a), inout(b));
                return;
            case 11:
                return change_mode(s);
            case 12:
            case 13:
                last_ = access(s, nothing, in(a), out(b));
                return;
            default:
                last_ = access(s, nothing, in(a), in(b), out(c));
                return;
        }
    }

private:
    static constexpr std::size_t array_count = 3;
    static constexpr std::size_t event_count = 2;

    std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_); }
    [[nodiscard]] array part() {
        const auto first = static_cast<std::int64_t>(below(3)) * 4;
        const std::int64_t end = below(4) == 0 ? elements : first + 4;
        return arrays_[below(array_count)].slice(first, end);
    }
    void change_mode(const stream& of) {
        const bool is_of_array = below(2) == 0;
        const array& one = arrays_[below(array_count)];
        const std::size_t chosen = below(3);
        if (how_ != ordered::by_both) {
            return;
        }
        const std::optional<ordering_mode> modes[] = {std::nullopt, ordering_mode::manual, ordering_mode::automatic};
        is_of_array ? one.set_ordering(modes[chosen]) : of.set_ordering(modes[chosen]);
    }

    std::mt19937 random_;
    ordered how_;
    std::vector<stream> streams_;
    std::vector<array> arrays_;
    event events_[event_count];
    completion last_;
};

/// Enqueues the program of that number, while none of it completes. Returns the waits that the queues were given.
std::vector<std::string> waits_of(std::uint32_t seed, ordered by, watched how) {
    program one(seed, by);
    cpu().synchronize();
    const ordering_scope ordering(by == ordered::by_the_program ? ordering_mode::manual : ordering_mode::automatic);
    std::optional<trace_scope> trace;
    std::optional<check_scope> check;
    if (how == watched::by_trace) {
        trace.emplace();
    } else if (how == watched::by_check) {
        check.emplace();
    }
    record().begin();
    testing::gate held;
    for (const stream& each : one.streams()) {
        --record().step;  // a gate for each
        held.hold(each);
    }
    for (int step = 1; step <= 50; ++step) {
        record().step = step;
        one.enqueue_step();
    }
    std::vector<std::string> given = record().given();
    held.open();
    for (const stream& each : one.streams()) {
        each.synchronize();
    }
    return given;
}

/// The first wait list in which the two differ; empty if they are equal.
std::string difference(const std::vector<std::string>& shipped, const std::vector<std::string>& observed) {
    for (std::size_t i = 0; i < std::max(shipped.size(), observed.size()); ++i) {
        const std::string without = i < shipped.size() ? shipped[i] : "nothing";
        const std::string with = i < observed.size() ? observed[i] : "nothing";
        if (without != with) {
            return "without an observer: " + without + "; with one: " + with;
        }
    }
    return {};
}

constexpr std::uint32_t programs = 150;

TEST(ObservedWaits, V2TraceSeesTheWaitsThatShip) {
    for (const ordered by : {ordered::by_weir, ordered::by_the_program, ordered::by_both}) {
        const std::size_t before = record().waits;
        for (std::uint32_t seed = 1; seed <= programs; ++seed) {
            const auto shipped = waits_of(seed, by, watched::not_at_all);
            EXPECT_EQ(difference(shipped, waits_of(seed, by, watched::by_trace)), "") << "program " << seed;
        }
        EXPECT_GT(record().waits - before, std::size_t{programs}) << "the programs need no waits";
    }
    EXPECT_EQ(record().unexplained, 0U);
}

TEST(ObservedWaits, O2WithoutAnObserverNoWaitOfTheProgramsIsRedundant) {
    const std::size_t before = record().redundant;
    for (std::uint32_t seed = 1; seed <= programs; ++seed) {
        static_cast<void>(waits_of(seed, ordered::by_weir, watched::not_at_all));
    }
    EXPECT_EQ(record().redundant, before);
}

TEST(ObservedWaits, V1CheckSeesTheWaitsThatShipWhereWeirOrders) {
    for (std::uint32_t seed = 1; seed <= programs; ++seed) {
        const auto shipped = waits_of(seed, ordered::by_weir, watched::not_at_all);
        EXPECT_EQ(difference(shipped, waits_of(seed, ordered::by_weir, watched::by_check)), "") << "program " << seed;
    }
    EXPECT_EQ(record().unexplained, 0U);
}

TEST(ObservedWaits, V1ControlWhereTheProgramOrdersCheckAddsTheWaitsThatAreMissing) {
    for (const ordered by : {ordered::by_the_program, ordered::by_both}) {
        std::uint32_t differ = 0;
        for (std::uint32_t seed = 1; seed <= programs; ++seed) {
            const auto shipped = waits_of(seed, by, watched::not_at_all);
            differ += waits_of(seed, by, watched::by_check) != shipped ? 1U : 0U;
        }
        EXPECT_GT(differ, programs / 2);
    }
}

}  // namespace
}  // namespace weir
