#pragma once

#include <string>

#include "backend/capability/kernels.hpp"
#include "backend/cuda/api/driver_api.hpp"
#include "backend/cuda/device/context.hpp"

namespace weir::backend::cuda {

/// Loads a function that a lazily loading driver may not have loaded so far: its first launch then loads nothing (rule
/// K2). In the context. Throws device_error.
void load_function(const context& in, function_handle what);

/// A module of code in a context.
class loaded_module final : public capability::loaded_code {
public:
    /// Loads a cubin or PTX. `what` names it in errors. Throws argument_error (not code for this device), device_error,
    /// out_of_memory.
    loaded_module(const context& in, const std::string& image, const std::string& what);
    ~loaded_module() override;

    [[nodiscard]] function_handle find(const std::string& symbol) const override;

private:
    const context* in_;
    module_handle handle_ = nullptr;
};

}  // namespace weir::backend::cuda
