#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "cli/demo/audio.hpp"

namespace weir::demo {

/// How far two recordings of the same length are apart.
struct difference {
    std::int64_t samples = 0;  ///< that are not the same to the last bit
    double share = 0;          ///< of all, from 0 to 1
};

[[nodiscard]] difference compare(const recording& result, const recording& right);

/// Draws the recording, the result and where it differs from the right one, in red, into a PNG file. Throws error.
void draw(const std::filesystem::path& file, const std::string& title, const recording& original, const recording& result,
          const recording& right);

}  // namespace weir::demo
