#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "cli/demo/audio.hpp"

namespace weir::demo {

/// Draws the recording, the result and where it differs from the right one, in red, into a PNG file. Throws error.
void draw(const std::filesystem::path& file, const std::string& title, const recording& original,
          const recording& result, const recording& right);

/// One result and what to call it.
struct act {
    std::string title;
    recording result;
};

/// Draws the waveforms of several results below each other, what differs from the right one in red. Throws error.
void draw_acts(const std::filesystem::path& file, std::span<const act> acts, const recording& right);

}  // namespace weir::demo
