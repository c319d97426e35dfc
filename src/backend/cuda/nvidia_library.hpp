#pragma once

#include <string>
#include <vector>

#include "backend/setting.hpp"

namespace weir::backend::cuda {

/// A shared library of NVIDIA's that is opened at run time, and never closed: what it made may live until the process ends.
///
/// Looked for, in this order: the file that an environment variable names (and then nothing else); under each entry of
/// WEIR_LIBRARY_PATH (folders, divided by ':'), in the folder itself and where Python's packages of NVIDIA put it
/// (ENTRY/nvidia/cuda_nvrtc/lib); where the system's loader looks; in the toolkit that CUDA_HOME or CUDA_PATH names, and in
/// /usr/local/cuda.
class nvidia_library {
public:
    /// Which library, and how a user comes by it.
    struct name {
        const char* title;                  ///< "NVRTC": for messages
        setting variable;                   ///< environment variable that names a file
        std::vector<const char*> files;     ///< "libnvrtc.so.13", the one to take first
        std::vector<const char*> packages;  ///< folders of Python's packages: "cuda_nvrtc", "cu13"
        const char* install;                ///< what to install: ends the message of missing_library
    };

    /// Throws missing_library, which says what to install.
    explicit nvidia_library(const name& which);

    /// The file that was opened, as it was named to the loader.
    [[nodiscard]] const std::string& file() const noexcept { return file_; }
    /// The folder in which the loader found it, without links; empty if it does not say.
    [[nodiscard]] std::string folder() const;

    /// Sets `function` to the library's function of that name. Throws missing_library if it has none.
    template <class Function>
    void find(const char* symbol, Function*& function) const {
        function = reinterpret_cast<Function*>(address_of(symbol));
    }
    /// Opens another library in the same folder, if it is there: one that this one opens later by its name alone, which the
    /// loader knows from then on.
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

}  // namespace weir::backend::cuda
