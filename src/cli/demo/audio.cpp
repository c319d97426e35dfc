#include "cli/demo/audio.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>

#include "cli/demo/sound_library.hpp"
#include "weir/error.hpp"

namespace weir::demo {

namespace {

struct close_file {
    void operator()(sound_library::opaque_file* file) const { sounds().close(file); }
};
using open_file = std::unique_ptr<sound_library::opaque_file, close_file>;

/// Distinguishes errors for which libsndfile only reports "System error."
void expect_readable(const std::filesystem::path& file) {
    std::error_code ignored;
    if (!std::filesystem::exists(file, ignored)) {
        throw argument_error(file.string() + ": there is no such file");
    }
    if (std::filesystem::is_directory(file, ignored)) {
        throw argument_error(file.string() + " is a directory; name a sound file in it");
    }
    if (!std::ifstream(file)) {
        throw argument_error(file.string() + " cannot be read: " + std::generic_category().message(errno));
    }
    if (std::filesystem::is_regular_file(file, ignored) && std::filesystem::file_size(file, ignored) == 0) {
        throw argument_error(file.string() + " is empty");
    }
}

}  // namespace

recording read_recording(const std::filesystem::path& file, double seconds) {
    const sound_library& library = sounds();
    expect_readable(file);
    sound_library::file_info info{};
    const open_file in(library.open(file.c_str(), sound_library::mode_read, &info));
    if (!in) {
        throw argument_error(file.string() +
                             " is no sound file that libsndfile can read: " + library.error_text(nullptr));
    }
    if (info.channels < 1 || info.channels > 2) {
        throw argument_error(file.string() + " has " + std::to_string(info.channels) +
                             " channels; give a recording in mono or stereo");
    }
    if (info.rate < 1) {
        throw argument_error(file.string() + " states no sample rate");
    }
    recording sound{info.rate, info.channels, {}};
    // Read in chunks up to the end of the file: a header may promise more than the file holds.
    const auto most = static_cast<std::int64_t>(std::ceil(seconds * info.rate));
    std::vector<float> chunk(65536 * static_cast<std::size_t>(info.channels));
    while (sound.length() < most) {
        const std::int64_t got =
            library.read(in.get(), chunk.data(), std::min<std::int64_t>(65536, most - sound.length()));
        if (got <= 0) {
            break;
        }
        sound.samples.insert(sound.samples.end(), chunk.begin(), chunk.begin() + got * info.channels);
    }
    if (sound.samples.empty()) {
        throw argument_error(file.string() + " holds no samples");
    }
    // One NaN or infinite sample would spread over everything that is averaged later.
    for (float& sample : sound.samples) {
        sample = std::isfinite(sample) ? sample : 0.0F;
    }
    return sound;
}

void write_wav(const std::filesystem::path& file, const recording& sound) {
    const sound_library& library = sounds();
    sound_library::file_info info{0, sound.rate, sound.channels, sound_library::format_wav_16, 0, 0};
    const open_file out(library.open(file.c_str(), sound_library::mode_write, &info));
    if (!out) {
        throw file_error("cannot write " + file.string() + ": " + library.error_text(nullptr));
    }
    library.command(out.get(), sound_library::command_set_clipping, nullptr, 1);
    if (library.write(out.get(), sound.samples.data(), sound.length()) != sound.length()) {
        throw file_error("cannot write " + file.string() + ": " + library.error_text(out.get()));
    }
}

}  // namespace weir::demo
