#include "random_programs/interpret.hpp"

#include <limits>
#include <memory>
#include <thread>

#include "random_programs/host_thread.hpp"
#include "random_programs/reuse_counter.hpp"

namespace random_programs {

namespace {

template <class Memory>
outcome run_on(const program& completed, const expectation& wanted, run_options options) {
    const auto all = std::make_unique<shared_state>();
    all->wanted = &wanted;
    all->options = options;
    all->streams[default_stream].emplace(weir::current_stream(options.on));
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
    // What outlives the program goes back to how it was.
    weir::set_ordering(weir::ordering_mode::automatic);
    weir::current_stream(options.on).set_ordering(std::nullopt);
    for (auto& gate : all->gate) {
        gate.reset();
    }
    if (options.racing) {
        options.on.synchronize();
    }
    host_thread<Memory>(*all).compare_all();
    options.on.synchronize();
    all->arrays.fill(weir::array());
    all->streams = {};
    all->notes.expect_all_released();
    return {all->notes.wrong(), reuses.count};
}

}  // namespace

outcome run(const program& completed, const expectation& wanted, run_options options) {
    if (completed.tight) {
        weir::memory::trim(options.on);
        weir::memory::limit(options.on, static_cast<std::size_t>(*completed.tight * tight_elements) * sizeof(double));
    }
    outcome result = options.racing ? run_on<racing_memory>(completed, wanted, options)
                                    : run_on<plain_memory>(completed, wanted, options);
    weir::memory::limit(options.on, std::numeric_limits<std::size_t>::max());
    if (completed.seed % 2 == 0) {
        weir::memory::trim(options.on);
    }
    return result;
}

}  // namespace random_programs
