// A trace of four streams on a simulated accelerator, as a page to look at: docs/timeline.md. Exits with 0 if the result
// is right. Usage: example-timeline [FOLDER]
#include <weir/weir.hpp>

#include <array>
#include <cstddef>
#include <filesystem>

namespace {

constexpr std::size_t size = 1 << 18;

/// A picture after the other is loaded, and its coarse and its fine parts are computed beside each other, while the
/// next picture is loaded and the former one is put together. No event, no wait: Weir finds what must wait for what.
float program() {
    using namespace weir;
    const stream load(sim(0), {.name = "load"}), coarse(sim(0), {.name = "coarse"}), fine(sim(0), {.name = "fine"}),
        blend(sim(0), {.name = "blend"});
    const std::array<array, 2> pictures = {empty(size, dtype::float32, load), empty(size, dtype::float32, load)};
    const array result = zeros(size, dtype::float32, blend);
    const auto half = [](auto i, auto from, auto to) { to[i] = from[i] / 2; };
    const auto add = [](auto i, auto a, auto b, auto sum) { sum[i] += a[i] + b[i]; };

    for (int round = 0; round < 12; ++round) {
        const auto picture = pictures[static_cast<std::size_t>(round % 2)].view<float>();
        const array low = empty(size, dtype::float32, coarse);
        const array high = empty(size, dtype::float32, fine);
        fill(on(load).label("load"), picture.base(), round);
        parallel_for(on(coarse).label("coarse"), size, half, in(picture), out(low.view<float>()));
        parallel_for(on(fine).label("fine"), size, half, in(picture), out(high.view<float>()));
        parallel_for(on(blend).label("blend"), size, add, in(low.view<float>()), in(high.view<float>()),
                     inout(result.view<float>()));
    }
    return result.read<float>()[0];
}

}  // namespace

int main(int count, char** arguments) {
    const std::filesystem::path folder = count > 1 ? arguments[1] : std::filesystem::temp_directory_path();
    weir::trace_scope trace(
        {folder / "weir-timeline.html", folder / "weir-timeline.json", folder / "weir-timeline.weirlog"});
    const weir::testing::simulated device(weir::sim(0), {.engines = 4, .seed = 1, .virtual_clock = true});
    const float sum = program();
    trace.close();
    return sum == 66.0F ? 0 : 1;
}
