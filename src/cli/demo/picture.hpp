#pragma once

#include <filesystem>
#include <string>

#include "cli/demo/audio.hpp"

namespace weir::demo {

/// Draws the recording, the result and where it differs from the right one, in red, into a PNG file. Throws error.
void draw(const std::filesystem::path& file, const std::string& title, const recording& original,
          const recording& result, const recording& right);

}  // namespace weir::demo
