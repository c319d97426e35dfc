#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "backend/cuda/compiler.hpp"

namespace weir::backend::cuda {

/// Compiled kernels in a folder, a file each, for all processes that use it at once. A file has the whole key in it, and is
/// taken only if that and a checksum are right and it is this user's own. What cannot be read or written is no error: then
/// it is as if there were no cache.
class kernel_cache {
public:
    static constexpr std::uint64_t usual_bound = std::uint64_t{256} << 20U;

    /// Keeps at most `most_bytes` in `folder`, which is made when the first file is written. An empty name: no cache.
    explicit kernel_cache(std::filesystem::path folder, std::uint64_t most_bytes = usual_bound)
        : folder_(std::move(folder)), most_bytes_(most_bytes) {}

    /// What was kept under `key`. It then counts as used just now.
    [[nodiscard]] std::optional<compiled_program> find(const std::string& key) const;
    /// Keeps it, in place of what was there; what was used longest ago goes if there is too much.
    /// False if there is a folder to keep it in, and no file could be made there.
    [[nodiscard]] bool keep(const std::string& key, const compiled_program& what) const;

    /// The file for a key.
    [[nodiscard]] std::filesystem::path file_of(const std::string& key) const;

private:
    void trim() const;

    std::filesystem::path folder_;
    std::uint64_t most_bytes_;
};

/// WEIR_CACHE_DIR, else the folder `weir` in XDG_CACHE_HOME, else in ~/.cache; empty if there is no such place.
[[nodiscard]] std::filesystem::path kernel_cache_folder();

}  // namespace weir::backend::cuda
