#pragma once

#include <string>
#include <vector>

#include "base/setting.hpp"

namespace weir::backend {

/// An NVIDIA shared library that is opened at run time, and never closed: objects that it made may live until the process ends.
///
/// Searched in this order: the file that an environment variable names (and then nowhere else); under each entry of
/// WEIR_LIBRARY_PATH (folders, divided by ':'), in the folder itself and where NVIDIA's Python packages put it
/// (ENTRY/nvidia/cuda_nvrtc/lib); where the system's loader searches; in the toolkit that CUDA_HOME or CUDA_PATH names, and in
/// /usr/local/cuda.
class nvidia_library {
public:
    /// Which library, and how a user can install it.
    struct name {
        const char* title;                  ///< "NVRTC": for messages
        detail::setting variable;           ///< environment variable that names a file
        std::vector<const char*> files;     ///< "libnvrtc.so.13", the preferred one first
        std::vector<const char*> packages;  ///< folders of Python packages: "cuda_nvrtc", "cu13"
        const char* install;                ///< what to install: ends the message of missing_library
    };

    /// Throws missing_library, with what to install.
    explicit nvidia_library(const name& which);

    /// The file that was opened, under the name passed to the loader.
    [[nodiscard]] const std::string& file() const noexcept { return file_; }
    /// The folder in which the loader found it, with links resolved; empty if the loader does not report it.
    [[nodiscard]] std::string folder() const;

    /// Sets `function` to the library's function of that name. Throws missing_library if it has none.
    template <class Function>
    void find(const char* symbol, Function*& function) const {
        function = reinterpret_cast<Function*>(address_of(symbol));
    }
    /// Opens another library in the same folder, if it exists. This library opens that one later by its name alone; the loader then
    /// knows it already.
    void open_beside(const std::string& file) const;
    /// Null if the library has no such symbol.
    [[nodiscard]] void* try_find(const char* symbol) const noexcept;

private:
    [[nodiscard]] bool open(const std::string& file);
    [[nodiscard]] bool search(const name& which);
    [[nodiscard]] void* address_of(const char* symbol) const;

    std::string file_;
    const char* title_;
    void* handle_ = nullptr;
};

}  // namespace weir::backend
