#pragma once

#include <filesystem>
#include <string>

namespace weir::demo {

struct demo_options {
    std::filesystem::path file;    ///< the recording
    std::filesystem::path output;  ///< the directory for results; made if it is not there
    std::string device = "cpu";    ///< the name of the device that the program runs on
    int streams = 6;
    double seconds = 120;  ///< how much of the recording is used
};

/// The recording that is used when none is named: music of Debian's package asterisk-moh-opsound-wav, else speech of
/// alsa-utils. Throws argument_error, which says what to install, if neither is there.
[[nodiscard]] std::filesystem::path default_recording();

/// Plays the three acts and prints what they show. Returns whether all came out as they must. Throws error.
[[nodiscard]] bool play(const demo_options& options);

}  // namespace weir::demo
