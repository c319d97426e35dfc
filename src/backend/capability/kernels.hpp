#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weir/detail/launch_shape.hpp"
#include "weir/detail/task.hpp"

namespace weir::backend::capability {

/// The device driver's handle of a loaded kernel.
using function_handle = struct opaque_function*;

/// A request to compile one kernel of a source text.
struct compile_request {
    const std::string& source;  ///< CUDA C++
    const std::string& name;    ///< the kernel; an expression ("axpy<float>") if the source has no `extern "C"`
    std::span<const std::string> options;  ///< of the compiler
};

/// The result of the compilation.
struct compiled_program {
    std::string image;   ///< code for the device, or PTX if the compiler does not know the device's architecture
    std::string symbol;  ///< the name of the kernel in `image`
};

/// Code that is loaded on a device. Unloaded when it is destroyed, which may wait for the device.
class loaded_code {
public:
    loaded_code() = default;
    loaded_code(const loaded_code&) = delete;
    loaded_code& operator=(const loaded_code&) = delete;
    virtual ~loaded_code() = default;

    /// The kernel of that name, ready to run: its first launch loads nothing (rule K2). Null if there is none. Throws
    /// device_error.
    [[nodiscard]] virtual function_handle find(const std::string& symbol) const = 0;
};

/// Properties of a loaded kernel, as the driver reports them.
struct function_facts {
    int max_threads = 0;                ///< largest number of threads in a block
    std::size_t own_shared_bytes = 0;   ///< shared memory that the kernel itself declares
    std::size_t most_shared_bytes = 0;  ///< that a launch may request in addition, unless allow_shared_bytes raises it
    /// Of each parameter; empty: the driver does not report them.
    std::optional<std::vector<std::size_t>> parameter_bytes;
};

/// Limits on every launch on the device.
struct launch_limits {
    std::array<std::uint32_t, 3> blocks{};   ///< along each axis
    std::array<std::uint32_t, 3> threads{};  ///< of a block, along each axis
    bool has_clusters = false;               ///< takes launches in clusters of blocks
    bool has_cooperative = false;            ///< takes cooperative launches
};

/// A device that runs kernels: device code, which is compiled from CUDA C++ or loaded, and launched into its queues. Any
/// thread; lives as long as the driver.
class kernels {
public:
    kernels() = default;
    kernels(const kernels&) = delete;
    kernels& operator=(const kernels&) = delete;

    /// Compiles for the device, without touching it. Slow. Throws missing_library, device_error (the compiler fails),
    /// argument_error (the source or an option is wrong: has the compiler's log).
    [[nodiscard]] virtual compiled_program compile(const compile_request& what) const = 0;
    /// Loads code. `what` names it in errors. Throws argument_error (not code for this device), device_error, out_of_memory.
    [[nodiscard]] virtual std::unique_ptr<loaded_code> load(const std::string& image,
                                                            const std::string& what) const = 0;
    /// The kernel `name` of `source`, which is Weir's own text: compiled, loaded, and kept for the process. May wait for the
    /// compiler and for the device: call it where the operation is enqueued, under no lock. Throws missing_library,
    /// device_error (with the compiler's log), out_of_memory.
    [[nodiscard]] virtual function_handle find(const std::string& source, const char* name,
                                               std::span<const std::string> options) const = 0;

    /// Loads a kernel that other code made and that the driver may not have loaded so far: its first launch then loads nothing
    /// (rule K2). Throws device_error.
    virtual void load_function(function_handle what) const = 0;
    /// Throws device_error.
    [[nodiscard]] virtual function_facts facts_of(function_handle what) const = 0;
    /// Empty if the driver does not report it.
    [[nodiscard]] virtual std::string name_of(function_handle what) const = 0;
    /// From now on launches of the kernel may request up to `bytes` bytes of shared memory. Throws device_error.
    virtual void allow_shared_bytes(function_handle what, std::size_t bytes) const = 0;

    /// Throws device_error.
    [[nodiscard]] virtual launch_limits limits() const = 0;
    /// The most bytes of shared memory that a block can have. Throws device_error.
    [[nodiscard]] virtual std::size_t most_shared_bytes() const = 0;
    /// How many blocks of a kernel, with so many threads and so much shared memory beyond the kernel's own, the whole device runs at the
    /// same time. Throws device_error.
    [[nodiscard]] virtual std::size_t most_resident_blocks(function_handle what, std::size_t threads,
                                                           std::size_t shared_bytes) const = 0;
    /// 0 if the driver does not report it.
    [[nodiscard]] virtual int multiprocessors() const noexcept = 0;
    /// The architecture that code is compiled for: "sm_90". Throws device_error.
    [[nodiscard]] virtual std::string architecture() const = 0;

    /// Puts a launch into a queue, and notes that in `as`. `arguments` are addresses of the values, which are copied. Throws
    /// device_error.
    virtual void launch(function_handle what, detail::launch_shape& as, void* const* arguments,
                        detail::queue_handle into) const = 0;
    /// Has a queue set `count` elements of `bytes` bytes (1, 2 or 4) at `to` to the low bytes of `value`. Throws device_error.
    virtual void fill(std::byte* to, std::uint32_t value, std::size_t bytes, std::size_t count,
                      detail::queue_handle into) const = 0;

protected:
    ~kernels() = default;
};

}  // namespace weir::backend::capability
