#include "cli/demo/spectrogram.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include "cli/demo/layout.hpp"
#include "weir/weir.hpp"

namespace weir::demo {

spectrogram spectrogram_of(const recording& sound, int columns, int rows) {
    const layout cut(sound);
    const std::int64_t n = cut.frame;
    const std::int64_t points = columns;
    array frames = empty({columns, n}, dtype::float32);
    {
        const host_view<float> samples = frames.write<float>();
        for (std::int64_t column = 0; column < columns; ++column) {
            const std::int64_t first = (2 * column + 1) * sound.length() / (2 * points) - n / 2;
            for (std::int64_t k = 0; k < n; ++k) {
                const std::int64_t at = first + k;
                const double hann =
                    0.5 - 0.5 * std::cos(2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n));
                const float sample = at < 0 || at >= sound.length()
                                         ? 0.0F
                                         : sound.samples[static_cast<std::size_t>(at * sound.channels)];
                samples[static_cast<std::size_t>(column * n + k)] = sample * static_cast<float>(hann);
            }
        }
    }
    const array spectra = fft::rfft(frames);
    const host_view<const std::complex<float>> bins = spectra.read<std::complex<float>>();

    spectrogram result{columns, rows, {}};
    result.decibels.reserve(static_cast<std::size_t>(columns) * static_cast<std::size_t>(rows));
    for (std::int64_t column = 0; column < columns; ++column) {
        for (std::int64_t row = 0; row < rows; ++row) {
            // The loudest of the bins that share this row.
            const std::int64_t begin = row * cut.bins() / rows;
            const std::int64_t end = std::max(begin + 1, (row + 1) * cut.bins() / rows);
            float loudest = 0;
            for (std::int64_t bin = begin; bin < end; ++bin) {
                loudest = std::max(loudest, std::abs(bins[static_cast<std::size_t>(column * cut.bins() + bin)]));
            }
            // The magnitude of a sine wave of amplitude 1 under this window.
            const float full = static_cast<float>(n) / 4;
            result.decibels.push_back(20 * std::log10(loudest / full + 1e-7F));
        }
    }
    return result;
}

}  // namespace weir::demo
