#include "cli/demo/schedule.hpp"

#include <algorithm>
#include <array>
#include <deque>

#include "weir/completion.hpp"
#include "weir/testing.hpp"

namespace weir::demo {

namespace {

constexpr std::array all_stages = {stage::load,       stage::analyse, stage::filter,
                                   stage::synthesise, stage::add,     stage::store};

std::size_t stream_index(const pipeline& of, const step& s) {
    const std::vector<stream>& all = of.streams();
    const auto same = [&](const stream& each) { return each == of.stream_of(s.which, s.block); };
    return static_cast<std::size_t>(std::find_if(all.begin(), all.end(), same) - all.begin());
}

}  // namespace

std::vector<delay> six_delays(const pipeline& of) {
    constexpr std::array late = {stage::filter,  stage::load,       stage::add,
                                 stage::analyse, stage::synthesise, stage::store};
    const std::int64_t blocks = std::max<std::int64_t>(of.blocks() / 20, 3);
    std::vector<delay> delays;
    for (std::size_t i = 0; i < late.size(); ++i) {
        const auto from =
            static_cast<std::int64_t>(2 * i + 1) * of.blocks() / static_cast<std::int64_t>(2 * late.size() + 1);
        delays.push_back({stream_index(of, {late[i], from}), from, blocks});
    }
    return delays;
}

std::vector<step> schedule_with(const pipeline& of, const std::vector<delay>& delays) {
    std::vector<step> schedule;
    std::vector<step> waiting;  // steps that wait for the end of the delay of `late`
    const delay* late = nullptr;
    const auto end_delay = [&] {
        schedule.insert(schedule.end(), waiting.begin(), waiting.end());
        waiting.clear();
        late = nullptr;
    };
    for (std::int64_t block = 0; block < of.blocks(); ++block) {
        if (late != nullptr && block >= late->from + late->blocks) {
            end_delay();
        }
        for (const delay& each : delays) {
            if (late == nullptr && each.from == block) {
                late = &each;
            }
        }
        for (const stage which : all_stages) {
            const step next{which, block};
            const bool waits = late != nullptr && stream_index(of, next) == late->stream;
            (waits ? waiting : schedule).push_back(next);
        }
    }
    end_delay();
    return schedule;
}

void replay(pipeline& program, const std::vector<step>& schedule, const std::function<void(double done)>& progress) {
    struct held_step {
        testing::gate gate;
        completion end;
    };
    std::deque<held_step> held;  // in the order in which they are enqueued: a gate cannot be moved
    for (std::int64_t block = 0; block < program.blocks(); ++block) {
        for (const stage which : all_stages) {
            held_step& next = held.emplace_back();
            next.gate.hold(program.stream_of(which, block));
            next.end = program.enqueue(which, block);
        }
    }
    std::size_t done = 0;
    for (const step& s : schedule) {
        held_step& next = held[static_cast<std::size_t>(s.block) * stages + static_cast<std::size_t>(s.which)];
        next.gate.open();
        next.end.synchronize();
        progress(static_cast<double>(++done) / static_cast<double>(schedule.size()));
    }
}

}  // namespace weir::demo
