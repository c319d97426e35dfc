#include "cli/demo/picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "cli/demo/canvas.hpp"
#include "cli/demo/difference.hpp"
#include "cli/demo/spectrogram.hpp"

namespace weir::demo {

namespace {

constexpr colour paper{255, 255, 255};
constexpr colour ink{40, 44, 52};
constexpr colour faint{225, 228, 232};
constexpr colour wave{54, 104, 156};
constexpr colour pale{176, 190, 204};
constexpr colour wrong{226, 27, 27};

constexpr int left = 76;  // of all panels
constexpr int columns = 1400;
constexpr int rows = 224;  // of a spectrogram
constexpr float quietest = -86;
constexpr float loudest = -22;

/// From black over violet and orange to pale yellow.
colour heat(double level) {
    static constexpr std::array<colour, 6> scale = {
        {{4, 4, 20}, {56, 16, 104}, {132, 34, 122}, {214, 70, 96}, {252, 152, 90}, {252, 252, 196}}};
    const double at = std::clamp(level, 0.0, 1.0) * (static_cast<double>(scale.size()) - 1);
    const auto below = std::min(static_cast<std::size_t>(at), scale.size() - 2);
    return mix(scale[below], scale[below + 1], at - static_cast<double>(below));
}

/// What one column of the waveform shows: the range of the samples that it represents, and whether any differs.
struct column_range {
    float least = 0;
    float most = 0;
    float right_least = 0;
    float right_most = 0;
    bool differs = false;
};

column_range range_of(int column, const recording& result, const recording& right, float tolerance) {
    column_range range;
    const auto begin = static_cast<std::size_t>(column * result.length() / columns * result.channels);
    const auto end = static_cast<std::size_t>((column + 1) * result.length() / columns * result.channels);
    for (std::size_t i = begin; i < end; ++i) {
        range.least = std::min(range.least, result.samples[i]);
        range.most = std::max(range.most, result.samples[i]);
        range.right_least = std::min(range.right_least, right.samples[i]);
        range.right_most = std::max(range.right_most, right.samples[i]);
        range.differs = range.differs || differ(result.samples[i], right.samples[i], tolerance);
    }
    return range;
}

void draw_spectrogram(canvas& on, int top, const std::string& name, int rate, const spectrogram& shown,
                      const spectrogram& right) {
    on.text(left, top - 22, name, ink, 2);
    for (int column = 0; column < columns; ++column) {
        for (int row = 0; row < rows; ++row) {
            const float level = shown.at(column, row);
            const float wanted = right.at(column, row);
            colour c = heat(static_cast<double>((level - quietest) / (loudest - quietest)));
            // Mark what a listener could hear: a difference of three decibels, unless both are too quiet to hear.
            if (std::abs(level - wanted) > 3 && std::max(level, wanted) > quietest + 15) {
                c = mix(c, wrong, 0.72);
            }
            on.dot(left + column, top + rows - 1 - row, c);
        }
    }
    for (int quarter = 0; quarter <= 2; ++quarter) {
        const std::string label = fmt::format("{:.3g} kHz", quarter * rate / 4e3);
        on.text(left - 8 - canvas::text_width(label), top + (rows - 10) * (2 - quarter) / 2, label, ink);
    }
}

void draw_waveform(canvas& on, int top, int height, const std::string& name, const recording& result,
                   const recording& right, float tolerance) {
    float peak = 1e-3F;
    for (const float sample : right.samples) {
        peak = std::max(peak, std::abs(sample));
    }
    const int half = height / 2;
    const auto level_at = [&](float sample) {
        const float inside = std::clamp(sample / peak / 1.15F, -1.0F, 1.0F);
        return top + half - static_cast<int>(std::lround(inside * static_cast<float>(half)));
    };
    on.text(left, top - 22, name, ink, 2);
    on.box(left, top, columns, height, {246, 247, 249});
    for (int column = 0; column < columns; ++column) {
        const column_range range = range_of(column, result, right, tolerance);
        const auto bar = [&](float least, float most, colour c) {
            on.box(left + column, level_at(most), 1, level_at(least) - level_at(most) + 1, c);
        };
        if (range.differs) {
            bar(range.right_least, range.right_most, pale);
        }
        bar(range.least, range.most, range.differs ? wrong : wave);
        on.box(left + column, top + height + 6, 1, 10, range.differs ? wrong : faint);
    }
    on.text(left - 8 - canvas::text_width("differs"), top + height + 6, "differs", ink);
}

void draw_seconds(canvas& on, int top, double seconds) {
    const double most = seconds / 12;
    double step = 1;
    for (const double wider : {2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0}) {
        step = step < most ? wider : step;
    }
    for (double at = 0; at <= seconds; at += step) {
        const int x = left + static_cast<int>(at / seconds * columns);
        on.box(x, top, 1, 6, ink);
        const std::string label = fmt::format("{:g} s", at);
        on.text(std::min(x - canvas::text_width(label) / 2, on.width() - canvas::text_width(label) - 2), top + 10,
                label, ink);
    }
}

}  // namespace

std::string right_in_words(float tolerance) {
    return tolerance == 0 ? "bit for bit the right result" : fmt::format("the right result within {:.0e}", tolerance);
}

void draw(const std::filesystem::path& file, const std::string& title, const recording& original,
          const recording& result, const recording& right, float tolerance) {
    canvas on(left + columns + 24, 872, paper);
    const difference apart = compare(result, right, tolerance);
    on.text(left, 14, title, ink, 3);
    on.text(left, 48,
            apart.samples == 0 ? right_in_words(tolerance)
                               : fmt::format("{:.1f} % of the samples are wrong: marked in red", 100 * apart.share),
            apart.samples == 0 ? wave : wrong, 2);

    const spectrogram before = spectrogram_of(original, columns, rows);
    draw_spectrogram(on, 104, "recording", original.rate, before, before);
    draw_spectrogram(on, 368, "result: without the beats", result.rate, spectrogram_of(result, columns, rows),
                     spectrogram_of(right, columns, rows));
    draw_waveform(on, 632, 180, "result: waveform", result, right, tolerance);
    draw_seconds(on, 834, result.seconds());
    on.write_png(file);
}

void draw_acts(const std::filesystem::path& file, std::span<const act> acts, const recording& right, float tolerance) {
    constexpr int height = 110;
    constexpr int pitch = height + 52;
    canvas on(left + columns + 24, 40 + pitch * static_cast<int>(acts.size()) + 20, paper);
    int top = 40;
    for (const act& each : acts) {
        const difference apart = compare(each.result, right, tolerance);
        const std::string verdict = apart.samples == 0
                                        ? ": " + right_in_words(tolerance)
                                        : fmt::format(": {:.1f} % of the samples are wrong", 100 * apart.share);
        draw_waveform(on, top, height, each.title + verdict, each.result, right, tolerance);
        top += pitch;
    }
    draw_seconds(on, top - 24, right.seconds());
    on.write_png(file);
}

}  // namespace weir::demo
