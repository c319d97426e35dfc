#include "runtime/devices/device_state.hpp"

#include <algorithm>
#include <exception>
#include <mutex>
#include <string>

#include "observe/observers.hpp"
#include "order/mark.hpp"
#include "runtime/failures/failures.hpp"
#include "runtime/host/host.hpp"
#include "runtime/streams/stream_state.hpp"
#include "weir/error.hpp"

namespace weir {

namespace runtime {

namespace {

void tell_living_streams(observe::observer& one) {
    for (const device_state* const each : devices_in_use()) {
        each->tell_streams(one);
    }
}

}  // namespace

device_state::device_state(device_kind kind, int id, std::unique_ptr<backend::driver> driver,
                           const device_state* memory_space)
    : kind_(kind), id_(id), driver_(std::move(driver)), memory_space_(memory_space == nullptr ? this : memory_space) {
    observe::observers::set_source(tell_living_streams);
}

void device_state::prepare_once(void (*prepare)(device_state&) noexcept) {
    if (is_prepared_.load(std::memory_order_acquire)) {
        return;
    }
    const std::lock_guard lock(preparing_);
    if (!is_prepared_.load(std::memory_order_relaxed)) {
        prepare(*this);
        is_prepared_.store(true, std::memory_order_release);
    }
}

void device_state::begin_child() noexcept {
    if (kind_ == device_kind::cpu || kind_ == device_kind::cpu_inline) {
        return;
    }
    stayed_behind_ = true;
    for (stream_state* one : streams_) {
        // So that enqueueing needs no check besides the one for closed streams.
        one->closed.store(true, std::memory_order_relaxed);
    }
}

void device_state::refuse() const {
    const std::string name(driver_->name());
    throw state_error(name + " cannot be used in this process, which was forked from one that had used it: " +
                      (kind_ == device_kind::cuda ? "CUDA's driver does not survive a fork"
                                                  : "the device's threads stay with the parent") +
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
        // What Weir put into another thread's default stream is among the tails.
        if (one->queue->is_reachable()) {
            ends.push_back(one->now(where).at);
        }
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

void device_state::tell_streams(observe::observer& one) const {
    const std::lock_guard lock(mutex_);  // under it no stream of the list can end
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

device::device(detail::passkey /*key*/, runtime::device_state& state) noexcept : known_(&state.entry()) {}

runtime::device_state& device::state(detail::passkey /*key*/) const {
    if (runtime::device_state* const known = known_->opened.load(std::memory_order_acquire)) {
        return *known;
    }
    runtime::device_state& made = runtime::opened_device(kind(), id());
    known_->opened.store(&made, std::memory_order_release);
    return made;
}

device_kind device::kind() const noexcept { return known_->kind; }

int device::id() const noexcept { return known_->id; }

std::string device::name() const {
    if (const runtime::device_state* const known = known_->opened.load(std::memory_order_acquire)) {
        return std::string(known->driver().name());
    }
    const int number = kind() == device_kind::sim ? id() - runtime::device_state::first_stand_in : id();
    return "cuda:" + std::to_string(number);  // devices of other kinds are listed only once they are open
}

std::string device::to_string() const {
    const bool stands_for_cuda = kind() == device_kind::sim && id() >= runtime::device_state::first_stand_in;
    return "<weir.device " + name() + (stands_for_cuda ? " (simulated)>" : ">");
}

void device::synchronize(source_location where) const {
    const runtime::device_state* const of = runtime::find_opened(*known_);
    if (of == nullptr) {
        return;  // nothing was enqueued there
    }
    of->expect_usable();
    const std::vector<frontiers::point> tails = of->ends(where);
    for (const frontiers::point& tail : tails) {
        runtime::host_wait(tail, where);
    }
    observe::observers::notify([&](observe::observer& one) { one.device_waited(of->driver().name(), where); });
    runtime::failures::throw_first_unreported(tails);
}

void synchronize(source_location where) {
    std::exception_ptr first;
    for (runtime::device_state* one : runtime::devices_in_use()) {
        try {
            device(detail::key, *one).synchronize(where);
        } catch (...) {
            first = first ? first : std::current_exception();
        }
    }
    if (first) {
        std::rethrow_exception(first);
    }
}

}  // namespace weir
