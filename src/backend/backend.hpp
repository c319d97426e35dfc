// The folder backend/ is the one narrow interface between Weir and what runs its work. backend.hpp declares it, each
// subfolder is one kind of device. It includes order/ and frontier/.
#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <string_view>

#include "backend/timeline.hpp"
#include "weir/detail/site.hpp"
#include "weir/detail/task.hpp"

namespace weir::backend {

/// One operation on its way to a device.
struct operation {
    detail::task_ref work;
    runtime::site from;
    runtime::work_kind kind = runtime::work_kind::device;
    bool timed = false;  ///< report to queue_events::executed
};

/// What a queue tells its owner. Called on the thread that runs the operation, under no lock.
class queue_events {
public:
    /// The operation at `at` threw.
    virtual void failed(epoch at, const runtime::site& from, std::exception_ptr why) noexcept = 0;
    /// A timed operation ran.
    virtual void executed(epoch at, std::chrono::steady_clock::time_point start,
                          std::chrono::steady_clock::time_point end) noexcept = 0;
    /// The queue has work and must stay (`busy`), or has none left and its owner may let it go. Calls alternate.
    virtual void busy() noexcept = 0;
    virtual void idle() noexcept = 0;

protected:
    ~queue_events() = default;
};

/// One in-order queue of a device: the device's side of a stream. Its work completes epochs of one timeline.
///
/// `reserve` and `submit` are called by one thread at a time (under the stream's lock).
class queue {
public:
    queue() = default;
    queue(const queue&) = delete;
    queue& operator=(const queue&) = delete;
    virtual ~queue() = default;

    /// Makes room for one operation after `waits` waits, so that the next `submit` cannot fail. Throws std::bad_alloc.
    virtual void reserve(std::size_t waits, const detail::task_ref& work) = 0;

    /// Device-side: what is submitted from now on starts once `target` is over.
    virtual void wait(point target) noexcept = 0;

    /// Takes an operation, which completes `at`. Does not wait for other work.
    virtual void submit(epoch at, const operation& what) noexcept = 0;
};

/// A device as its backend sees it.
class driver {
public:
    driver() = default;
    driver(const driver&) = delete;
    driver& operator=(const driver&) = delete;
    virtual ~driver() = default;

    [[nodiscard]] virtual std::string_view name() const noexcept = 0;

    /// A queue whose work completes epochs of `line`. `events` must outlive it.
    [[nodiscard]] virtual std::unique_ptr<queue> make_queue(timeline& line, queue_events& events) = 0;

    /// Memory of the device, aligned to 256 bytes; null if there is none left. Slow: the pool calls it for large pieces.
    [[nodiscard]] virtual std::byte* allocate(std::size_t bytes) noexcept = 0;
    /// Gives it back. Nothing may be using it any more.
    virtual void deallocate(std::byte* memory, std::size_t bytes) noexcept = 0;
    /// Bytes of memory the device has; the pool never takes more.
    [[nodiscard]] virtual std::size_t total_memory() const noexcept = 0;
};

}  // namespace weir::backend
