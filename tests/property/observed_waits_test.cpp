// What check and trace see is what ships: random programs give a queue the same waits with an observer and without one.
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
#include "runtime/device_state.hpp"
#include "weir/check.hpp"
#include "weir/trace.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

/// The waits that queues were given, by the steps of the program: comparable where epochs are not. Used by one thread.
///
/// With an observer, a wait that the program asks for and that is implied takes an epoch of its own. So a stream that waits for
/// the end of such a stream is given a wait for that epoch, though it comes after all the work before it already. These waits
/// order nothing; they are counted apart.
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
        const auto orders = [&](const backend::point& one) { return now.after.count(of(one).name) == 0; };
        if (!is_operation && std::none_of(targets.begin(), targets.end(), orders)) {
            redundant += targets.size();
            entries_[key(at)] = std::move(now);
            return;
        }
        now.name = "step " + std::to_string(step);
        std::set<std::string> names;
        for (const backend::point& one : targets) {
            const entry target = of(one);
            names.insert(target.name);
            now.after.insert(target.after.begin(), target.after.end());
        }
        std::string line = now.name + ":";
        for (const std::string& one : names) {
            line += " waits for " + one;
        }
        given_.push_back(std::move(line));
        now.after.insert(now.name);
        entries_[key(at)] = std::move(now);
        waits += targets.size();
    }
    [[nodiscard]] const std::vector<std::string>& given() const noexcept { return given_; }

    int step = 0;               ///< of the program, which is enqueued now
    std::size_t waits = 0;      ///< of all programs
    std::size_t redundant = 0;  ///< of all programs

private:
    /// One that a queue took.
    struct entry {
        std::string name = "something before the program";
        std::set<std::string> after;  ///< the names of all that it comes after, and its own
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

/// A queue of the CPU that notes what it is given.
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
    [[nodiscard]] backend::memory_piece allocate(std::size_t bytes) noexcept override { return cpu_.allocate(bytes); }
    void deallocate(backend::memory_piece memory, std::size_t bytes) noexcept override {
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

device recording_device() {
    // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): lives for ever, as all devices do
    static auto* const one =
        new runtime::device_state(device_kind::cpu, 1, std::make_unique<recording_driver>(), &cpu().state());
    return device(*one);
}

enum class watched { not_at_all, by_trace, by_check };

/// Enqueues the program of that number, while nothing of it is over. Returns the waits that the queues were given.
std::vector<std::string> waits_of(std::uint32_t seed, ordering_mode mode, watched how) {
    std::mt19937 random(seed);  // NOLINT(cert-msc51-cpp): the same program each time
    const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
    const std::size_t stream_count = 2 + below(3);
    constexpr std::size_t array_count = 3;
    constexpr std::int64_t elements = 12;
    std::vector<stream> streams;
    for (std::size_t i = 0; i < stream_count; ++i) {
        streams.emplace_back(recording_device());
    }
    std::vector<array> arrays;
    for (std::size_t i = 0; i < array_count; ++i) {
        arrays.push_back(zeros({elements}, dtype::float64));
    }
    cpu().synchronize();

    const ordering_scope ordering(mode);
    std::optional<trace_scope> trace;
    std::optional<check_scope> check;
    if (how == watched::by_trace) {
        trace.emplace();
    } else if (how == watched::by_check) {
        check.emplace();
    }
    record().begin();
    testing::gate held;
    for (const stream& one : streams) {
        --record().step;  // a gate for each
        held.hold(one);
    }
    event moment;
    completion last;
    const auto part = [&] {
        const auto first = static_cast<std::int64_t>(below(3)) * 4;
        const std::int64_t end = below(4) == 0 ? elements : first + 4;
        return arrays[below(array_count)].slice(first, end);
    };
    for (int step = 1; step <= 40; ++step) {
        record().step = step;
        const stream& s = streams[below(stream_count)];
        const stream& other = streams[below(stream_count)];
        const array a = part();
        const array b = part();
        const array c = part();
        const std::size_t kind = below(10);
        if (kind == 0) {
            moment.record(s);
        } else if (kind == 1) {
            s.wait(moment);
        } else if (kind == 2) {
            s.wait(other);
        } else if (kind == 3) {
            last = access(on(s).after(last), in(a), [](auto&&...) {});
        } else if (kind == 4) {
            last = access(s, in(a), in(a), out(a), [](auto&&...) {});
        } else if (kind == 5) {
            last = access(s, in(a), out(b), [](auto&&...) {});
        } else {
            last = access(s, in(a), in(b), out(c), [](auto&&...) {});
        }
    }
    std::vector<std::string> given = record().given();
    held.open();
    for (const stream& one : streams) {
        one.synchronize();
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
    for (const ordering_mode mode : {ordering_mode::automatic, ordering_mode::manual}) {
        for (std::uint32_t seed = 1; seed <= programs; ++seed) {
            const auto shipped = waits_of(seed, mode, watched::not_at_all);
            EXPECT_EQ(difference(shipped, waits_of(seed, mode, watched::by_trace)), "") << "program " << seed;
        }
    }
    EXPECT_GT(record().waits, std::size_t{programs}) << "the programs need no waits";
}

TEST(ObservedWaits, O2WithoutAnObserverNoWaitOfTheProgramsIsRedundant) {
    const std::size_t before = record().redundant;
    for (std::uint32_t seed = 1; seed <= programs; ++seed) {
        static_cast<void>(waits_of(seed, ordering_mode::automatic, watched::not_at_all));
    }
    EXPECT_EQ(record().redundant, before);
}

TEST(ObservedWaits, V1CheckSeesTheWaitsThatShipWhereWeirOrders) {
    for (std::uint32_t seed = 1; seed <= programs; ++seed) {
        const auto shipped = waits_of(seed, ordering_mode::automatic, watched::not_at_all);
        EXPECT_EQ(difference(shipped, waits_of(seed, ordering_mode::automatic, watched::by_check)), "")
            << "program " << seed;
    }
}

TEST(ObservedWaits, V1ControlWhereTheProgramOrdersCheckAddsTheWaitsThatAreMissing) {
    std::uint32_t differ = 0;
    for (std::uint32_t seed = 1; seed <= programs; ++seed) {
        const auto shipped = waits_of(seed, ordering_mode::manual, watched::not_at_all);
        differ += waits_of(seed, ordering_mode::manual, watched::by_check) != shipped ? 1U : 0U;
    }
    EXPECT_GT(differ, programs / 2);
}

}  // namespace
}  // namespace weir
