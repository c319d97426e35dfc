#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "backend/capability/kernels.hpp"

namespace weir::backend {

using capability::compiled_program;

/// Compiled kernels in a folder, one file each, shared by all processes that use it at once. A file contains the whole key, and is
/// used only if the key and a checksum match and the file belongs to this user. Failure to read or write is no error: the cache
/// then behaves as if it were empty.
class kernel_cache {
public:
    static constexpr std::uint64_t usual_bound = std::uint64_t{256} << 20U;

    /// Keeps at most `most_bytes` in `folder`, which is created when the first file is written. An empty name: no cache.
    explicit kernel_cache(std::filesystem::path folder, std::uint64_t most_bytes = usual_bound)
        : folder_(std::move(folder)), most_bytes_(most_bytes) {}

    /// The program kept under `key`. Marks it as just used.
    [[nodiscard]] std::optional<compiled_program> find(const std::string& key) const;
    /// Keeps a program, in place of the former one. Removes the least recently used ones if there is too much.
    /// False if there is a folder, and no file could be made in it.
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

}  // namespace weir::backend
