#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "backend/backend.hpp"
#include "frontier/point.hpp"
#include "runtime/stream_state.hpp"
#include "weir/detail/intrusive.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/device.hpp"

namespace weir::memory {
class pool;
}

namespace weir::runtime {

class observer;
class stream_state;

/// One device of the process. Lives for ever: threads and arrays may use it until the very end.
class device_state {
public:
    /// Simulated devices from this number on stand for CUDA devices; those before are `sim:<id>`.
    static constexpr int first_stand_in = 16;

    /// `memory_space`: the device whose memory this one uses as its own; null if it has its own.
    device_state(device_kind kind, int id, std::unique_ptr<backend::driver> driver,
                 const device_state* memory_space = nullptr);
    device_state(const device_state&) = delete;
    device_state& operator=(const device_state&) = delete;
    ~device_state() = delete;

    [[nodiscard]] device_kind kind() const noexcept { return kind_; }
    [[nodiscard]] int id() const noexcept { return id_; }
    /// Whether it is a simulated device that stands for a CUDA device.
    [[nodiscard]] bool stands_for_cuda() const noexcept { return kind_ == device_kind::sim && id_ >= first_stand_in; }
    [[nodiscard]] backend::driver& driver() const noexcept { return *driver_; }
    /// Of all devices that can use this one's memory as their own, the one that stands for them.
    [[nodiscard]] const device_state& memory_space() const noexcept { return *memory_space_; }
    /// Throws state_error if the device stayed with a process that this one was forked from.
    void expect_usable() const {
        if (stayed_behind_) {
            refuse();
        }
    }
    [[nodiscard]] bool stayed_behind() const noexcept { return stayed_behind_; }
    /// In the child of a fork, while it has one thread: only the CPU goes on there.
    void begin_child() noexcept;
    /// The tails of all streams at this moment.
    [[nodiscard]] std::vector<frontiers::point> tails() const;
    /// The tail of a stream whose work is not over; empty if there is none.
    [[nodiscard]] std::optional<frontiers::point> first_unfinished() const noexcept;
    /// The tails with what others have put into adopted streams. Call with no lock held.
    [[nodiscard]] std::vector<frontiers::point> ends(const source_location& where) const;

    /// Tells `one` of all streams that live.
    void tell_streams(observer& one) const;

    /// The streams that the device itself orders with `one` (rule S6). Call with no lock held.
    [[nodiscard]] std::vector<detail::owner<stream_state>> ordered_with(const stream_state& one) const;

    void add(stream_state& stream);
    void remove(stream_state& stream) noexcept;

    /// The stream that is current where the program has said nothing; all threads share it (DESIGN, Decisions).
    [[nodiscard]] stream_state& default_stream();

    /// The device's memory; made by the folder memory/ at the first allocation, kept here so that every device has one.
    std::atomic<memory::pool*> pool{nullptr};
    /// The same of memory that the host and CUDA devices both reach.
    std::atomic<memory::pool*> shared_pool{nullptr};

private:
    [[noreturn]] void refuse() const;

    device_kind kind_;
    int id_;
    std::unique_ptr<backend::driver> driver_;
    const device_state* memory_space_;
    bool stayed_behind_ = false;   ///< written while the process has one thread
    mutable detail::mutex mutex_;  ///< guards streams_; after buffers, before streams
    std::vector<stream_state*> streams_;
    /// How many of streams_ there are of each backend::implicit_order. Read without the lock: who makes a stream on another
    /// thread is not ordered with who asks.
    std::array<std::atomic<int>, 3> kinds_{};
    detail::mutex default_mutex_;  ///< guards default_; before mutex_
    detail::owner<stream_state> default_;
    std::atomic<stream_state*> known_default_{nullptr};  ///< the same, for those who need not make it
};

/// The device `cpu`.
[[nodiscard]] device_state& cpu_device();
/// The device `cpu:inline`.
[[nodiscard]] device_state& inline_device();
/// A device whose driver is a cuda_driver, or, where CUDA devices are simulated, a sim_driver. Throws device_error,
/// argument_error.
[[nodiscard]] device_state& cuda_device(int id);
/// The CUDA devices that the process uses, in the driver's order; not those that stand for such. Throws std::bad_alloc.
[[nodiscard]] std::vector<device_state*> cuda_devices_in_use();
/// These, and the CUDA devices on which another library has made the primary context, which are in use from now on. Call with no lock
/// held. Throws device_error, std::bad_alloc.
[[nodiscard]] std::vector<device_state*> cuda_devices_with_context();
/// All devices that the process uses, in the order of `devices()`, without opening any; not those that a fork left with the
/// parent. Throws std::bad_alloc.
[[nodiscard]] std::vector<device_state*> devices_in_use();
/// A device whose driver is a sim_driver. Throws argument_error.
[[nodiscard]] device_state& sim_device(int id);

}  // namespace weir::runtime
