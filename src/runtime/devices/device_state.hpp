#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "backend/backend.hpp"
#include "frontier/point.hpp"
#include "observe/observer.hpp"
#include "runtime/lifetime/resource.hpp"
#include "runtime/streams/stream_state.hpp"
#include "weir/detail/intrusive.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/device.hpp"

namespace weir::memory {
class pool;
}

namespace weir::runtime {

class stream_state;

/// A device by kind and number, opened or not. Lives for ever; weir::device points to it.
struct device_entry {
    device_entry(device_kind its_kind, int its_id, device_state* state = nullptr) noexcept
        : kind(its_kind), id(its_id), opened(state) {}

    device_kind kind;
    int id;
    std::atomic<device_state*> opened;  ///< null until the device is used
};

/// One device of the process. Lives for ever: threads and arrays may use it until the very end.
class device_state {
public:
    /// Simulated devices from this number on stand for CUDA devices; those below it are `sim:<id>`.
    static constexpr int first_stand_in = 16;

    /// `memory_space`: the device whose memory this one uses as its own; null if it has its own.
    device_state(device_kind kind, int id, std::unique_ptr<backend::driver> driver,
                 const device_state* memory_space = nullptr);
    device_state(const device_state&) = delete;
    device_state& operator=(const device_state&) = delete;
    ~device_state() = delete;

    [[nodiscard]] device_kind kind() const noexcept { return kind_; }
    [[nodiscard]] int id() const noexcept { return id_; }
    [[nodiscard]] device_entry& entry() noexcept { return entry_; }
    /// Whether it is a simulated device that stands for a CUDA device.
    [[nodiscard]] bool stands_for_cuda() const noexcept { return kind_ == device_kind::sim && id_ >= first_stand_in; }
    [[nodiscard]] backend::driver& driver() const noexcept { return *driver_; }
    /// The device that stands for all devices that use the same memory as their own, this one included.
    [[nodiscard]] const device_state& memory_space() const noexcept { return *memory_space_; }
    /// Throws state_error if the device stayed with a process that this one was forked from.
    void expect_usable() const {
        if (stayed_behind_) {
            refuse();
        }
    }
    [[nodiscard]] bool stayed_behind() const noexcept { return stayed_behind_; }
    /// Calls `prepare` at the first call, and returns once it has returned, in all threads. It must not open devices.
    void prepare_once(void (*prepare)(device_state&) noexcept);
    /// Must be called in the child of a fork, while it has one thread: only the CPU can be used there.
    void begin_child() noexcept;
    /// The tails of all streams at this moment.
    [[nodiscard]] std::vector<frontiers::point> tails() const;
    /// The tail of a stream whose work is not complete; empty if there is none.
    [[nodiscard]] std::optional<frontiers::point> first_unfinished() const noexcept;
    /// The tails, including what other code has put into adopted streams. Call with no lock held.
    [[nodiscard]] std::vector<frontiers::point> ends(const source_location& where) const;

    /// Reports all living streams to `one`.
    void tell_streams(observe::observer& one) const;

    /// The streams that the device itself orders with `one` (rule S6). Call with no lock held.
    [[nodiscard]] std::vector<detail::owner<stream_state>> ordered_with(const stream_state& one) const;

    void add(stream_state& stream);
    void remove(stream_state& stream) noexcept;

    /// The stream that is current unless the program sets another; all threads share it (DESIGN, Decisions).
    [[nodiscard]] stream_state& default_stream();

    /// The device's memory pool. The folder memory/ makes it at the first allocation; kept here so that every device has one.
    std::atomic<memory::pool*> pool{nullptr};
    /// The same for memory that both the host and CUDA devices reach.
    std::atomic<memory::pool*> shared_pool{nullptr};

private:
    [[noreturn]] void refuse() const;

    device_kind kind_;
    int id_;
    device_entry entry_{kind_, id_, this};
    std::unique_ptr<backend::driver> driver_;
    const device_state* memory_space_;
    bool stayed_behind_ = false;   ///< written while the process has one thread
    mutable detail::mutex mutex_;  ///< guards streams_; in the lock order after buffers, before streams
    std::vector<stream_state*> streams_;
    /// How many of streams_ there are of each backend::implicit_order. Read without the lock: a thread that makes a stream is not
    /// ordered with a thread that reads this.
    std::array<std::atomic<int>, 3> kinds_{};
    detail::mutex preparing_;  ///< held while prepare_once prepares; no other lock of this class is taken under it
    std::atomic<bool> is_prepared_{false};  ///< set under preparing_; pairs with the load in prepare_once
    detail::mutex default_mutex_;           ///< guards default_; in the lock order before mutex_
    detail::owner<stream_state> default_;
    std::atomic<stream_state*> known_default_{nullptr};  ///< null until default_ exists; read without the lock
};

/// The device `cpu`.
[[nodiscard]] device_state& cpu_device();
/// The device `cpu:inline`.
[[nodiscard]] device_state& inline_device();
/// A device whose driver is a cuda_driver, or a sim_driver if CUDA devices are simulated. Throws device_error, argument_error.
[[nodiscard]] device_state& cuda_device(int id);
/// The CUDA devices that the process uses, in the driver's order; without simulated ones. Throws std::bad_alloc.
[[nodiscard]] std::vector<device_state*> cuda_devices_in_use();
/// The same, and the CUDA devices on which another library has made the primary context, which are in use from now on. Call with no
/// lock held. Throws device_error, std::bad_alloc.
[[nodiscard]] std::vector<device_state*> cuda_devices_with_context();
/// Whether CUDA's driver is that of a process from which this one was forked: no function of it may be called here.
[[nodiscard]] bool gpus_stayed_behind() noexcept;
/// The device whose driver pins host memory; null if CUDA devices are simulated, or there are none. Throws device_error.
[[nodiscard]] device_state* pinning_device();
/// All devices that the process uses, in the order of `devices()`; opens none. Without devices that a fork left with the parent.
/// Throws std::bad_alloc.
[[nodiscard]] std::vector<device_state*> devices_in_use();
/// The device of that kind and number, as in weir::device; opens it if necessary. Throws device_error, argument_error.
[[nodiscard]] device_state& opened_device(device_kind kind, int id);
/// The device if the process uses it already; null if not.
[[nodiscard]] device_state* find_opened(const device_entry& one) noexcept;
/// A device whose driver is a sim_driver. Throws argument_error.
[[nodiscard]] device_state& sim_device(int id);

}  // namespace weir::runtime
