#pragma once

#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "array/cuda/source.hpp"
#include "backend/capability/kernels.hpp"
#include "weir/detail/mutex.hpp"

namespace weir::array_kernels {

/// The kernels that are loaded, by their description: their sources are long, and are built once. None is ever unloaded.
class known_kernels {
public:
    using function_handle = backend::capability::function_handle;
    using kernels = backend::capability::kernels;

    static known_kernels& instance();

    /// Compiles and loads the kernel if it is not there, which may wait for the device. Throws missing_library, device_error,
    /// out_of_memory.
    [[nodiscard]] function_handle find(const kernels& in, const description& what);

    /// Whether all are loaded.
    [[nodiscard]] bool has_all(const kernels& in, std::span<const description> set) const;

    /// Adds loaded kernels, with the code that they are in. Those that are known already stay as they are.
    void add(const kernels& in, std::span<const description> set, std::span<const function_handle> functions,
             std::unique_ptr<backend::capability::loaded_code> code);

private:
    using map_key = std::pair<const kernels*, description>;

    mutable detail::shared_mutex mutex_;  ///< guards what follows; a leaf in the lock order
    std::map<map_key, function_handle> all_;
    std::vector<std::unique_ptr<backend::capability::loaded_code>> codes_;  ///< kept loaded
};

}  // namespace weir::array_kernels
