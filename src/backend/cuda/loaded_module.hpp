#pragma once

#include <string>

#include "backend/cuda/context.hpp"

namespace weir::backend::cuda {

/// Loads a function that a driver that loads lazily may not have loaded so far: its first launch then loads nothing (rule
/// K2). In the context. Throws device_error.
void load_function(const context& in, function_handle what);

/// A module of code in a context. Unloaded when it is destroyed, which may wait for the device.
class loaded_module {
public:
    /// Loads a cubin or PTX. `what` names it in errors. Throws argument_error (not code for this device), device_error,
    /// out_of_memory.
    loaded_module(const context& in, const std::string& image, const std::string& what);
    loaded_module(const loaded_module&) = delete;
    loaded_module& operator=(const loaded_module&) = delete;
    ~loaded_module();

    /// The kernel of that name, ready to run: its first launch loads nothing (rule K2). Null if there is none. Throws
    /// device_error.
    [[nodiscard]] function_handle find(const std::string& symbol) const;

private:
    const context* in_;
    module_handle handle_ = nullptr;
};

}  // namespace weir::backend::cuda
