// Contention: what a launch, a recorded event and a wait cost when 1, 8 or 32 host threads make them at once, each on two streams of its own,
// with Weir and by hand.
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include "contest.hpp"
#include "cuda_device.hpp"

namespace weir::bench {

namespace {

/// For each thread: fewer than the driver takes before it blocks.
constexpr std::size_t rounds = 200;

struct setting : launch_setting {
    stream s2{on};
    raw_stream r2{*in};
    raw_event e{*in};

    void tracked() {
        for (std::size_t i = 0; i < rounds; ++i) {
            launch(s1, empty_kernel, {1, 32}, inout<double>(x));
            s2.wait(s1.record());
        }
    }
    void by_hand() const {
        make_current(*in);
        void* argument = address;
        for (std::size_t i = 0; i < rounds; ++i) {
            r1.launch(empty_kernel, {&argument});
            e.record(r1);
            e.hold(r2);
        }
    }
    void synchronize() const {
        launch_setting::synchronize();
        s2.synchronize();
        r2.synchronize();
    }
};

template <class Turn>
make_contestant contestant_of(const char* name, std::size_t threads, Turn turn) {
    return [=] {
        const auto with = std::make_shared<std::vector<std::unique_ptr<setting>>>();
        for (std::size_t i = 0; i < threads; ++i) {
            with->push_back(std::make_unique<setting>());
        }
        const auto settle = [with] {
            for (const std::unique_ptr<setting>& one : *with) {
                one->synchronize();
            }
        };
        const auto all_at_once = [with, turn] {
            std::vector<std::jthread> running;
            for (const std::unique_ptr<setting>& one : *with) {
                running.emplace_back([&one, turn] { turn(*one); });
            }
        };
        return contestant{name, threads * rounds, all_at_once, settle, settle};
    };
}

std::vector<make_contestant> contestants(std::size_t threads) {
    return {contestant_of("Weir", threads, [](setting& with) { with.tracked(); }),
            contestant_of("driver, by hand", threads, [](const setting& with) { with.by_hand(); })};
}

const contest one("cuda/threads/1", "launch, record, wait: one thread", comparison::with_peers, contestants(1));
const contest eight("cuda/threads/8", "launch, record, wait: 8 threads at once, each with its own streams",
                    comparison::with_peers, contestants(8));
const contest many("cuda/threads/32", "launch, record, wait: 32 threads at once, each with its own streams",
                   comparison::with_peers, contestants(32));

}  // namespace

}  // namespace weir::bench
