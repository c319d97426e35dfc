#include "contest.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <iterator>
#include <limits>
#include <map>
#include <stdexcept>
#include <thread>
#include <utility>

namespace weir::bench {

namespace {

struct entry {
    std::string what;
    comparison ratios = comparison::with_peers;
    std::vector<make_contestant> own;
    std::vector<make_contestant> peers;
    std::vector<std::string> names;   ///< of the contestants that take part
    std::vector<std::string> absent;  ///< the contestants that do not, with the reason
};

std::map<std::string, entry, std::less<>>& entries() {
    static std::map<std::string, entry, std::less<>> all;
    return all;
}

entry& entry_of(std::string_view name) { return entries()[std::string(name)]; }

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

/// Nanoseconds of the wall clock, and of all threads of the process together; and how fast the processor was meanwhile.
struct reading {
    double wall = 0;
    double processor = 0;
    double pace = 0;
};

double since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
}

/// Nanoseconds that the processor takes for a fixed number of simple instructions, which do not wait for each other. If another
/// program uses the other half of the core (simultaneous multithreading), it takes up to twice as long. So does everything that is
/// bound by instructions, but not code that waits for a device, as a driver does.
double pace_now() {
    double best = std::numeric_limits<double>::infinity();
    for (int tries = 0; tries < 3; ++tries) {
        std::array<std::uint64_t, 8> in{};
        const auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < 500; ++i) {
            for (std::uint64_t& one : in) {
                ++one;
                asm volatile("" : "+r"(one));  // keeps the compiler from merging the steps
            }
        }
        best = std::min(best, since(start));
    }
    return best;
}

/// The shortest time measured in this process.
double best_pace = std::numeric_limits<double>::infinity();
/// A round that is slower by more than this is disturbed.
constexpr double disturbed = 1.15;
/// With fewer undisturbed rounds than this, nothing is reported.
constexpr std::size_t enough_rounds = 3;

double processor_now() {
    std::timespec used{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return static_cast<double>(used.tv_sec) * 1e9 + static_cast<double>(used.tv_nsec);
}

/// One turn: nanoseconds for each operation.
reading measure(const contestant& one) {
    one.before();
    const double pace = pace_now();
    const double processor = processor_now();
    const auto start = std::chrono::steady_clock::now();
    one.turn();
    const double wall = since(start);
    const auto end = std::chrono::steady_clock::now();
    const double pace_after = pace_now();
    const double not_its_own = since(end);
    // The kernel accounts for other threads when they stop, or now and then: give them the time to fall asleep.
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const auto operations = static_cast<double>(one.operations);
    const reading found{wall / operations, (processor_now() - processor - not_its_own) / operations,
                        std::max(pace, pace_after)};
    one.after();
    best_pace = std::min({best_pace, pace, pace_after});
    return found;
}

std::string wall_counter(const std::string& name) { return name + " ns"; }
std::string processor_counter(const std::string& name) { return name + " processor ns"; }
std::string ratio_counter(const std::string& name) { return name + " ratio"; }
std::string processor_ratio_counter(const std::string& name) { return name + " processor ratio"; }
std::string quiet_ratio_counter(const std::string& name) { return name + " undisturbed ratio"; }

/// One repetition: rounds in which each contestant has one turn. Medians over the rounds, that of the ratio as well.
void compete(benchmark::State& state, entry& what) {
    std::vector<contestant> all;
    what.names.clear();
    what.absent.clear();
    for (const auto* makers : {&what.own, &what.peers}) {
        for (const make_contestant& make : *makers) {
            try {
                all.push_back(make());
                what.names.push_back(all.back().name);
            } catch (const std::runtime_error& why) {
                what.absent.emplace_back(why.what());
            }
        }
    }
    for (const contestant& one : all) {
        measure(one);  // warms up
    }
    struct series {
        std::vector<double> wall, processor, ratio, processor_ratio, pace;
    };
    std::vector<series> seen(all.size());
    std::vector<reading> round(all.size());
    bool forwards = true;
    for (auto _ : state) {
        // Forward, then backward, so that no contestant always follows the same one.
        for (std::size_t i = 0; i < all.size(); ++i) {
            const std::size_t whose = forwards ? i : all.size() - 1 - i;
            round[whose] = measure(all[whose]);
        }
        forwards = !forwards;
        for (std::size_t i = 0; i < all.size(); ++i) {
            seen[i].wall.push_back(round[i].wall);
            seen[i].processor.push_back(round[i].processor);
            const bool peers = what.ratios == comparison::with_peers;
            const reading& above = round[peers ? 0 : i];
            const reading& below = round[peers ? i : 0];
            seen[i].ratio.push_back(above.wall / below.wall);
            seen[i].processor_ratio.push_back(above.processor / below.processor);
            seen[i].pace.push_back(std::max(above.pace, below.pace));
        }
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
        state.counters[wall_counter(all[i].name)] = median(seen[i].wall);
        state.counters[processor_counter(all[i].name)] = median(seen[i].processor);
        state.counters[ratio_counter(all[i].name)] = median(seen[i].ratio);
        state.counters[processor_ratio_counter(all[i].name)] = median(seen[i].processor_ratio);
        std::vector<double> quiet;
        for (std::size_t n = 0; n < seen[i].ratio.size(); ++n) {
            if (seen[i].pace[n] <= disturbed * best_pace) {
                quiet.push_back(seen[i].ratio[n]);
            }
        }
        if (quiet.size() >= enough_rounds) {
            state.counters[quiet_ratio_counter(all[i].name)] = median(quiet);
        }
    }
}

/// Prints a table for each contest: medians over the repetitions.
class table final : public benchmark::BenchmarkReporter {
public:
    bool ReportContext(const Context& /*context*/) override { return true; }

    void ReportRuns(const std::vector<Run>& runs) override {
        std::vector<const Run*> repetitions;
        for (const Run& run : runs) {
            if (run.run_type == Run::RT_Iteration) {
                repetitions.push_back(&run);
            }
        }
        if (!repetitions.empty()) {
            print(repetitions, entry_of(repetitions.front()->run_name.function_name));
        }
    }

private:
    static void print(const std::vector<const Run*>& repetitions, const entry& what) {
        std::printf("\n%s: %s\n%-42s %10s %22s %11s %22s %12s\n", repetitions.front()->run_name.function_name.c_str(),
                    what.what.c_str(),
                    what.ratios == comparison::with_peers ? "  ratio: Weir / this" : "  ratio: this / first", "wall ns",
                    "ratio [least .. most]", "processor", "ratio [least .. most]", "undisturbed");
        for (const std::string& name : what.names) {
            const auto values = [&](const std::string& counter) {
                std::vector<double> found;
                std::transform(repetitions.begin(), repetitions.end(), std::back_inserter(found),
                               [&](const Run* run) { return run->counters.at(counter).value; });
                return found;
            };
            std::printf("  %-40s", name.c_str());
            print(values(wall_counter(name)), values(ratio_counter(name)));
            print(values(processor_counter(name)), values(processor_ratio_counter(name)));
            print_undisturbed(repetitions, quiet_ratio_counter(name));
            std::printf("\n");
        }
        for (const std::string& why : what.absent) {
            std::printf("  left out: %s\n", why.c_str());
        }
        std::fflush(stdout);
    }

    /// The ratio in those rounds alone in which no other program had a part of the core.
    static void print_undisturbed(const std::vector<const Run*>& repetitions, const std::string& counter) {
        std::vector<double> found;
        for (const Run* const run : repetitions) {
            if (const auto one = run->counters.find(counter); one != run->counters.end()) {
                found.push_back(one->second.value);
            }
        }
        if (found.empty()) {
            std::printf(" %12s", "-");
        } else {
            std::printf(" %12.3f", median(found));
        }
    }

    static void print(const std::vector<double>& nanoseconds, const std::vector<double>& ratios) {
        const auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
        std::printf(" %10.1f  %6.3f [%5.3f .. %5.3f]", median(nanoseconds), median(ratios), *least, *most);
    }
};

}  // namespace

contest::contest(std::string_view name, std::string_view what, comparison ratios,
                 std::vector<make_contestant> contestants) {
    entry& made = entry_of(name);
    made.what = what;
    made.ratios = ratios;
    made.own = std::move(contestants);
}

peer::peer(std::string_view contest, make_contestant make) { entry_of(contest).peers.push_back(std::move(make)); }

}  // namespace weir::bench

int main(int argc, char** argv) {
    // Before the user's arguments, so that the user's win.
    std::string repetitions = "--benchmark_repetitions=7";
    std::string time = "--benchmark_min_time=0.3";
    std::vector<char*> arguments(argv, argv + argc);
    arguments.insert(arguments.begin() + 1, {repetitions.data(), time.data()});
    arguments.push_back(nullptr);
    int count = argc + 2;
    benchmark::Initialize(&count, arguments.data());
    if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) {
        return 1;
    }
    for (auto& one : weir::bench::entries()) {
        weir::bench::entry& what = one.second;
        benchmark::RegisterBenchmark(one.first.c_str(), [&what](benchmark::State& state) {
            weir::bench::compete(state, what);
        })->UseRealTime();
    }
    weir::bench::table reporter;
    benchmark::RunSpecifiedBenchmarks(&reporter);
    benchmark::Shutdown();
    return 0;
}
