#pragma once

#include <cstdint>

#include "cli/demo/audio.hpp"

namespace weir::demo {

/// How a recording is cut: into frames that overlap, and into blocks of frames, which are the units that the pipeline
/// works on.
///
/// Silence is added before and after, so that as many frames cover the first and the last sample as all others.
struct layout {
    static constexpr std::int64_t frames_per_block = 32;
    static constexpr std::int64_t overlap = 8;  ///< number of frames that cover each sample

    int channels = 1;
    int rate = 0;
    std::int64_t length = 0;  ///< samples of the recording, for each channel
    std::int64_t frame = 0;   ///< samples of a frame: a power of two, about an eighth of a second
    std::int64_t blocks = 0;

    /// Throws argument_error if the recording is shorter than one frame.
    explicit layout(const recording& sound);

    [[nodiscard]] std::int64_t hop() const noexcept { return frame / overlap; }
    [[nodiscard]] std::int64_t bins() const noexcept { return frame / 2 + 1; }
    /// Distance between the starts of successive blocks, in samples.
    [[nodiscard]] std::int64_t step() const noexcept { return frames_per_block * hop(); }
    /// Samples by which the last frames of a block reach into the next one.
    [[nodiscard]] std::int64_t tail() const noexcept { return frame - hop(); }
    /// Number of samples that the frames of one block cover.
    [[nodiscard]] std::int64_t span() const noexcept { return step() + tail(); }
    /// Number of samples including the silence before and after.
    [[nodiscard]] std::int64_t padded() const noexcept { return blocks * step() + tail(); }
    /// Frames of one block in all channels: the batch of its transforms.
    [[nodiscard]] std::int64_t batch() const noexcept { return channels * frames_per_block; }
};

/// The recording with silence before and after it, padded() samples.
[[nodiscard]] std::vector<float> with_silence(const recording& sound, const layout& cut);

/// The recording made of the blocks' results, blocks * step() samples one after the other: without that silence.
[[nodiscard]] recording without_silence(std::vector<float> result, const layout& cut);

}  // namespace weir::demo
