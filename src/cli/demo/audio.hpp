// The folder cli/demo/ holds the demonstration: one program on several streams, a real recording, three acts. Start with
// pipeline.cpp, the program; demo.cpp runs it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace weir::demo {

/// Sound in memory: samples between -1 and 1, channels interleaved.
struct recording {
    int rate = 0;      ///< samples a second
    int channels = 0;  ///< 1 or 2
    std::vector<float> samples;

    [[nodiscard]] std::int64_t length() const noexcept {
        return channels == 0 ? 0 : static_cast<std::int64_t>(samples.size()) / channels;
    }
    [[nodiscard]] double seconds() const noexcept {
        return rate == 0 ? 0 : static_cast<double>(length()) / static_cast<double>(rate);
    }
};

/// Reads the first `seconds` of a sound file of any format that libsndfile knows. Throws argument_error, with what
/// is wrong with the file; missing_library.
[[nodiscard]] recording read_recording(const std::filesystem::path& file, double seconds);

/// Writes a WAV file with 16-bit samples; louder ones than the format can hold are clipped. Throws error.
void write_wav(const std::filesystem::path& file, const recording& sound);

}  // namespace weir::demo
