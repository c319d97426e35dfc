// How much more than the write a reader on another stream waits for (rule O7): the writer's stream has a kernel of 20 ms behind the
// write. By hand an event is recorded right behind the write. And what it costs to give each operation an event.
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "contest.hpp"
#include "cuda_device.hpp"

namespace weir::bench {

namespace {

constexpr long long twenty_milliseconds = 20'000'000;

/// A round: a write, the long kernel behind it, and a read on another stream, which the turn waits for. The first round of all is
/// late without an event of the program: it is no part of what is measured.
class rounds : launch_setting {
public:
    rounds(std::size_t between, bool is_new) : between_(between), is_new_(is_new) {
        before();
        tracked();
        after();
    }

    void before() {
        for (std::size_t i = 0; i < between_; ++i) {
            launch(s1, empty_kernel, {1, 32}, inout<double>(other_));
            r1.launch(empty_kernel, {&other_address_});
        }
        if (is_new_) {
            x = empty(64, dtype::float64, s1);
            address = x.device_data();
        }
        after();
    }
    void tracked() {
        launch(s1, empty_kernel, {1, 32}, inout<double>(x));
        launch(s1, spin_, {1, 32}, inout<double>(other_), twenty_milliseconds);
        launch(s2_, empty_kernel, {1, 32}, inout<double>(x)).synchronize();
    }
    void by_hand() {
        long long duration = twenty_milliseconds;
        r1.launch(empty_kernel, {&address});
        written_.record(r1);
        r1.launch(spin_, {&other_address_, &duration});
        written_.hold(r2_);
        r2_.launch(empty_kernel, {&address});
        r2_.synchronize();
    }
    void after() {
        synchronize();
        s2_.synchronize();
        r2_.synchronize();
    }

private:
    std::size_t between_;
    bool is_new_;
    kernel spin_ = kernel::from_source(spin_source, "spin", {}, on);
    stream s2_{on};
    raw_stream r2_{*in};
    raw_event written_{*in};
    array other_ = empty(64, dtype::float64, s1);
    void* other_address_ = other_.device_data();
};

const std::vector<contest> over_waits = [] {
    std::vector<contest> made;
    for (const bool is_new : {false, true}) {
        for (const std::size_t between : {0U, 100U, 10'000U}) {
            const auto weir = [between, is_new] {
                const auto with = std::make_shared<rounds>(between, is_new);
                return contestant{"Weir", 1, [with] { with->tracked(); }, [with] { with->before(); },
                                  [with] { with->after(); }};
            };
            const auto hand = [between, is_new] {
                const auto with = std::make_shared<rounds>(between, is_new);
                return contestant{"driver, an event by hand", 1, [with] { with->by_hand(); },
                                  [with] { with->before(); }, [with] { with->after(); }};
            };
            const std::string array = is_new ? "a new array" : "the same array";
            made.emplace_back("cuda/over_wait/" + std::string(is_new ? "new" : "same") + "/" + std::to_string(between),
                              "a read behind a write with a kernel of 20 ms behind it; " + array + " each time, " +
                                  std::to_string(between) + " launches between the rounds",
                              comparison::with_peers, std::vector<make_contestant>{weir, hand});
        }
    }
    return made;
}();

/// Fewer than the driver takes before it blocks, with an event for each.
constexpr std::size_t launches = 400;

/// Launches on one stream, for which another one has waited once, or none has.
class launching : launch_setting {
public:
    explicit launching(bool is_waited_for) {
        if (is_waited_for) {
            const stream s2(on);
            launch(s1, empty_kernel, {1, 32}, inout<double>(x));
            launch(s2, empty_kernel, {1, 32}, inout<double>(x));
            launch(s1, empty_kernel, {1, 32}, inout<double>(x));
        }
        settle();
    }
    void tracked() {
        for (std::size_t i = 0; i < launches; ++i) {
            launch(s1, empty_kernel, {1, 32}, inout<double>(x));
        }
    }
    /// With so many events in turn; 0: without any.
    void by_hand(std::size_t events) {
        while (over_.size() < events) {
            over_.push_back(std::make_unique<raw_event>(*in));
        }
        for (std::size_t i = 0; i < launches; ++i) {
            r1.launch(empty_kernel, {&address});
            if (events != 0) {
                over_[i % events]->record(r1);
            }
        }
    }
    void settle() { synchronize(); }

private:
    std::vector<std::unique_ptr<raw_event>> over_;
};

template <class Turn>
make_contestant launching_as(const char* name, bool is_waited_for, Turn turn) {
    return [=] {
        const auto with = std::make_shared<launching>(is_waited_for);
        const auto settle = [with] { with->settle(); };
        return contestant{name, launches, [with, turn] { turn(*with); }, settle, settle};
    };
}

const contest event_price("cuda/over_wait/launch",
                          "a launch on a stream whose operations get no events, and on one whose operations do",
                          comparison::with_first,
                          {launching_as("Weir, never waited for", false, [](launching& with) { with.tracked(); }),
                           launching_as("Weir, waited for once", true, [](launching& with) { with.tracked(); }),
                           launching_as("driver, no events", false, [](launching& with) { with.by_hand(0); }),
                           launching_as("driver, the same event each", false, [](launching& with) { with.by_hand(1); }),
                           launching_as("driver, an event of its own each", false,
                                        [](launching& with) { with.by_hand(launches); })});

}  // namespace

}  // namespace weir::bench
