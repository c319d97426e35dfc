#include "cli/demo/runs.hpp"

#include <algorithm>
#include <chrono>

#include "cli/demo/schedule.hpp"

namespace weir::demo {

namespace {

ordering_mode mode_of(way how) noexcept {
    return how == way::by_weir ? ordering_mode::automatic : ordering_mode::manual;
}

void wait_for(const std::vector<completion>& ends, const progress_report& progress) {
    for (std::size_t i = 0; i < ends.size(); ++i) {
        ends[i].synchronize();
        progress(static_cast<double>(i + 1) / static_cast<double>(ends.size()));
    }
}

double median(std::vector<double> of) {
    const auto middle = of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2);
    std::nth_element(of.begin(), middle, of.end());
    return *middle;
}

/// The duration of one run, in seconds.
double time_of(const recording& sound, const placement& placed, way how) {
    const ordering_scope ordering(mode_of(how));
    pipeline program(sound, placed, how == way::by_hand);
    const auto start = std::chrono::steady_clock::now();
    program.enqueue();
    for (const stream& each : program.streams()) {
        each.synchronize();
    }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

recording run(const recording& sound, const placement& placed, way how, const progress_report& progress) {
    const ordering_scope ordering(mode_of(how));
    pipeline program(sound, placed, how == way::by_hand);
    wait_for(program.enqueue(), progress);
    return program.result();
}

recording run_delayed(const recording& sound, const placement& placed, const progress_report& progress) {
    const ordering_scope ordering(ordering_mode::manual);
    pipeline program(sound, placed, false);
    replay(program, schedule_with(program, six_delays(program)), progress);
    return program.result();
}

checked_run run_checked(const recording& sound, const placement& placed, way how) {
    const check_scope check;
    recording result = run(sound, placed, how);
    return {std::move(result), check.report()};
}

recording run_traced(const recording& sound, const placement& placed, way how,
                     std::initializer_list<std::filesystem::path> files) {
    const ordering_scope ordering(mode_of(how));
    trace_scope trace(files);  // before the program allocates its memory
    pipeline program(sound, placed, how == way::by_hand);
    program.enqueue();
    recording result = program.result();
    trace.close();
    return result;
}

trace_summary count_waits(const recording& sound, const placement& placed, way how) {
    const ordering_scope ordering(mode_of(how));
    pipeline program(sound, placed, how == way::by_hand);
    testing::gate gate;
    for (const stream& each : program.streams()) {
        gate.hold(each);
    }
    const trace_scope trace;
    program.enqueue();
    const trace_summary counted = trace.summary();
    gate.open();
    static_cast<void>(program.result());
    return counted;
}

times measure(const recording& sound, const placement& placed, const progress_report& progress) {
    static_cast<void>(time_of(sound, placed, way::by_weir));  // wakes threads and fills caches
    const double first = time_of(sound, placement(1, placed.where), way::by_weir);
    const int rounds = std::clamp(static_cast<int>(1.0 / (first + 1e-3)), 3, 15);
    std::vector<double> one_stream;
    std::vector<double> by_hand;
    std::vector<double> by_weir;
    for (int round = 0; round < rounds; ++round) {
        one_stream.push_back(time_of(sound, placement(1, placed.where), way::by_weir));
        by_hand.push_back(time_of(sound, placed, way::by_hand));
        by_weir.push_back(time_of(sound, placed, way::by_weir));
        progress(static_cast<double>(round + 1) / rounds);
    }
    return {median(one_stream), median(by_hand), median(by_weir)};
}

}  // namespace weir::demo
