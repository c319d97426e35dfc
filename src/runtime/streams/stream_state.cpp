#include "runtime/streams/stream_state.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "backend/fork_part.hpp"
#include "observe/acting.hpp"
#include "observe/observers.hpp"
#include "runtime/devices/device_state.hpp"
#include "runtime/diagnostics/watchdog.hpp"
#include "runtime/failures/failures.hpp"
#include "runtime/failures/poison.hpp"
#include "runtime/host/fork.hpp"
#include "runtime/host/host.hpp"
#include "runtime/numbers.hpp"
#include "runtime/streams/adopted_queue.hpp"
#include "runtime/streams/adopted_streams.hpp"
#include "runtime/streams/side_stream.hpp"
#include "runtime/streams/stream_registry.hpp"
#include "weir/completion.hpp"
#include "weir/detail/interruption.hpp"
#include "weir/detail/passkey.hpp"
#include "weir/error.hpp"

namespace weir::runtime {

std::uint64_t next_stream_number() noexcept {
    static std::atomic<std::uint64_t> next{1};
    return next.fetch_add(1, std::memory_order_relaxed);
}

/// Identifies CUDA's default streams by their handles (rule S6).
observe::default_kind stream_state::default_of(const native_source& native) noexcept {
    const auto number = reinterpret_cast<std::uintptr_t>(native.handle);
    if (native.queue != nullptr || number > 2) {
        return observe::default_kind::none;
    }
    return number == 2 ? observe::default_kind::thread : observe::default_kind::legacy;
}

detail::owner<stream_state> stream_state::make(device_state& device, const backend::queue_options& how,
                                               std::string name) {
    detail::owner<stream_state> made = make(device, how, std::move(name), nullptr, observe::default_kind::none);
    made->enter();
    return made;
}

detail::owner<stream_state> stream_state::make_default(device_state& device) {
    detail::owner<stream_state> made = make(device, {}, "default", nullptr, observe::default_kind::device);
    made->enter();
    return made;
}

detail::owner<stream_state> stream_state::make(device_state& device, const backend::queue_options& how,
                                               std::string name, const native_source* native,
                                               observe::default_kind default_of) {
    fork_guard::expect_usable();
    device.expect_usable();
    failures::arm();
    poison::arm();
    watchdog::arm();
    const frontiers::timeline_id timeline = backend::timeline_table::instance().acquire(&device.driver());
    stream_state* fresh = nullptr;
    try {
        fresh = new stream_state(device, timeline, how, std::move(name), native,
                                 default_of);  // NOLINT: owned by the next line
    } catch (...) {
        backend::timeline_table::instance().release(timeline);
        throw;
    }
    return detail::owner<stream_state>(fresh);
}

void stream_state::enter() {
    device_->add(*this);
    stream_registry::add(timeline(), *this);
    observe::observers::notify([&](observe::observer& one) { one.stream_made(info_); });
}

stream_state::stream_state(device_state& device, frontiers::timeline_id timeline, const backend::queue_options& how,
                           std::string name, const native_source* native, observe::default_kind default_of)
    : sequence(timeline, backend::timeline_table::instance().completed(timeline)),
      is_shared_(native != nullptr),
      device_(&device),
      memory_space_(&device.memory_space()),
      name_(std::move(name)),
      how_(how),
      native_(native == nullptr ? nullptr : native->queue) {
    info_.id = next_stream_number();
    info_.timeline = timeline;
    info_.before = sequence.tail();
    if (name_.empty()) {
        name_ = "stream " + std::to_string(info_.id);
    }
    info_.name = name_;
    info_.device = device.driver().name();
    info_.default_of = default_of;
    backend::timeline& line = backend::timeline_table::instance().at(timeline);
    if (native == nullptr) {
        queue = device.driver().make_queue(line, *this, how);
        note_queue();
        if (void* const handle = queue->handle()) {
            info_.handle = observe::handle_of_queue(reinterpret_cast<std::uintptr_t>(handle));
        }
        return;
    }
    native_id_ = native->identity;
    info_.queue = native_id_.id;
    if (native_ == nullptr) {
        queue = device.driver().adopt_queue(native->handle, line, *this);
        info_.handle = observe::handle_of_queue(reinterpret_cast<std::uintptr_t>(native->handle));
    } else {
        backend::queue_events& events = *this;
        queue = std::make_unique<adopted_queue>(*native_, timeline, events);
    }
    note_queue();
    how_.blocking = ordered_as_ == backend::implicit_order::blocking;
}

void stream_state::note_queue() noexcept {
    fast = queue->fast();
    how_.priority = queue->priority().value_or(how_.priority);
    ordered_as_ = queue->ordered_as();
    if (ordered_as_ != backend::implicit_order::none) {
        info_.order = ordered_as_ == backend::implicit_order::legacy ? "legacy" : "blocking";
    }
    has_company_ = is_shared() || ordered_as_ != backend::implicit_order::none;
}

detail::owner<stream_state> stream_state::adopt(native_queue& native, std::shared_ptr<void> owner) {
    return adopt(native.device().state(detail::key), {&native, nullptr, {nullptr, native.unique_id()}},
                 std::move(owner));
}

detail::owner<stream_state> stream_state::adopt(device_state& device, void* handle, std::shared_ptr<void> owner) {
    device.expect_usable();
    return adopt(device, {nullptr, handle, {&device, device.driver().identify(handle)}}, std::move(owner));
}

detail::owner<stream_state> stream_state::adopt(device_state& device, const native_source& native,
                                                std::shared_ptr<void> owner) {
    std::unique_ptr<retired_owner> kept;
    if (owner) {
        reaper::start();
        kept = std::make_unique<retired_owner>(std::move(owner));
    }
    return adopted_streams::find_or_add(native.identity, kept, [&] {
        return make(device, {}, "adopted queue " + std::to_string(native.identity.id), &native, default_of(native));
    });
}

void* stream_state::hand_out() {
    void* handle = nullptr;
    {
        const std::lock_guard lock(mutex);
        expect_open();
        handle = queue->handle();
        if (handle == nullptr || is_adopted()) {
            return handle;
        }
    }
    if (!is_shared()) {
        // A caller that adopts the handle gets this stream (rule S5).
        adopted_streams::add({device_, device_->driver().identify(handle)}, *this);
    }
    frontiers::point end;
    {
        const std::lock_guard lock(mutex);
        if (!is_shared()) {
            queue->share();
            is_shared_.store(true, std::memory_order_release);
            has_company_.store(true, std::memory_order_release);
        }
        end = {timeline(), sequence.tail()};
    }
    // Also if another thread is sharing the stream at this moment.
    const watchdog::waits_in here(
        {}, "the handle of a stream, for which another thread is giving the driver an operation or an event");
    queue->await_shared(end);
    if (const auto* const answers = detail::interruptible::current()) {
        answers->expect_not_ended();  // the program must not put work into the stream yet
    }
    return handle;
}

void stream_state::last_owner_gone() noexcept {
    if (fork_guard::is_refused() || device_->stayed_behind()) {
        return;  // a thread that is gone may hold the locks, and the driver is the parent's: a leak is better than a hang (rule L3)
    }
    // Nothing is pending: while the queue had work, it was an owner. From here on another stream may get the timeline.
    const frontiers::timeline_id timeline = info_.timeline;
    const std::uint64_t id = info_.id;
    std::unique_ptr<retired_owner> owner = std::move(native_owner_);
    if (is_listed_) {
        adopted_streams::remove(*this);
    }
    tell_gone();  // before the device removes it: a wait for the device covers the stream in any case
    device_->remove(*this);
    stream_registry::remove(timeline);
    failures::forget_unreported(timeline);
    delete this;
    backend::timeline_table::instance().release(timeline);
    side_streams::forget(id);
    if (owner) {
        retired_owner::retire(std::move(owner));
    }
}

void stream_state::tell_gone() noexcept {
    if (!observe::observers::any()) {
        return;
    }
    frontiers::point last;
    {
        const std::lock_guard lock(mutex);
        last = sequence.record().at;
    }
    if (last.at != 0) {
        observe::observers::notify([&](observe::observer& one) { one.stream_gone(info_, last); });
    }
}

void stream_state::expect_open() const {
    if (closed.load(std::memory_order_acquire)) {
        device_->expect_usable();
        throw state_error("the stream \"" + name_ + "\" is closed: make a new one with weir::stream(device)");
    }
}

void stream_state::expect_no_capture() const {
    if (is_shared()) {
        device_->expect_usable();
        queue->expect_no_capture();
    }
}

namespace {

/// Whether the calling thread runs code that must return before the waits can complete.
bool are_for_itself(std::span<const order::wait> waits) noexcept {
    const frontiers::point self = observe::acting_for::current();
    return self.at != 0 &&
           std::any_of(waits.begin(), waits.end(), [&](const order::wait& one) { return covers(one.target, self); });
}

}  // namespace

void stream_state::expect_handed_back_at_once(std::span<const order::wait> waits) const {
    if (is_shared() && native_ == nullptr && are_for_itself(waits)) {
        throw state_error(
            "memory of the operation is shared with a package, whose stream \"" + name_ +
            "\" gets it back once the operation is over, which is not before the host task is that enqueues it: "
            "enqueue it after the task, or give the task other memory");
    }
}

void stream_state::expect_not_behind_itself(std::span<const order::wait> waits) const {
    if (info_.default_of == observe::default_kind::thread && are_for_itself(waits)) {
        throw state_error(
            "the stream \"" + name_ +
            "\" is the default stream of the thread that runs this host task (handle 2), and what is to enter it "
            "comes after the task itself: enqueue it into a stream that weir::stream(device) makes, or after the "
            "task");
    }
}

order::mark stream_state::tail() {
    fork_guard::expect_usable();
    const std::lock_guard lock(mutex);
    return sequence.record();
}

void stream_state::follow_others(const source_location& where) {
    for (const auto& other : device_->ordered_with(*this)) {
        follow(*other, where);
    }
}

bool stream_state::has_followed(frontiers::point end) const {
    const auto found = followed_.find(end.timeline);
    return found != followed_.end() && found->second == end.at;
}

/// Records a wait for `other` that the device makes implicitly. The wait takes an epoch, so that a wait for the stream's tail
/// covers it from here on.
void stream_state::follow(stream_state& other, const source_location& where) {
    const order::mark end = other.tail();
    const bool observed = observe::observers::any();
    std::unique_lock lock(mutex);
    if (closed.load(std::memory_order_acquire)) {
        return;  // the call that enqueues into the stream throws
    }
    order::plan plan = sequence.next(backend::timeline_table::instance());
    plan.need(end, order::reason::dependency);
    if (!observed) {
        followed_.clear();
    }
    const bool is_new = end.at.at != 0 && (observed ? !has_followed(end.at) : !plan.waits().empty());
    if (!is_new) {
        return;
    }
    expect_not_behind_itself(plan.waits());
    queue->reserve(plan.waits().size(), {});
    reserve_pending(0, 1);
    backend::epoch* const followed = observed ? &followed_[end.at.timeline] : nullptr;
    order::clock after = plan.clock_after();
    const frontiers::point at = sequence.reserve(std::move(after)).at;
    if (followed != nullptr) {
        *followed = end.at.at;  // after everything that can throw: a call that failed has followed nothing
    }
    pending.add(at.at, {"implicit order", where}, pending_kind::wait, plan.waits().empty() ? nullptr : &end.at);
    if (!plan.waits().empty()) {
        queue->wait(end.at);  // costs nothing once the device has both
    }
    queue->submit(at.at, {{}, {}});
    observe::observers::notify([&](observe::observer& one) {
        one.stream_waits(info_, at.at, end.at, 0, observe::wait_made::by_device, where);
    });
    lock.unlock();
    queue->flush(at);
}

order::mark stream_state::now(const source_location& where) {
    device_->expect_usable();
    make_ready(where);
    if (!is_shared()) {
        return tail();
    }
    fork_guard::expect_usable();
    order::mark end;
    {
        const std::lock_guard lock(mutex);
        end = record_end(where);
        // An event without a handle, number 0: observers see every epoch.
        observe::observers::notify([&](observe::observer& one) { one.event_recorded(0, info_, end.at, where); });
    }
    publish_end(end);
    return end;
}

order::mark stream_state::record_end(const source_location& where) {
    if (!is_shared()) {
        return sequence.record();
    }
    const site from{"the end of an adopted queue", where};
    queue->reserve(0, {});
    reserve_pending(0, 0);
    order::mark fresh = sequence.enter_foreign();
    pending.add(fresh.at.at, from, pending_kind::wait, nullptr);
    queue->submit(fresh.at.at, {{}, from});
    return fresh;
}

void stream_state::publish_end(const order::mark& end) {
    if (!is_shared()) {
        return;
    }
    queue->flush(end.at);
    if (const failure_ptr refused = failures::of(end.at)) {
        failures::raise(refused);
    }
}

bool stream_state::idle(const source_location& where) {
    fork_guard::expect_usable();
    device_->expect_usable();
    if (is_shared() && !(native_ != nullptr ? native_->idle() : queue->is_idle())) {
        return false;
    }
    return host_ask(tail().at, where);
}

void stream_state::executed(backend::epoch at, std::chrono::steady_clock::time_point start,
                            std::chrono::steady_clock::time_point end) noexcept {
    // The host reads the times of an adopted queue's work.
    const bool virtual_clock = native_ == nullptr && device_->driver().has_virtual_clock();
    observe::observers::notify([&](observe::observer& one) {
        one.executed({{info_.timeline, at}, start, end, virtual_clock});
    });
}

stream_registry::registry& stream_registry::instance() {
    static auto* const one = new registry;  // NOLINT(cppcoreguidelines-owning-memory): lives for ever
    return *one;
}

void stream_registry::add(frontiers::timeline_id timeline, stream_state& stream) {
    registry& all = instance();
    const std::lock_guard lock(all.mutex);
    all.streams.emplace(timeline, &stream);
}

namespace {

/// Whether a stream has work that is not complete.
class streams_part final : public backend::fork_part {
    finding look(std::span<char> owner) noexcept override { return stream_registry::look_for_work(owner); }
};
streams_part streams_at_fork;

// At static initialization, so that no fork finds it half constructed.
[[maybe_unused]] const bool streams_at_start = (stream_registry::each([](const stream_state&) {}), true);

}  // namespace

backend::fork_part::finding stream_registry::look_for_work(std::span<char> owner) noexcept {
    using finding = backend::fork_part::finding;
    registry& all = instance();
    const std::unique_lock lock(all.mutex, std::try_to_lock);
    if (!lock) {
        return finding::unknown;
    }
    finding found = finding::quiet;
    for (const auto& [timeline, stream] : all.streams) {
        if (stream->device().stayed_behind()) {
            continue;
        }
        const std::unique_lock stream_lock(stream->mutex, std::try_to_lock);
        if (!stream_lock) {
            found = finding::unknown;
        } else if (stream->completed() < stream->sequence.tail()) {
            const observe::stream_info& its = stream->info();
            std::snprintf(owner.data(), owner.size(), "in the stream \"%.*s\" of %.*s",
                          static_cast<int>(its.name.size()), its.name.data(), static_cast<int>(its.device.size()),
                          its.device.data());
            return finding::busy;
        }
    }
    return found;
}

namespace {

/// The stream's lock is held, or no thread uses the stream.
void add_counts(stream_registry::totals& to, const stream_state& stream) noexcept {
    to.operations += stream.sequence.reserved();
    to.waits.issued += stream.needs.counts.issued;
    to.waits.elided += stream.needs.counts.elided;
}

}  // namespace

void stream_registry::remove(frontiers::timeline_id timeline) noexcept {
    registry& all = instance();
    const std::lock_guard lock(all.mutex);
    if (const auto found = all.streams.find(timeline); found != all.streams.end()) {
        add_counts(all.gone, *found->second);  // its last owner is gone, so that no thread uses it
        all.streams.erase(found);
    }
}

stream_registry::totals stream_registry::count() noexcept {
    registry& all = instance();
    const std::lock_guard lock(all.mutex);
    totals sum = all.gone;
    for (const auto& [timeline, stream] : all.streams) {
        const std::lock_guard its(stream->mutex);
        add_counts(sum, *stream);
    }
    return sum;
}

}  // namespace weir::runtime
