#pragma once

#include <cstdint>
#include <vector>

#include "cli/demo/audio.hpp"

namespace weir::demo {

/// The loudness of a recording at each time and frequency.
struct spectrogram {
    int columns = 0;  ///< points in time, evenly spread over the recording
    int rows = 0;     ///< frequencies, from 0 to half the sample rate
    /// (columns, rows); 0 is a sine wave of the largest amplitude that the format can hold
    std::vector<float> decibels;

    [[nodiscard]] float at(int column, int row) const noexcept {
        return decibels[static_cast<std::size_t>(column) * static_cast<std::size_t>(rows) +
                        static_cast<std::size_t>(row)];
    }
};

/// The spectrogram of the first channel. Blocks while it computes, with transforms of Weir.
[[nodiscard]] spectrogram spectrogram_of(const recording& sound, int columns, int rows);

}  // namespace weir::demo
