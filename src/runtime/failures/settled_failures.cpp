// What the failure of an operation means for other operations (rule K4). The rest of stream_state is in stream_state.cpp.
#include "runtime/failures/settled_failures.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include "backend/backend.hpp"
#include "frontier/point.hpp"
#include "observe/observers.hpp"
#include "runtime/diagnostics/standstill.hpp"
#include "runtime/failures/failures.hpp"
#include "runtime/failures/poison.hpp"
#include "runtime/streams/stream_registry.hpp"
#include "runtime/streams/stream_state.hpp"
#include "weir/detail/mutex.hpp"

namespace weir::runtime {

namespace {

void poison_outputs(const pending_operations::entry& of, const failure_ptr& why) noexcept {
    for (std::size_t i = 0; i < of.accesses(); ++i) {
        const pending_access& access = of.access(i);
        if (access.writes()) {
            poison::add(*access.of, access.resource, access.where, why);
        }
    }
}

/// Why an operation must not run; null if it may.
failure_ptr reason_not_to_run(const pending_operations::entry& one) noexcept {
    for (std::size_t i = 0; i < one.accesses(); ++i) {
        const pending_access& access = one.access(i);
        if (!access.overwrites) {
            if (failure_ptr why = poison::find(access.resource, access.where)) {
                return why;
            }
        }
    }
    for (std::size_t i = 0; i < one.dependencies(); ++i) {
        if (failure_ptr why = failures::of(one.dependency(i))) {
            return why;
        }
    }
    return nullptr;
}

/// Removes from both what operations that have not run may still use. Throws std::bad_alloc.
void leave_what_matters(poison::numbers& resources, failures::dependencies& points) {
    stream_registry::each([&](stream_state& stream) {
        const std::lock_guard lock(stream.mutex);
        stream.pending.each(stream.completed(), [&](const pending_operations::entry& one) {
            for (std::size_t i = 0; i < one.accesses(); ++i) {
                resources.erase(one.access(i).resource);
            }
            for (std::size_t i = 0; i < one.dependencies(); ++i) {
                const frontiers::point at = one.dependency(i);
                points.erase({at.timeline, at.at});
            }
            return !resources.empty() || !points.empty();
        });
    });
}

/// How often to look. After each fruitless look the next one comes later, because a look visits everything that is pending.
struct patience {
    detail::mutex looking;               ///< held by the thread that looks; before all others in the lock order
    std::atomic<std::uint32_t> skip{0};  ///< number of calls still to skip
    std::atomic<std::uint32_t> next{1};  ///< number of calls to skip after the next fruitless look

    void start_anew() noexcept {
        skip.store(0, std::memory_order_relaxed);
        next.store(1, std::memory_order_relaxed);
    }
    [[nodiscard]] bool is_over() noexcept {
        std::uint32_t left = skip.load(std::memory_order_relaxed);
        if (left != 0) {
            skip.compare_exchange_strong(left, left - 1, std::memory_order_relaxed);
        }
        return left == 0;
    }
    void looked_in_vain() noexcept {
        const std::uint32_t calls = next.load(std::memory_order_relaxed);
        skip.store(calls, std::memory_order_relaxed);
        next.store(std::min<std::uint32_t>(2 * calls, 1024), std::memory_order_relaxed);
    }
};
constinit patience of_all;

}  // namespace

void stream_state::failed(backend::epoch at, const site& from, std::exception_ptr why) noexcept {
    observe::observers::notify([&](observe::observer& one) { one.failed({info_.timeline, at}); });
    failure::dispose();
    of_all.start_anew();
    const failure_ptr what = failure::make({info_.timeline, at}, from, std::move(why));
    failures::note({info_.timeline, at}, what);
    const std::lock_guard lock(mutex);
    if (const std::optional<pending_operations::entry> one = pending.find(at)) {
        poison_outputs(*one, what);
    }
}

void stream_state::lost(backend::epoch first, backend::epoch last, std::exception_ptr why) noexcept {
    for (backend::epoch at = first; at <= last; ++at) {
        if (failures::of({info_.timeline, at}) != nullptr) {
            continue;  // already noted: the driver refused it, or what it depends on had failed
        }
        site from;
        {
            const std::lock_guard lock(mutex);
            if (const std::optional<pending_operations::entry> one = pending.find(at)) {
                from = one->from();
            }
        }
        failed(at, from, why);
    }
}

bool stream_state::comes_after(backend::point target, backend::point what) noexcept {
    try {
        return runtime::comes_after(target, what);
    } catch (const std::bad_alloc&) {
        return true;  // no caller waits for the answer
    }
}

bool stream_state::examine(backend::epoch at) noexcept {
    const std::lock_guard lock(mutex);
    const std::optional<pending_operations::entry> one = pending.find(at);
    const failure_ptr cause = one ? reason_not_to_run(*one) : nullptr;
    if (!cause) {
        return true;
    }
    of_all.start_anew();
    const failure_ptr what = failure::make_dependent({info_.timeline, at}, one->from(), cause);
    failures::note({info_.timeline, at}, what);
    poison_outputs(*one, what);
    observe::observers::notify([&](observe::observer& each) { each.failed({info_.timeline, at}); });
    return false;
}

void stream_state::heal(backend::epoch at) noexcept {
    const std::lock_guard lock(mutex);
    const std::optional<pending_operations::entry> one = pending.find(at);
    for (std::size_t i = 0; one && i < one->accesses(); ++i) {
        const pending_access& access = one->access(i);
        if (access.overwrites) {
            poison::heal(access.resource, access.where);
        }
    }
}

void forget_settled_failures() noexcept {
    failure::dispose();
    if (!backend::queue_events::has_pending_failures()) {
        return;
    }
    const std::unique_lock lock(of_all.looking, std::try_to_lock);
    if (!lock || !of_all.is_over()) {
        return;
    }
    try {
        poison::numbers resources = poison::without_owner();
        failures::dependencies points = failures::awaited();
        const std::size_t looked_for = resources.size() + points.size();
        if (looked_for != 0) {
            leave_what_matters(resources, points);
            poison::forget(resources);
            failures::no_longer_awaited(points);
        }
        if (looked_for != 0 && resources.empty() && points.empty()) {
            of_all.looked_in_vain();
        } else {
            of_all.start_anew();
        }
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): a later call tries again
    }
}

}  // namespace weir::runtime
