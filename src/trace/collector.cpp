#include "trace/collector.hpp"

#include <new>
#include <utility>

namespace weir::trace {

template <class Make>
void collector::note(Make&& make) noexcept {
    const std::lock_guard lock(mutex_);
    try {
        auto made = make();
        // The time is read under the lock, so that times do not decrease from record to record.
        log_.records.push_back({std::chrono::steady_clock::now() - begin_, std::move(made)});
    } catch (const std::bad_alloc&) {
        ++log_.lost;
    }
}

void collector::meet(const observe::stream_info& stream, bool is_new) {
    const moment former = moment_of({stream.timeline, stream.before});  // before the directory knows the new stream
    if (directory_.add(stream)) {
        log_.records.push_back({std::chrono::steady_clock::now() - begin_,
                                trace::stream_made{stream.id, log_.keep(stream.name), log_.keep(stream.device), is_new,
                                                   stream.queue, former, log_.keep(stream.order)}});
    }
}

void collector::knows_all_streams() noexcept {
    const std::lock_guard lock(mutex_);
    knows_all_streams_ = true;
}

void collector::stream_made(const observe::stream_info& stream) {
    const std::lock_guard lock(mutex_);
    try {
        meet(stream, knows_all_streams_);
    } catch (const std::bad_alloc&) {
        ++log_.lost;
    }
}

void collector::stream_gone(const observe::stream_info& stream, frontiers::point last) {
    const std::lock_guard lock(mutex_);
    try {
        gone_.add(stream, last);
    } catch (const std::bad_alloc&) {
        ++log_.lost;
    }
}

void collector::operation(const observe::observed_operation& what) {
    note([&] {
        meet(*what.stream);
        trace::operation one{{what.stream->id, what.epoch}, what.from, what.kind, {}, {}, {}, {}};
        one.accesses.assign(what.accesses.begin(), what.accesses.end());
        for (observe::observed_access& access : one.accesses) {
            access.token = access.token == nullptr ? nullptr : log_.keep(access.token);
        }
        one.after.reserve(what.after.size());
        for (const frontiers::point after : what.after) {
            one.after.push_back(moment_of(after));
        }
        one.waits.reserve(what.waits.size());
        for (const observe::observed_wait& wait : what.waits) {
            one.waits.push_back({moment_of(wait.target), wait.why, wait.hazard_of_manual});
        }
        one.elisions.reserve(what.elisions.size());
        for (const order::elision& elided : what.elisions) {
            one.elisions.push_back({moment_of(elided.target), elided.why, elided.kind, moment_of(elided.witness)});
        }
        return one;
    });
}

void collector::event_recorded(std::uint64_t event, const observe::stream_info& stream, frontiers::point at,
                               const source_location& where) {
    note([&] {
        meet(stream);
        return trace::event_recorded{event, {stream.id, at.at}, where};
    });
}

void collector::stream_waits(const observe::stream_info& stream, frontiers::epoch at, frontiers::point target,
                             std::uint64_t event, observe::wait_made how, const source_location& where) {
    note([&] {
        meet(stream);
        return stream_wait{{stream.id, at}, moment_of(target), event, how, where};
    });
}

void collector::host_waited(frontiers::point target, const source_location& where) {
    note([&] { return host_wait{moment_of(target), where}; });
}

void collector::device_waited(std::string_view device, const source_location& where) {
    const std::lock_guard lock(mutex_);
    try {
        gone_.waited(device, [&](frontiers::point last) {
            log_.records.push_back({std::chrono::steady_clock::now() - begin_, host_wait{moment_of(last), where}});
        });
    } catch (const std::bad_alloc&) {
        ++log_.lost;
    }
}

void collector::host_access(const observe::observed_access& what, const source_location& where) {
    note([&] { return trace::host_access{what, where}; });
}

void collector::allocated(const observe::observed_allocation& what) {
    note([&] {
        if (what.stream != nullptr) {
            meet(*what.stream);
        }
        return allocation{what.resource,
                          what.bytes,
                          log_.keep(what.device),
                          what.address,
                          what.stream == nullptr ? 0 : what.stream->id,
                          what.from};
    });
}

void collector::dropped(std::uint64_t resource) {
    note([&] { return drop{resource}; });
}

void collector::failed(frontiers::point which) noexcept {
    note([&] { return failure{moment_of(which)}; });
}

void collector::executed(const observe::observed_execution& what) noexcept {
    note([&] {
        return execution{moment_of(what.which), what.start - begin_, what.end - begin_,
                         what.virtual_clock ? clock_kind::virtual_time : clock_kind::steady};
    });
}

}  // namespace weir::trace
