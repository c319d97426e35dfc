#include "runtime/device_state.hpp"

#include <algorithm>

#include "backend/cpu/driver.hpp"
#include "runtime/failures.hpp"
#include "runtime/host.hpp"
#include "runtime/observer.hpp"
#include "runtime/stream_state.hpp"

namespace weir {

namespace runtime {

device_state::device_state(device_kind kind, int id, std::unique_ptr<backend::driver> driver)
    : kind_(kind), id_(id), driver_(std::move(driver)) {}

std::vector<frontiers::point> device_state::tails() const {
    const std::lock_guard lock(mutex_);
    std::vector<frontiers::point> tails;
    tails.reserve(streams_.size());
    for (stream_state* one : streams_) {
        tails.push_back(one->tail().at);
    }
    return tails;
}

void device_state::add(stream_state& stream) {
    const std::lock_guard lock(mutex_);
    if (const std::size_t needed = gone_.size() + streams_.size() + 1; needed > gone_.capacity()) {
        gone_.reserve(2 * needed);
    }
    streams_.push_back(&stream);
}

void device_state::remove(stream_state& stream) noexcept {
    const std::lock_guard lock(mutex_);
    const auto found = std::find(streams_.begin(), streams_.end(), &stream);
    if (found != streams_.end()) {
        *found = streams_.back();
        streams_.pop_back();
        if (observers::any()) {
            gone_.push_back(stream.tail().at);  // does not allocate: see add
        } else {
            gone_.clear();
        }
    }
}

std::vector<frontiers::point> device_state::take_gone() {
    const std::lock_guard lock(mutex_);
    std::vector<frontiers::point> taken = gone_;
    gone_.clear();
    return taken;
}

stream_state& device_state::default_stream() {
    const std::lock_guard lock(default_mutex_);
    if (!default_) {
        default_ = stream_state::make(*this, 0, "default");
    }
    return *default_;
}

device_state& cpu_device() {
    // Never destroyed: threads and arrays may use it until the very end.
    static auto* const one = new device_state(device_kind::cpu, 0, std::make_unique<backend::cpu::cpu_driver>());
    return *one;
}

}  // namespace runtime

device_kind device::kind() const noexcept { return state_->kind(); }

int device::id() const noexcept { return state_->id(); }

std::string device::name() const { return std::string(state_->driver().name()); }

void device::synchronize(source_location where) const {
    const std::vector<frontiers::point> tails = state_->tails();
    for (const frontiers::point& tail : tails) {
        runtime::host_wait(tail, where);
    }
    for (const frontiers::point& last : state_->take_gone()) {
        runtime::host_wait(last, where);
    }
    for (const frontiers::point& tail : tails) {
        runtime::failures::throw_first_unreported(tail);
    }
}

device cpu() { return device(runtime::cpu_device()); }

std::vector<device> devices() { return {cpu()}; }

}  // namespace weir
