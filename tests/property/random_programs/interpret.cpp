#include "random_programs/interpret.hpp"

#include <limits>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "random_programs/host_thread.hpp"
#include "random_programs/reuse_counter.hpp"
#include "weir/testing.hpp"

namespace random_programs {

namespace {

/// Until no more failures are reported.
void synchronize(const weir::device& device) {
    for (;;) {
        try {
            return device.synchronize();
        } catch (const weir::operation_error&) {  // NOLINT(bugprone-empty-catch): the operations are asked one by one
        }
    }
}

std::size_t live_bytes(std::span<const weir::device> devices) {
    std::size_t live = 0;
    for (const weir::device& device : devices) {
        live += weir::memory::stats(device).live;
    }
    return live;
}

template <class Memory>
outcome run_on(const program& completed, const expectation& wanted, run_options options) {
    const auto all = std::make_unique<shared_state>();
    all->wanted = &wanted;
    all->options = options;
    const auto of_program = std::span(options.on).first(static_cast<std::size_t>(completed.devices));
    for (std::size_t device = 0; device < of_program.size(); ++device) {
        all->streams[device].emplace(weir::current_stream(of_program[device]));
    }
    for (const int number : wanted.operations) {
        const auto failed = wanted.failed.find(number);
        if (failed != wanted.failed.end() && failed->second != number) {
            all->notes.expect_idle(number);
        }
    }
    const std::size_t live = live_bytes(of_program);
    reuse_counter reuses;
    for (const auto& phase : completed.phases) {
        if (phase.size() == 1) {
            host_thread<Memory> self(*all);
            self.run(
                phase[0], [&](const step& one) { reuses.before(one, *all); },
                [&](const step& one) { reuses.after(one, *all); });
            continue;
        }
        std::vector<std::thread> threads;
        for (const auto& steps : phase) {
            threads.emplace_back([&] {
                host_thread<Memory>(*all).run(
                    steps, [](const step&) {}, [](const step&) {});
            });
        }
        for (std::thread& one : threads) {
            one.join();
        }
    }
    // State that outlives the program is reset.
    weir::set_ordering(weir::ordering_mode::automatic);
    for (auto& gate : all->gate) {
        gate.reset();
    }
    for (const weir::device& device : of_program) {
        weir::current_stream(device).set_ordering(std::nullopt);
        if (options.racing) {
            synchronize(device);
        }
    }
    host_thread<Memory>(*all).compare_all();
    for (const weir::device& device : of_program) {
        synchronize(device);
    }
    judge<Memory>(wanted, all->notes).compare_ends(all->ends);
    all->arrays.fill(weir::array());
    all->streams = {};
    all->notes.expect_all_released();
    if (live_bytes(of_program) != live) {
        all->notes.wrong("memory was not given back");
    }
    return {all->notes.wrong(), reuses.count};
}

}  // namespace

outcome run(const program& completed, const expectation& wanted, run_options options) {
    const auto of_program = std::span(options.on).first(static_cast<std::size_t>(completed.devices));
    std::vector<std::unique_ptr<weir::testing::simulated>> hostile;
    for (std::size_t device = 0; device < of_program.size(); ++device) {
        if (completed.has_host && device > 0 && of_program[device].kind() == weir::device_kind::sim) {
            hostile.push_back(std::make_unique<weir::testing::simulated>(
                of_program[device], weir::testing::sim_settings{.engines = 1 + static_cast<int>(completed.seed % 4),
                                                                .copy_engines = 1 + static_cast<int>(device % 2),
                                                                .seed = completed.seed + device,
                                                                .adversarial = completed.seed % 3 != 0}));
        }
        if (completed.tight) {
            weir::memory::trim(of_program[device]);
            weir::memory::limit(of_program[device],
                                static_cast<std::size_t>(*completed.tight * tight_elements) * sizeof(double));
        }
    }
    outcome result = options.racing ? run_on<racing_memory>(completed, wanted, options)
                                    : run_on<plain_memory>(completed, wanted, options);
    for (const weir::device& device : of_program) {
        weir::memory::limit(device, std::numeric_limits<std::size_t>::max());
        if (completed.seed % 2 == 0) {
            weir::memory::trim(device);
        }
    }
    return result;
}

}  // namespace random_programs
