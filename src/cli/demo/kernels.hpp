#pragma once

#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cli/demo/layout.hpp"

namespace weir::demo {

/// The computations, without any order: plain functions on plain memory. The streams of pipeline.cpp and the loop
/// of reference.cpp call the same functions, so that their results must agree to the last bit.
///
/// Together they remove the beats from music. In a spectrogram a steady tone is a line along time, and a beat is a line along
/// frequency. So a bin that is strong among its neighbours in time, and not among those in frequency, belongs to
/// a tone (D. FitzGerald, "Harmonic/percussive separation using median filtering", DAFx 2010; here with running means in
/// place of medians, so that the music can be processed as it arrives).
class kernels {
public:
    explicit kernels(const layout& cut);

    /// Cuts frame `index` of a block (channel by channel) out of its samples, and fades it in and out.
    /// samples: (span, channels); frames: (batch, frame).
    void window(std::size_t index, std::span<const float> samples, std::span<float> frames) const;

    /// Keeps only the tones in the spectra of channel `index`. spectrum: (batch, bins); level: (channels, bins), the running mean of
    /// each bin's magnitude, carried from block to block.
    void keep_tones(std::size_t index, std::span<std::complex<float>> spectrum, std::span<float> level) const;

    /// Fades the frames of channel `index` in and out again and adds them at their positions. frames: (batch, frame); part and next:
    /// (step, channels) samples of this block and of the one after it.
    void overlap_add(std::size_t index, std::span<const float> frames, std::span<float> part,
                     std::span<float> next) const;

    /// Moves sample `i` of a block out of the sum, which is cleared for the next block that uses this memory.
    static void store(std::size_t i, std::span<float> part, std::span<float> result) {
        result[i] = part[i];
        part[i] = 0;
    }

    /// Parameters for kernels of other devices that compute the same.
    [[nodiscard]] const std::vector<float>& fade() const noexcept { return fade_; }
    [[nodiscard]] const std::vector<float>& fade_back() const noexcept { return fade_back_; }
    [[nodiscard]] float memory() const noexcept { return memory_; }
    [[nodiscard]] std::int64_t reach() const noexcept { return std::min(neighbours_, cut_.bins() - 1); }

private:
    layout cut_;
    std::vector<float> fade_;       ///< before the transform: the square root of a Hann window
    std::vector<float> fade_back_;  ///< after it: the same, divided by the sum of all frames that cover a sample
    float memory_ = 0;              ///< of the running mean, from frame to frame
    std::int64_t neighbours_ = 0;   ///< bins on either side that the mean along the frequency includes
};

}  // namespace weir::demo
