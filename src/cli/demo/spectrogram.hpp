#pragma once

#include <cstdint>
#include <vector>

#include "cli/demo/audio.hpp"

namespace weir::demo {

/// How loud a recording is at each time and frequency.
struct spectrogram {
    int columns = 0;              ///< points in time, evenly spread over the recording
    int rows = 0;                 ///< frequencies, from 0 to half the sample rate
    std::vector<float> decibels;  ///< (columns, rows); 0 is a sine wave as loud as the format can hold

    [[nodiscard]] float at(int column, int row) const noexcept {
        return decibels[static_cast<std::size_t>(column) * static_cast<std::size_t>(rows) +
                        static_cast<std::size_t>(row)];
    }
};

/// Of the first channel. Blocks while it computes, with transforms of Weir.
[[nodiscard]] spectrogram spectrogram_of(const recording& sound, int columns, int rows);

}  // namespace weir::demo
