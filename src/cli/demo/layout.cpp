#include "cli/demo/layout.hpp"

#include <algorithm>
#include <bit>
#include <string>

#include "weir/error.hpp"

namespace weir::demo {

namespace {

std::ptrdiff_t in_memory(std::int64_t samples, const layout& cut) { return samples * cut.channels; }

}  // namespace

layout::layout(const recording& sound) : channels(sound.channels), rate(sound.rate), length(sound.length()) {
    // An eighth of a second separates tones from beats; at least the length that the overlap needs.
    frame = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(std::max(rate / 7, 64))));
    if (length < frame) {
        throw argument_error("the recording is too short: it has " + std::to_string(length) + " samples, and " +
                             std::to_string(frame) + " are needed at " + std::to_string(rate) + " a second");
    }
    blocks = (tail() + length + step() - 1) / step();
}

std::vector<float> with_silence(const recording& sound, const layout& cut) {
    std::vector<float> all(static_cast<std::size_t>(in_memory(cut.padded(), cut)));
    std::copy(sound.samples.begin(), sound.samples.end(), all.begin() + in_memory(cut.tail(), cut));
    return all;
}

recording without_silence(std::vector<float> result, const layout& cut) {
    result.erase(result.begin(), result.begin() + in_memory(cut.tail(), cut));
    result.resize(static_cast<std::size_t>(in_memory(cut.length, cut)));
    return {cut.rate, cut.channels, std::move(result)};
}

}  // namespace weir::demo
