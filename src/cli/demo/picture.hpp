#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "cli/demo/audio.hpp"

namespace weir::demo {

/// Describes in words a result that does not differ from the right one.
[[nodiscard]] std::string right_in_words(float tolerance);

/// Draws the recording, the result and, in red, where it differs from the right one, into a PNG file. `tolerance` is
/// that of `differ`. Throws error.
void draw(const std::filesystem::path& file, const std::string& title, const recording& original,
          const recording& result, const recording& right, float tolerance);

/// One result and what to call it.
struct act {
    std::string title;
    recording result;
};

/// Draws the waveforms of several results below each other, with differences from the right one in red. Throws error.
void draw_acts(const std::filesystem::path& file, std::span<const act> acts, const recording& right, float tolerance);

}  // namespace weir::demo
