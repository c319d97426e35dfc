// The versions of a scenario with another library (SCENARIOS A): ordered by Weir; not ordered; not ordered, under check;
// ordered by the program, by hand.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/devices.hpp"
#include "support/producer.hpp"
#include "support/versions.hpp"
#include "weir/borrow.hpp"
#include "weir/weir.hpp"

namespace weir::test {

/// The objects of a scenario: a library, a stream of Weir's, and a way to hold either of them until everything is enqueued and,
/// if nothing orders the two, until the other one has finished. So a possible error does happen.
class sharing_run {
public:
    /// `declares`: whether the program tells Weir what the library does.
    sharing_run(version which, const weir::device& on, bool declares = false)
        : device(on),
          library(std::make_shared<producer>(on)),
          s(on, {0, "s"}),
          which_(which),
          declares_(declares),
          ordering_(which == version::weir ? ordering_mode::automatic : ordering_mode::manual) {}

    const weir::device device;
    const std::shared_ptr<producer> library;
    const stream s;

    [[nodiscard]] bool is_ordered_by_weir() const noexcept { return which_ == version::weir; }

    /// From now on the library's current queue runs nothing that it gets.
    void hold_library() { hold_library(library); }
    void hold_library(const std::shared_ptr<producer>& one) {
        held_ = one->current();
        held_->hold(latch_);
    }
    /// The same for the stream.
    void hold_stream() { gate_.hold(s); }

    /// The waits that the author writes in the version that is ordered by hand: before an operation, and after it.
    void enter_by_hand() const { by_hand(s, stream::adopt(*library->current())); }
    void exit_by_hand() const { by_hand(stream::adopt(*library->current()), s); }
    void by_hand(const stream& waits, const stream& awaited) const {
        if (which_ == version::program) {
            waits.wait(awaited);
        }
    }
    /// Work of the library on memory that Weir has as these arrays, in the library's current queue. A program that is to be checked declares
    /// it, by a borrow: check sees nothing else of what a library does.
    template <class Work>
    void by_library(std::vector<array> reads, std::vector<exchange::written_array> writes, source_location where,
                    Work&& work) {
        by_library(library, std::move(reads), std::move(writes), where, work);
    }
    template <class Work>
    void by_library(const std::shared_ptr<producer>& one, std::vector<array> reads,
                    std::vector<exchange::written_array> writes, source_location where, Work&& work) {
        if (!declares_) {
            work();
            return;
        }
        exchange::borrow declared(stream::adopt(*one->current()),
                                  {.reads = std::move(reads), .writes = std::move(writes)}, where);
        work();
        declared.end(where);
    }
    [[nodiscard]] bool declares() const noexcept { return declares_; }

    /// The calling line, which the expected races refer to by `name`.
    source_location at(const std::string& name, source_location line = source_location::current()) {
        names_.emplace(line.line, name);
        return line;
    }
    /// The name of an access in the expected races.
    [[nodiscard]] std::string name_of(const race_access& access) const {
        const auto noted = names_.find(access.line);
        return noted == names_.end() ? "line " + std::to_string(access.line) : noted->second;
    }

    void finish() {
        if (which_ == version::nobody) {  // a wait of Weir's would hang here
            if (held_) {
                s.synchronize();
            } else {
                library->drain();
            }
        }
        latch_->open();
        gate_.open();
        s.synchronize();
        library->drain();
    }

private:
    version which_;
    bool declares_;
    ordering_scope ordering_;
    testing::gate gate_;
    std::shared_ptr<thread_queue::latch> latch_ = std::make_shared<thread_queue::latch>();
    producer::queue held_;
    std::map<std::uint32_t, std::string> names_;
};

/// The names of the two accesses of a race, the one that was enqueued first before the other.
using race_names = std::pair<std::string, std::string>;

/// Expects that the races found are these, with both lines, which are lines of the file `file`, and with a wait that would mend each.
inline void expect_races_of_sharing(const report& found, std::vector<race_names> races, const std::string& file,
                                    const sharing_run& run) {
    std::vector<race_names> named;
    for (const race& one : found) {
        named.emplace_back(run.name_of(one.first), run.name_of(one.second));
        EXPECT_EQ(one.first.file, file);
        EXPECT_EQ(one.second.file, file);
        EXPECT_NE(one.mend.find(".wait(e)"), std::string::npos) << one.mend;
    }
    std::sort(named.begin(), named.end());
    std::sort(races.begin(), races.end());
    EXPECT_EQ(named, races) << found.to_string();
}

/// Runs all versions of `scenario(sharing_run&) -> result`, which enqueues, calls finish, and reads its result, on the device
/// under test. The races that check finds must be `races`, in lines of the file `file`.
template <class Result, class Scenario>
void expect_sharing_versions(const Result& right, const std::vector<race_names>& races, const std::string& file,
                             Scenario&& scenario) {
    const auto run_as = [&](version which) {
        sharing_run run(which, here());
        return scenario(run);
    };
    {
        const check_scope check;
        EXPECT_EQ(run_as(version::weir), right) << "ordered by Weir";
        EXPECT_TRUE(check.report().empty()) << "ordered by Weir\n" << check.report().to_string();
    }
    EXPECT_NE(run_as(version::nobody), right) << "control: without ordering it must be wrong";
    {
        const check_scope check;
        sharing_run run(version::nobody_checked, here(), true);
        EXPECT_EQ(scenario(run), right) << "check keeps the program safe";
        expect_races_of_sharing(check.report(), races, file, run);
    }
    {
        const check_scope check;
        const added_waits added;
        EXPECT_EQ(run_as(version::program), right) << "ordered by hand";
        EXPECT_TRUE(check.report().empty()) << "ordered by hand\n" << check.report().to_string();
    }
    {
        const check_scope check;
        sharing_run run(version::program, here(), true);
        EXPECT_EQ(scenario(run), right) << "ordered by hand, and declared";
        EXPECT_TRUE(check.report().empty()) << "ordered by hand, and declared\n" << check.report().to_string();
    }
    const added_waits added;
    EXPECT_EQ(run_as(version::program), right) << "ordered by hand";
    EXPECT_EQ(added.count, 0U) << "ordered by hand, Weir adds nothing";
}

/// The vocabulary of the tests of sharing.
namespace sharing {

inline constexpr std::size_t n = 64;
using numbers = std::vector<double>;

inline std::shared_ptr<thread_queue::latch> make_latch() { return std::make_shared<thread_queue::latch>(); }

/// Element accesses of kernels: the negative controls race with a library's tasks on purpose.
inline double load(const double& element) {
    return std::atomic_ref(const_cast<double&>(element)).load(std::memory_order_relaxed);
}
inline void store(double& element, double value) { std::atomic_ref(element).store(value, std::memory_order_relaxed); }

/// to = from * 10
inline completion times_ten(const stream& s, array& to, const array& from,
                            source_location where = source_location::current()) {
    return parallel_for(
        on(s, where).label("times ten"), n, [](auto i, auto y, auto x) { store(y[i], load(x[i]) * 10); },
        out(to.view<double>()), in(from.view<double>()));
}

inline completion add(const stream& s, array& x, double value, source_location where = source_location::current()) {
    return parallel_for(
        on(s, where).label("add"), n, [value](auto i, auto y) { store(y[i], load(y[i]) + value); },
        inout(x.view<double>()));
}

/// An array of Weir's that is filled when this returns.
inline array ours(double value, const device& of = here()) {
    const stream s(of);
    array made = full({n}, value, dtype::float64, s);
    s.synchronize();
    return made;
}

inline numbers values(const array& x) {
    const auto view = x.read<double>();
    return {view.begin(), view.end()};
}

/// The elements, for code that runs in the queues of the array's device.
inline std::span<double> elements(array x) { return x.view<double>().device_span(); }

inline numbers all(double value) { return numbers(n, value); }

/// A live import of a library's array, as it is made.
inline array import(const std::shared_ptr<producer>& from, const producer::array& x,
                    package_use use = package_use::writes) {
    return {import_live(x.data(), x.bytes(), from->device(), from, x.owner(), use), dtype::float64, {n}};
}

/// An array of the library's that is filled when this returns.
inline producer::array theirs(const std::shared_ptr<producer>& library, double value) {
    producer::array made = library->empty(n);
    library->fill(made, value);
    library->drain();
    return made;
}

}  // namespace sharing

}  // namespace weir::test
