#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "observe/observer.hpp"
#include "weir/access.hpp"

namespace weir::testing {

/// A made-up program, reported to one observer as the runtime would report it: unit tests of observers need
/// neither a device nor luck with timing.
class observer_script {
public:
    /// `first`: where the numbers of its streams and timelines begin, beside others of the process.
    explicit observer_script(observe::observer& told, frontiers::timeline_id first = 0)
        : told_(&told), first_(first), next_timeline_(first) {}

    struct stream {
        observe::stream_info info;
        std::string name;
        frontiers::epoch tail = 0;
        [[nodiscard]] frontiers::point at() const { return {info.timeline, tail}; }
    };
    struct access {
        std::uint64_t resource = 1;
        order::access_mode mode = order::access_mode::read;
        order::footprint where = {0, 64};
        ordering_mode ordering = ordering_mode::manual;
        observe::certainty touches = observe::certainty::definite;
        observe::sharing shared = observe::sharing::none;
        std::uint64_t address = 0;
    };

    /// A new stream. With `after`: on a timeline that another stream had before. With `queue`: a stream adopted from the queue of that
    /// number. With `handle`: of device cuda:0, which the driver knows by that.
    stream& make_stream(const std::string& name, const stream* after = nullptr, std::uint64_t queue = 0,
                        observe::default_kind default_of = observe::default_kind::none, std::uint64_t handle = 0) {
        stream& made = streams_.emplace_back();
        made.name = name;
        made.info.id = first_ + streams_.size() + 10;  // not the number of the timeline
        made.info.timeline = after == nullptr ? next_timeline_++ : after->info.timeline;
        made.info.before = made.tail = after == nullptr ? 0 : after->tail;
        made.info.name = made.name;
        made.info.device = handle == 0 ? "cpu" : "cuda:0";
        made.info.handle = handle;
        made.info.queue = queue;
        made.info.default_of = default_of;
        told_->stream_made(made.info);
        return made;
    }

    static source_location line(std::uint32_t number) { return {"program.cpp", "run", number}; }

    /// 64 bytes of memory for `resource`, by default at an address of its own.
    void allocate(const stream& on, std::uint64_t resource, std::uint32_t number, std::uint64_t address = 0) {
        const std::uint64_t own = 0x10000 + 0x1000 * resource;
        told_->allocated({resource, 64, "cpu", address == 0 ? own : address, &on.info, line(number)});
    }
    /// One of several owners releases the memory.
    void release(std::uint64_t resource) { told_->released(resource); }
    /// The last owner releases it.
    void drop(std::uint64_t resource) {
        release(resource);
        told_->dropped(resource);
    }

    /// Enqueues an operation; its label is a literal.
    frontiers::point enqueue(stream& on, std::uint32_t number, const std::vector<access>& accesses,
                             const std::vector<frontiers::point>& after = {}, const char* label = nullptr,
                             const std::vector<observe::observed_wait>& waits = {},
                             const std::vector<order::elision>& elisions = {},
                             const std::vector<frontiers::point>& entries = {}) {
        std::vector<observe::observed_access> observed;
        for (const access& one : accesses) {
            observed.push_back(seen(one));
        }
        told_->operation({&on.info,
                          ++on.tail,
                          {label, line(number)},
                          runtime::work_kind::device,
                          observed,
                          after,
                          waits,
                          elisions,
                          entries});
        return on.at();
    }
    /// An operation on memory that is shared with a package, which works in `queue`: it starts after the work there, and hands the memory
    /// back. `left_to_weir`: Weir orders it, and not only for check's sake.
    void enqueue_between(stream& on, stream& queue, std::uint32_t number, const std::vector<access>& accesses,
                         bool left_to_weir = true) {
        const frontiers::point entry = enter(queue);
        enqueue(on, number, accesses, {}, nullptr, {{entry, order::reason::entry, !left_to_weir}}, {},
                left_to_weir ? std::vector{entry} : std::vector<frontiers::point>{});
        hand_back(queue, on.at(), left_to_weir);
    }
    /// A moment that stands for the work that others have put into a queue.
    frontiers::point enter(stream& queue) {
        ++queue.tail;
        return record(queue, 0);
    }
    void hand_back(stream& queue, frontiers::point done, bool left_to_weir = true) {
        enqueue(queue, 0, {}, {}, "hand back", {{done, order::reason::exit, !left_to_weir}});
    }
    /// A package reports that it has used a resource.
    void use(std::uint64_t resource, stream& queue) {
        told_->package_used(resource, {0, 64}, order::access_mode::write, enter(queue));
    }

    /// Records event `event` at the stream's tail.
    frontiers::point record(stream& on, std::uint64_t event, std::uint32_t number = 0) {
        told_->event_recorded(event, on.info, on.at(), line(number));
        return on.at();
    }
    void wait(stream& on, frontiers::point target, std::uint64_t event = 0, bool issued = true,
              std::uint32_t number = 0) {
        ++on.tail;
        told_->stream_waits(on.info, on.tail, target, event,
                            issued ? observe::wait_made::issued : observe::wait_made::implied, line(number));
    }
    /// The device itself orders the stream after `target`.
    void follow(stream& on, frontiers::point target) {
        ++on.tail;
        told_->stream_waits(on.info, on.tail, target, 0, observe::wait_made::by_device, line(0));
    }
    void host_waits(frontiers::point target) { told_->host_waited(target, line(0)); }
    void host_meets(stream& queue) { told_->host_met_package(enter(queue)); }
    /// The host asks whether an access may conflict with anything pending; the answer is no.
    void host_finds_ready(const access& one) { told_->host_found_ready(seen(one)); }
    void host_accesses(const access& one, std::uint32_t number) { told_->host_access(seen(one), line(number)); }

private:
    static observe::observed_access seen(const access& one) {
        return {one.resource, 64,          one.where, one.mode,   one.ordering,
                false,        one.touches, nullptr,   one.shared, one.address};
    }

    observe::observer* told_;
    std::deque<stream> streams_;
    frontiers::timeline_id first_;
    frontiers::timeline_id next_timeline_;
};

inline observer_script::access reads(std::uint64_t resource, order::footprint where = {0, 64}) {
    return {resource, order::access_mode::read, where, ordering_mode::manual};
}
inline observer_script::access writes(std::uint64_t resource, order::footprint where = {0, 64}) {
    return {resource, order::access_mode::write, where, ordering_mode::manual};
}
/// The access may touch what it names, or not.
inline observer_script::access possibly(observer_script::access one) {
    one.touches = observe::certainty::possible;
    return one;
}
inline observer_script::access automatic(observer_script::access one) {
    one.ordering = ordering_mode::automatic;
    return one;
}

}  // namespace weir::testing
