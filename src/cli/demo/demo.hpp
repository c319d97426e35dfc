#pragma once

#include <filesystem>
#include <string>

namespace weir::demo {

struct demo_options {
    std::filesystem::path file;    ///< the recording
    std::filesystem::path output;  ///< the directory for results; created if it does not exist
    std::string device = "cpu";    ///< the name of the device that the program runs on
    int streams = 6;
    double seconds = 120;  ///< how much of the recording is used
};

/// The recording that is used when none is named: music of Debian's package asterisk-moh-opsound-wav, else speech of
/// alsa-utils. Throws argument_error, with what to install, if neither is there.
[[nodiscard]] std::filesystem::path default_recording();

/// Plays the three acts and prints their results. Returns whether all results are as expected. Throws error.
[[nodiscard]] bool play(const demo_options& options);

}  // namespace weir::demo
