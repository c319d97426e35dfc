#include "cli/demo/kernels.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace weir::demo {

namespace {

constexpr double memory_seconds = 0.3;    ///< how long a tone is remembered
constexpr double neighbourhood_hz = 125;  ///< range of frequencies within which a beat is looked for
constexpr float silence = 1e-9F;          ///< avoids 0/0

float cube(float x) noexcept { return x * x * x; }

}  // namespace

kernels::kernels(const layout& cut)
    : cut_(cut),
      memory_(static_cast<float>(std::exp(-static_cast<double>(cut.hop()) / cut.rate / memory_seconds))),
      neighbours_(
          std::max<std::int64_t>(1, std::llround(neighbourhood_hz * static_cast<double>(cut.frame) / cut.rate))) {
    const auto n = static_cast<double>(cut.frame);
    for (std::int64_t k = 0; k < cut.frame; ++k) {
        // The square of this is a Hann window; `overlap` of them, shifted by a hop each, add up to overlap / 2.
        const double fade = std::sin(std::numbers::pi * static_cast<double>(k) / n);
        fade_.push_back(static_cast<float>(fade));
        fade_back_.push_back(static_cast<float>(fade * 2 / static_cast<double>(layout::overlap)));
    }
}

void kernels::window(std::size_t index, std::span<const float> samples, std::span<float> frames) const {
    const auto frame = static_cast<std::int64_t>(index);
    const std::int64_t channel = frame / layout::frames_per_block;
    const std::int64_t first = frame % layout::frames_per_block * cut_.hop();
    const float* from = samples.data() + first * cut_.channels + channel;
    float* to = frames.data() + frame * cut_.frame;
    for (const float fade : fade_) {
        *to++ = *from * fade;
        from += cut_.channels;
    }
}

void kernels::keep_tones(std::size_t index, std::span<std::complex<float>> spectrum, std::span<float> level) const {
    const auto channel = static_cast<std::int64_t>(index);
    const std::int64_t bins = cut_.bins();
    const std::int64_t reach = this->reach();
    float* const tone = level.data() + channel * bins;
    std::vector<float> magnitude(static_cast<std::size_t>(bins + 2 * reach));  // with `reach` zeros on either side
    float* const here = magnitude.data() + reach;
    for (std::int64_t frame = 0; frame < layout::frames_per_block; ++frame) {
        std::complex<float>* const row = spectrum.data() + (channel * layout::frames_per_block + frame) * bins;
        for (std::int64_t k = 0; k < bins; ++k) {
            here[k] = std::sqrt(row[k].real() * row[k].real() + row[k].imag() * row[k].imag());
            tone[k] = memory_ * tone[k] + (1 - memory_) * here[k];
        }
        float around = 0;  // sum of the magnitudes from k - reach to k + reach
        for (std::int64_t k = -reach; k < reach; ++k) {
            around += here[k];
        }
        const float share = 1.0F / static_cast<float>(2 * reach + 1);
        for (std::int64_t k = 0; k < bins; ++k) {
            around += here[k + reach];
            const float steady = cube(tone[k]);
            const float beat = cube(std::max(around, 0.0F) * share);
            row[k] *= steady / (steady + beat + cube(silence) * silence);
            around -= here[k - reach];
        }
    }
}

void kernels::overlap_add(std::size_t index, std::span<const float> frames, std::span<float> part,
                          std::span<float> next) const {
    const auto channel = static_cast<std::int64_t>(index);
    const std::int64_t step = cut_.step();
    for (std::int64_t frame = 0; frame < layout::frames_per_block; ++frame) {
        const float* const from = frames.data() + (channel * layout::frames_per_block + frame) * cut_.frame;
        const std::int64_t begin = frame * cut_.hop();
        const auto add = [&](std::int64_t first, std::int64_t last, std::span<float> to, std::int64_t shift) {
            for (std::int64_t k = first; k < last; ++k) {
                to[static_cast<std::size_t>((k + shift) * cut_.channels + channel)] +=
                    from[k] * fade_back_[static_cast<std::size_t>(k)];
            }
        };
        const std::int64_t inside = std::min(cut_.frame, step - begin);
        add(0, inside, part, begin);
        add(inside, cut_.frame, next, begin - step);
    }
}

}  // namespace weir::demo
