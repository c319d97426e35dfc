// A trace of four streams on a simulated accelerator, as a page to look at: docs/timeline.md. Exits with 0 if the result
// is right. Usage: example-timeline [FOLDER]
#include <weir/weir.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string_view>
#include <vector>

namespace {

constexpr int rounds = 12;
constexpr std::size_t size = 4096;

// Pictures are loaded one after the other. The coarse and the fine part of each are computed beside each other, while the
// next one is loaded and the former ones are put together. No event and no wait between streams is written.
float program() {
    using namespace weir;
    const stream load(sim(0), {.name = "load"}), coarse(sim(0), {.name = "coarse"}), fine(sim(0), {.name = "fine"}),
        blend(sim(0), {.name = "blend"});
    std::array<array, 2> pictures = {empty(size, dtype::float32, load), empty(size, dtype::float32, load)};
    array result = empty(size, dtype::float32, blend);
    const auto half = [](auto i, auto from, auto to) { to[i] = from[i] / 2; };
    const auto blend_parts = [](auto i, auto low, auto high, auto to) { to[i] = low[i] + high[i]; };
    const auto add = [](auto i, auto a, auto b, auto c, auto sum) { sum[i] += a[i] + b[i] + c[i]; };

    fill(on(blend).label("clear"), result, 0);
    std::vector<array> done;
    std::vector<completion> ends;
    for (int round = 0; round < rounds; ++round) {
        if (round >= 3) {
            ends[static_cast<std::size_t>(round - 3)].synchronize();  // the host runs no further ahead
        }
        array& picture = pictures[static_cast<std::size_t>(round % 2)];
        array low = empty(size, dtype::float32, coarse);
        array high = empty(size, dtype::float32, fine);
        done.push_back(empty(size, dtype::float32, blend));
        fill(on(load).label("load"), picture, round);
        parallel_for(on(coarse).label("coarse part"), size, half, in<float>(picture), out<float>(low));
        parallel_for(on(fine).label("fine part"), size, half, in<float>(picture), out<float>(high));
        ends.push_back(parallel_for(on(blend).label("blend"), size, blend_parts, in<float>(low), in<float>(high),
                                    out<float>(done.back())));
        if (done.size() == 3) {
            parallel_for(on(blend).label("add"), size, add, in<float>(done[0]), in<float>(done[1]), in<float>(done[2]),
                         inout<float>(result));
            done.clear();
        }
    }
    return result.read<float>()[0];
}

}  // namespace

int main(int count, char** arguments) {
    using namespace std::chrono_literals;
    const std::filesystem::path folder = count > 1 ? arguments[1] : ".";
    weir::trace_scope trace(
        {folder / "weir-timeline.html", folder / "weir-timeline.json", folder / "weir-timeline.weirlog"});
    // How long an operation takes, by its label: "load", "coarse part", and so on. What has none is a copy to the host.
    const auto cost = [](const weir::testing::sim_operation& what) -> std::chrono::nanoseconds {
        const std::string_view label = what.from.label == nullptr ? "" : what.from.label;
        return label == "coarse part" ? 9ms
               : label == "fine part" ? 7ms
               : label == "load"      ? 5ms
               : label == "add"       ? 2ms
                                      : 4ms;
    };
    const weir::testing::simulated device(weir::sim(0), {.engines = 4, .virtual_clock = true, .cost = cost});
    const float sum = program();
    trace.close();
    return sum == 66.0F ? 0 : 1;
}
