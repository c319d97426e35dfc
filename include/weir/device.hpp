// Devices. Layer: runtime.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weir/export.hpp"
#include "weir/source_location.hpp"

namespace weir {

/// The kinds of device that this build knows.
enum class device_kind : std::uint8_t {
    cpu,         ///< the host's memory, with asynchronous streams run by threads
    cpu_inline,  ///< the host's memory, with streams that run each operation when it is enqueued
    cuda,        ///< an NVIDIA accelerator, with memory that the host cannot touch
    sim,         ///< an accelerator that is simulated by threads of the host, with memory that the host cannot touch
};

namespace runtime {
class device_state;
}

/// One device. A small value: copies are the same device. Valid until the process ends. Any thread.
class WEIR_EXPORT device {
public:
    /// What kind of device it is.
    [[nodiscard]] device_kind kind() const noexcept;
    /// The number among the devices of its kind, from 0; of a simulated device that stands for `cuda:<n>`, 16 + n.
    [[nodiscard]] int id() const noexcept;
    /// "cpu", "cpu:inline", "cuda:0", "sim:0".
    [[nodiscard]] std::string name() const;
    /// `<weir.device sim:0>`; `<weir.device cuda:0 (simulated)>` of one that stands for a CUDA device.
    [[nodiscard]] std::string to_string() const;
    /// The device of that name. Throws argument_error, which lists the names that there are.
    [[nodiscard]] static device from_name(std::string_view name);

    /// Blocks until everything that was enqueued before the call, on every stream of this device, is over (scenario C9).
    /// Throws operation_error if any of it failed and nobody was told yet.
    void synchronize(source_location where = source_location::current()) const;

    /// Whether both are the same device.
    friend bool operator==(const device&, const device&) = default;

    /// For Weir's own use.
    explicit device(runtime::device_state& state) noexcept : state_(&state) {}
    /// For Weir's own use.
    [[nodiscard]] runtime::device_state& state() const noexcept { return *state_; }

private:
    runtime::device_state* state_;
};

/// The CPU: memory of the host, asynchronous in-order streams run by a small pool of threads (`WEIR_CPU_THREADS`, else
/// one for each core). Never fails.
[[nodiscard]] WEIR_EXPORT device cpu();

/// The CPU without queues (rule S8): operations run on the thread that enqueues them, before the call returns, blocking on
/// unfinished work of other streams that they must come after. Events are complete at once. What an operation itself
/// enqueues runs after it. The memory is the CPU's: streams of both use the same arrays. Never fails.
[[nodiscard]] WEIR_EXPORT device cpu_inline();

/// A simulated accelerator, made when it is first asked for: memory of its own, which host code cannot touch (it faults at
/// once), asynchronous streams and copies, and a limited number of operations at a time. Runs the same code as the CPU, so
/// that programs for accelerators can be tested anywhere; `testing::simulated` makes it slow, hostile or repeatable. `id`
/// is 0 to 15 (argument_error).
[[nodiscard]] WEIR_EXPORT device sim(int id = 0);

/// An NVIDIA accelerator, by its number in the driver's order (CUDA_VISIBLE_DEVICES counts). Its streams are streams of the
/// CUDA driver in the device's primary context, which all libraries of the process share. The first call opens the
/// driver, libcuda.so.1 or what WEIR_CUDA_DRIVER names. Throws device_error, which says why, if there is no driver, and
/// argument_error if there is no such device.
///
/// In a process with WEIR_SIMULATE=cuda:2 in its environment, simulated devices stand for `cuda:0` and `cuda:1`, 1 to 16 of
/// them: their kind is `sim`, and they do what `sim` devices do. CUDA C++, PTX and cubins cannot run there. Throws
/// argument_error if the variable says anything else.
[[nodiscard]] WEIR_EXPORT device cuda(int id = 0);

/// All devices: the CPU, `cpu:inline`, each CUDA device or what stands for it, and the simulated ones that were asked for.
/// Opens each CUDA device, which takes time, and memory there. Throws argument_error as `cuda` does.
[[nodiscard]] WEIR_EXPORT std::vector<device> devices();

}  // namespace weir
