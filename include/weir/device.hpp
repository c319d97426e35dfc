// Devices. Layer: runtime.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/detail/passkey.hpp"
#include "weir/export.hpp"
#include "weir/source_location.hpp"

namespace weir {

/// The kinds of device that this build knows.
enum class device_kind : std::uint8_t {
    cpu,         ///< the host's memory, with asynchronous streams run by threads
    cpu_inline,  ///< the host's memory, with streams that run each operation when it is enqueued
    cuda,        ///< an NVIDIA accelerator, with memory that the host cannot touch
    sim,         ///< a simulated accelerator, run by threads of the host, with memory that the host cannot touch
    registered,  ///< a device whose driver is not part of this library: its name says what it is
};

namespace runtime {
struct device_entry;
class device_state;
}  // namespace runtime

class device;
class dtype;

/// What is known of a device before it is used.
struct device_description {
    std::string model;             ///< its maker's name: "NVIDIA H100 80GB HBM3"; "simulated"; for the CPU "host"
    std::size_t memory_bytes = 0;  ///< size of its memory
    /// The architecture that its code is compiled for: "sm_90"; for the CPU "x86-64"; empty if simulated.
    std::string architecture;
    std::string pci_id;           ///< its place on the bus, as in nvidia-smi: "0000:3b:00.0"; else empty
    std::vector<device> reaches;  ///< the other devices whose memory its work can use without the host
};

/// One device. A small value: copies are the same device. Valid until the process ends. Any thread.
///
/// `cuda` and the first use (a stream, memory, a kernel) open a CUDA device: that makes the driver's context on it, and takes time and
/// memory there. Listing, naming, comparing and describing devices opens none.
class WEIR_EXPORT device {
public:
    /// The kind of the device.
    [[nodiscard]] device_kind kind() const noexcept;
    /// The number among the devices of its kind, from 0; among all registered devices for a registered one. For a simulated device that
    /// stands for `cuda:<n>`: 16 + n.
    [[nodiscard]] int id() const noexcept;
    /// "cpu", "cpu:inline", "cuda:0", "sim:0".
    [[nodiscard]] std::string name() const;
    /// `<weir.device sim:0>`; `<weir.device cuda:0 (simulated)>` for one that stands for a CUDA device.
    [[nodiscard]] std::string to_string() const;
    /// What the driver reports of the device without a context on it. Throws device_error.
    [[nodiscard]] device_description describe() const;
    /// The device of that name, opened. Throws argument_error, which lists the valid names.
    [[nodiscard]] static device from_name(std::string_view name);

    /// Blocks until everything that was enqueued before the call, on every stream of this device, is complete (scenario C9). Returns at
    /// once if the device was not used yet. What other code put into the per-thread default stream of another thread (handle 2) is that
    /// thread's own to wait for: no other thread can name that stream.
    /// Throws operation_error for the first failure that was not reported yet.
    void synchronize(source_location where = source_location::current()) const;

    /// @{
    /// Loads the kernels of Weir's own that operations on arrays of these element types use, so that the first use of each neither compiles
    /// nor loads (rule K6): a driver that loads code may wait for all work of the device, and for ever if a stream waits for the host. They
    /// are the operators and `compute`, `select`, `reduce`, `arange`, `random`, `fill`, copies and conversions from and to the types below,
    /// and the operators and `select` between any two of the types; of arrays that are packed, or have any strides and, after axes are
    /// merged, up to two dimensions.
    ///
    /// When a CUDA device is opened, it gets those for packed arrays of one shape and one of the types bool, int32, int64, float32 and
    /// float64, reductions of everything or along the first or the last axes, and copies of all types, unless WEIR_PREPARE=0 is in the
    /// environment; without arguments, this does just that. Blocks while the compiler runs, which takes a second or more for each type if
    /// the folder of compiled kernels (WEIR_CACHE_DIR) does not have them, and until the device has loaded them, which may wait for its
    /// work. Opens the device. Nothing is to be done on other devices than CUDA's: returns at once.
    ///
    /// Throws argument_type_error (a type without arithmetic), missing_library (no NVRTC), device_error, out_of_memory.
    void prepare(std::initializer_list<dtype> types = {}) const;
    void prepare(std::span<const dtype> types) const;
    /// @}

    /// Whether both are the same device.
    friend bool operator==(const device& a, const device& b) noexcept {
        return a.known_ == b.known_ || (a.kind() == b.kind() && a.id() == b.id());
    }

    /// @{
    /// `state` opens a device that is only listed, and throws what `cuda` throws.
    device(detail::passkey key, runtime::device_state& state) noexcept;
    device(detail::passkey /*key*/, runtime::device_entry& listed) noexcept : known_(&listed) {}
    [[nodiscard]] runtime::device_state& state(detail::passkey key) const;
    /// @}

private:
    runtime::device_entry* known_;
};

/// The CPU: memory of the host, and asynchronous in-order streams run by a small pool of threads (`WEIR_CPU_THREADS`, else one for each
/// core). Never fails.
[[nodiscard]] WEIR_EXPORT device cpu();

/// The CPU without queues (rule S8): an operation runs on the thread that enqueues it, before the call returns; the thread blocks on
/// unfinished work of other streams that the operation must come after. Events are complete at once. Work that an operation itself
/// enqueues runs after it. The memory is the CPU's: streams of both devices use the same arrays. Never fails.
[[nodiscard]] WEIR_EXPORT device cpu_inline();

/// A simulated accelerator, made at the first call: it has its own memory, which host code cannot touch (it faults at once), asynchronous
/// streams and copies, and a limited number of operations at a time. Runs the same code as the CPU, so that programs for accelerators can
/// be tested anywhere; `testing::simulated` makes it slow, adversarial or repeatable. `id` is 0 to 15 (argument_error).
[[nodiscard]] WEIR_EXPORT device sim(int id = 0);

/// An NVIDIA accelerator, by its number in the driver's order (CUDA_VISIBLE_DEVICES counts). Its streams are streams of the CUDA driver in
/// the device's primary context, which all libraries of the process share. The first call opens the driver, libcuda.so.1 or the file that
/// WEIR_CUDA_DRIVER names. Throws device_error, which says why, if there is no driver, and argument_error if there is no such device.
///
/// In a process with WEIR_SIMULATE=cuda:2 in its environment, simulated devices stand for `cuda:0` and `cuda:1`; there can be 1 to 16.
/// Their kind is `sim`, and they do what `sim` devices do. CUDA C++, PTX and cubins cannot run there. Throws argument_error if the variable
/// has any other value.
[[nodiscard]] WEIR_EXPORT device cuda(int id = 0);

/// All devices: the CPU, `cpu:inline`, each CUDA device or its simulated replacement, and the simulated and registered devices that were
/// asked for. Opens none of them: makes no context on a CUDA device. Throws argument_error as `cuda` does.
[[nodiscard]] WEIR_EXPORT std::vector<device> devices();

/// Blocks until everything that was enqueued before the call, on every open device, is complete: device::synchronize of each. Opens none.
/// Throws the first failure that no call has reported yet, after it has waited for all devices.
WEIR_EXPORT void synchronize(source_location where = source_location::current());

}  // namespace weir

/// Hashes what equality compares.
template <>
struct std::hash<weir::device> {
    /// The hash of `one`. Never blocks.
    [[nodiscard]] std::size_t operator()(const weir::device& one) const noexcept {
        return std::hash<int>()(one.id() * 8 + static_cast<int>(one.kind()));
    }
};
