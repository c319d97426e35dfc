#pragma once

#include <cstdint>
#include <string>

namespace weir::demo {

/// The functions of libsndfile that the demonstration needs, opened at run time: its licence is the LGPL. Declared here
/// anew after its public interface.
struct sound_library {
    struct opaque_file;
    struct file_info {
        std::int64_t frames;
        int rate;
        int channels;
        int format;
        int sections;
        int seekable;
    };
    static constexpr int mode_read = 0x10;
    static constexpr int mode_write = 0x20;
    static constexpr int format_wav_16 = 0x010000 | 0x0002;
    static constexpr int command_set_clipping = 0x10C0;

    opaque_file* (*open)(const char* path, int mode, file_info* info) = nullptr;
    int (*close)(opaque_file* file) = nullptr;
    std::int64_t (*read)(opaque_file* file, float* samples, std::int64_t frames) = nullptr;
    std::int64_t (*write)(opaque_file* file, const float* samples, std::int64_t frames) = nullptr;
    int (*command)(opaque_file* file, int command, void* data, int size) = nullptr;
    const char* (*error_text)(opaque_file* file) = nullptr;
    const char* (*version_text)() = nullptr;

    std::string file;  ///< the file that was opened
};

/// Throws missing_library, with what to install.
[[nodiscard]] const sound_library& sounds();

}  // namespace weir::demo
