#include "asyncio.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "events.hpp"
#include "interpreter.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/error.hpp"
#include "weir/launch.hpp"

namespace weir::python {

namespace {

/// Notifies an event loop, through a file descriptor, of events that are over. No thread serves any single event: the thread that
/// completes the work writes a number.
class wakeups {
public:
    wakeups() : descriptor_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
        if (descriptor_ < 0) {
            throw device_error("the process cannot open another file descriptor, which await needs");
        }
    }
    ~wakeups() { ::close(descriptor_); }
    wakeups(const wakeups&) = delete;
    wakeups& operator=(const wakeups&) = delete;

    [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

    /// Makes room for one more event, so that notifying cannot fail.
    void expect_one() {
        const std::lock_guard lock(mutex_);
        ++expected_;
        over_.reserve(expected_);
    }
    void tell(std::uint64_t token) noexcept {
        const std::lock_guard lock(mutex_);
        over_.push_back(token);
        const std::uint64_t one = 1;
        // Fails only if the descriptor can be read already.
        [[maybe_unused]] const auto written = ::write(descriptor_, &one, sizeof one);
    }
    [[nodiscard]] std::vector<std::uint64_t> take() {
        const std::lock_guard lock(mutex_);
        std::uint64_t count = 0;
        [[maybe_unused]] const auto read = ::read(descriptor_, &count, sizeof count);
        expected_ -= over_.size();
        std::vector<std::uint64_t> taken;
        taken.swap(over_);
        over_.reserve(expected_);
        return taken;
    }

private:
    int descriptor_;
    detail::mutex mutex_;  ///< guards what follows; a leaf in the lock order
    std::size_t expected_ = 0;
    std::vector<std::uint64_t> over_;
};

/// Kept until an event is over; notifies the loop when it is released.
class telling {
public:
    telling(std::shared_ptr<wakeups> to, std::uint64_t token) noexcept : to_(std::move(to)), token_(token) {}
    telling(telling&&) noexcept = default;
    telling& operator=(telling&&) = delete;
    ~telling() {
        if (to_) {
            to_->tell(token_);
        }
    }

private:
    std::shared_ptr<wakeups> to_;
    std::uint64_t token_;
};

struct py_wakeups {
    std::shared_ptr<wakeups> shared = std::make_shared<wakeups>();
};

}  // namespace

void bind_asyncio(nb::module_& m) {
    nb::class_<py_wakeups>(m, "_Wakeups")
        .def(nb::init<>())
        .def_prop_ro("descriptor", [](const py_wakeups& self) { return self.shared->descriptor(); })
        .def(
            "tell_when_over",
            [](const py_wakeups& self, const py_event& event, std::uint64_t token) {
                self.shared->expect_one();
                released([&, what = event.get()] { keep_alive(what, telling(self.shared, token)); });
            },
            nb::arg("event"), nb::arg("token"))
        .def("take", [](const py_wakeups& self) { return self.shared->take(); });
}

}  // namespace weir::python
