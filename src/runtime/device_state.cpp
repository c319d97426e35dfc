#include "runtime/device_state.hpp"

#include <algorithm>
#include <string>

#include "order/mark.hpp"
#include "runtime/failures.hpp"
#include "runtime/host.hpp"
#include "runtime/observer.hpp"
#include "runtime/stream_state.hpp"
#include "weir/error.hpp"

namespace weir {

namespace runtime {

device_state::device_state(device_kind kind, int id, std::unique_ptr<backend::driver> driver,
                           const device_state* memory_space)
    : kind_(kind), id_(id), driver_(std::move(driver)), memory_space_(memory_space == nullptr ? this : memory_space) {}

void device_state::begin_child() noexcept {
    if (kind_ == device_kind::cpu || kind_ == device_kind::cpu_inline) {
        return;
    }
    stayed_behind_ = true;
    for (stream_state* one : streams_) {
        one->closed.store(true, std::memory_order_relaxed);  // so that what enqueues asks no more than it does anyway
    }
}

void device_state::refuse() const {
    const std::string name(driver_->name());
    throw state_error(name + " cannot be used in this process, which was forked from one that had used it: " +
                      (kind_ == device_kind::cuda ? "CUDA's driver does not survive a fork"
                                                  : "the threads of a simulated device stay with the parent") +
                      ". Start the child as a new program (in Python, multiprocessing's method spawn), or fork before "
                      "the first use of " +
                      name + "; the CPU can be used here");
}

std::vector<frontiers::point> device_state::tails() const {
    const std::lock_guard lock(mutex_);
    std::vector<frontiers::point> tails;
    tails.reserve(streams_.size());
    for (stream_state* one : streams_) {
        tails.push_back(one->tail().at);
    }
    return tails;
}

std::optional<frontiers::point> device_state::first_unfinished() const noexcept {
    const std::lock_guard lock(mutex_);
    for (stream_state* one : streams_) {
        const frontiers::point tail = one->tail().at;
        if (!backend::timeline_table::instance().is_complete(tail)) {
            return tail;
        }
    }
    return std::nullopt;
}

std::vector<frontiers::point> device_state::ends(const source_location& where) const {
    std::vector<frontiers::point> ends = tails();
    std::vector<detail::owner<stream_state>> adopted;
    {
        const std::lock_guard lock(mutex_);
        adopted.reserve(streams_.size());  // so that no owner is dropped under the lock
        for (stream_state* one : streams_) {
            if (auto kept = one->is_shared() ? detail::owner<stream_state>::try_make(*one) : decltype(default_)()) {
                adopted.push_back(std::move(kept));
            }
        }
    }
    for (const auto& one : adopted) {  // under no lock: runs foreign code
        ends.push_back(one->now(where).at);
    }
    return ends;
}

std::vector<detail::owner<stream_state>> device_state::ordered_with(const stream_state& one) const {
    using backend::implicit_order;
    const implicit_order wanted =
        one.ordered_as() == implicit_order::legacy ? implicit_order::blocking : implicit_order::legacy;
    std::vector<detail::owner<stream_state>> found;
    if (kinds_[static_cast<std::size_t>(wanted)].load(std::memory_order_relaxed) == 0) {
        return found;
    }
    const std::lock_guard lock(mutex_);
    found.reserve(streams_.size());  // so that no owner is dropped under the lock
    for (stream_state* other : streams_) {
        if (backend::ordered_by_device(one.ordered_as(), other->ordered_as())) {
            if (auto kept = detail::owner<stream_state>::try_make(*other)) {
                found.push_back(std::move(kept));
            }
        }
    }
    return found;
}

void device_state::tell_streams(observer& one) const {
    const std::lock_guard lock(mutex_);  // what is in the list lives
    for (const stream_state* each : streams_) {
        one.stream_made(each->info());
    }
}

void device_state::add(stream_state& stream) {
    const std::lock_guard lock(mutex_);
    streams_.push_back(&stream);
    kinds_[static_cast<std::size_t>(stream.ordered_as())].fetch_add(1, std::memory_order_relaxed);
}

void device_state::remove(stream_state& stream) noexcept {
    const std::lock_guard lock(mutex_);
    const auto found = std::find(streams_.begin(), streams_.end(), &stream);
    if (found != streams_.end()) {
        *found = streams_.back();
        streams_.pop_back();
        kinds_[static_cast<std::size_t>(stream.ordered_as())].fetch_sub(1, std::memory_order_relaxed);
    }
}

stream_state& device_state::default_stream() {
    expect_usable();
    if (stream_state* const known = known_default_.load(std::memory_order_acquire)) {
        return *known;
    }
    const std::lock_guard lock(default_mutex_);
    if (!default_) {
        default_ = stream_state::make_default(*this);
        known_default_.store(&*default_, std::memory_order_release);
    }
    return *default_;
}

}  // namespace runtime

device_kind device::kind() const noexcept { return state_->kind(); }

int device::id() const noexcept { return state_->id(); }

std::string device::name() const { return std::string(state_->driver().name()); }

std::string device::to_string() const {
    return "<weir.device " + name() + (state_->stands_for_cuda() ? " (simulated)>" : ">");
}

void device::synchronize(source_location where) const {
    state_->expect_usable();
    const std::vector<frontiers::point> tails = state_->ends(where);
    for (const frontiers::point& tail : tails) {
        runtime::host_wait(tail, where);
    }
    runtime::observers::tell([&](runtime::observer& one) { one.device_waited(state_->driver().name(), where); });
    runtime::failures::throw_first_unreported(tails);
}

}  // namespace weir
