#include "check/detector.hpp"

#include <algorithm>
#include <utility>

#include "check/wording.hpp"
#include "weir/completion.hpp"
#include "weir/error.hpp"

namespace weir::check {

namespace {

std::string key_of(const race_access& first, const race_access& second) {
    return first.file + ":" + std::to_string(first.line) + "\n" + second.file + ":" + std::to_string(second.line) +
           (second.is_drop ? "\ndrop" : "");
}

const char* kind_of(order::access_mode first, order::access_mode second) noexcept {
    if (second == order::access_mode::read) {
        return "RAW";
    }
    return first == order::access_mode::write ? "WAW" : "WAR";
}

}  // namespace

template <class Act>
void detector::note(Act&& act) noexcept {
    const std::lock_guard lock(mutex_);
    try {
        order_.act_for(runtime::acting());
        act();
    } catch (const std::bad_alloc&) {
        ++lost_;
    }
}

bool detector::left_to_weir(const runtime::observed_access& access) const noexcept {
    return access.is_internal || (access.ordering == ordering_mode::automatic && !options_.assume_manual);
}

void detector::join_packages(agent self, const runtime::observed_operation& what) {
    if (options_.assume_manual) {
        return;
    }
    const auto join = [&](frontiers::point target) {
        if (const auto past = order_.find(target)) {
            order_.join(self, *past);
        }
    };
    for (const frontiers::point entry : what.entries) {
        join(entry);
    }
    for (const runtime::observed_wait& wait : what.waits) {
        if (wait.why == order::reason::exit && !wait.hazard_of_manual) {
            join(wait.target);
        }
    }
}

template <class Join>
void detector::join_conflicts(const runtime::observed_access& access, Join&& join) {
    if (left_to_weir(access)) {
        const memory& one = memory_[access.resource];
        one.history.conflicts(access.where, access.mode, [&](const past_access& past) { join(past.when); });
        one.packages.conflicts(access.where, access.mode, [&](const past_access& past) { join(past.when); });
    }
}

void detector::stream_made(const runtime::stream_info& stream) {
    note([&] { order_.of(stream); });
}

void detector::stream_gone(const runtime::stream_info& stream, frontiers::point last) {
    note([&] { gone_.add(stream, last); });
}

void detector::operation(const runtime::observed_operation& what) {
    note([&] {
        const agent self = order_.of(*what.stream);
        const moment now{self, what.epoch};
        order_.join_actor(self);
        for (const completion& one : what.after) {
            const frontiers::point target{one.timeline(), one.epoch()};
            events_.waited(now, target, order_, what.from.where);
            if (const auto past = order_.find(target)) {
                order_.join(self, *past);
            }
        }
        join_packages(self, what);
        // What Weir orders comes first: its waits hold the whole operation back, so they order its other accesses, too.
        // What counts is that Weir orders the two, not which waits it found to be missing at that moment.
        for (const auto& access : what.accesses) {
            join_conflicts(access, [&](moment past) { order_.join(self, past); });
        }
        order_.reach(self, what.epoch);
        const auto is_before = [&](const past_access& past) { return order_.ordered(self, past.when); };
        for (const auto& access : what.accesses) {
            look_back(access, {access.where, access.mode, self, what.from}, is_before);
        }
        for (const auto& access : what.accesses) {
            access_history& history = memory_[access.resource].history;
            history.replace(access.where, access.mode, is_before);
            history.add({access.resource, access.where, access.mode, now, what.from, left_to_weir(access)});
        }
    });
}

void detector::event_recorded(std::uint64_t event, const runtime::stream_info& stream, frontiers::point at,
                              const source_location& where) {
    note([&] { events_.recorded(event, {order_.of(stream), at.at}, at, where); });
}

void detector::stream_waits(const runtime::stream_info& stream, frontiers::epoch at, frontiers::point target,
                            std::uint64_t event, runtime::wait_made /*how*/, const source_location& where) {
    note([&] {
        const agent self = order_.of(stream);
        order_.join_actor(self);
        if (event != 0) {
            events_.waited(event, {self, at}, target, order_, where);
        }
        if (const auto past = order_.find(target)) {
            order_.join(self, *past);
        }
        order_.reach(self, at);
    });
}

void detector::host_waited(frontiers::point target, const source_location& /*where*/) {
    note([&] {
        if (const auto past = order_.find(target)) {
            order_.actor_joins(*past);
        }
    });
}

void detector::device_waited(std::string_view device, const source_location& /*where*/) {
    note([&] {
        gone_.waited(device, [&](frontiers::point last) {
            if (const auto past = order_.find(last)) {
                order_.actor_joins(*past);
            }
        });
    });
}

void detector::host_access(const runtime::observed_access& what, const source_location& where) {
    note([&] {
        join_conflicts(what, [&](moment past) { order_.actor_joins(past); });
        look_back(what, {what.where, what.mode, std::nullopt, {nullptr, where}},
                  [&](const past_access& past) { return order_.ordered_for_actor(past.when); });
        // Not kept: what is enqueued later comes after it, since the host does one thing after the other, and a view that
        // lives on holds back what conflicts with it (rule X7).
    });
}

void detector::host_met_package(frontiers::point entry) {
    note([&] {
        const auto past = order_.find(entry);
        if (past && !options_.assume_manual) {
            order_.actor_joins(*past);
        }
    });
}

void detector::package_used(std::uint64_t resource, const order::footprint& where, order::access_mode mode,
                            frontiers::point at) {
    note([&] {
        if (const auto when = order_.find(at)) {
            access_history& packages = memory_[resource].packages;
            packages.replace(where, mode, [&](const past_access& past) { return order_.ordered(past.when, *when); });
            packages.add({resource, where, mode, *when, {}});
        }
    });
}

template <class IsBefore>
void detector::look_back(const runtime::observed_access& access, const present& second, IsBefore&& is_before) {
    memory& one = memory_[access.resource];
    one.size = access.bytes;
    one.history.conflicts(access.where, access.mode, [&](const past_access& past) {
        if (!is_before(past)) {
            found(fault::unordered, past, second, access.resource, one);
        }
    });
    // Weir's waits for former owners order nothing here: which memory an owner is given is luck.
    const bool is_safe = left_to_weir(access);
    one.former.conflicts(access.where, access.mode, [&](const past_access& past) {
        if (!is_safe && !is_before(past)) {
            found(fault::early_reuse, past, second, access.resource, one);
        }
    });
    one.former.replace(access.where, access.mode, [&](const past_access& past) { return is_safe || is_before(past); });
}

void detector::allocated(const runtime::observed_allocation& what) {
    note([&] {
        memory& one = memory_[what.resource];
        one.bytes = what.bytes;
        one.allocated = what.from;
        if (what.address != 0) {
            one.place = {std::string(what.device), what.address, what.bytes};
            one.former = freed_.take(one.place);
        }
        if (what.stream != nullptr) {
            one.allocator = order_.of(*what.stream);
        }
    });
}

void detector::released(std::uint64_t resource) {
    note([&] {
        const auto found = memory_.find(resource);
        if (found != memory_.end() && found->second.allocator) {
            found->second.end.release(order_, order_.known(*found->second.allocator));
        }
    });
}

void detector::dropped(std::uint64_t resource) {
    note([&] {
        const auto found = memory_.find(resource);
        if (found != memory_.end()) {
            judge_end(resource, found->second);
            memory_.erase(found);  // nobody can use it any more under this number
        }
    });
}

void detector::judge_end(std::uint64_t resource, const memory& one) {
    std::vector<past_access> strays = one.former.all();
    for (const past_access& past : one.history.all()) {
        if (past.left_to_weir) {
            continue;
        }
        if (one.bytes == 0) {
            unjudged_drops_ += order_.ordered_for_actor(past.when) ? 0U : 1U;
        } else if (!one.allocator) {
            break;  // others own it, and let go of it when the last access is over (rule L4)
        } else if (past.when.who != *one.allocator && !one.end.comes_after(past.when, order_.known(*one.allocator))) {
            const present drop{
                {0, one.bytes}, order::access_mode::write, one.allocator, {nullptr, one.allocated}, true};
            found(fault::use_after_free, past, drop, resource, one);
            strays.push_back(past);
        }
    }
    if (one.place.bytes != 0) {
        freed_.add(one.place, strays);
    }
}

void detector::found(fault what, const past_access& first, const present& second, std::uint64_t resource,
                     const memory& of) {
    race one;
    one.first = describe(first.from, first.when.who);
    one.second = describe(second.from, second.who);
    one.second.is_drop = second.is_drop;
    const bool is_certain =
        second.is_drop || (first.is_exact && compare(first.where, second.where) == order::overlap_kind::certain);
    one.certainty = is_certain ? "definite" : "possible";
    std::string key = key_of(one.first, one.second);
    const auto known = by_lines_.find(key);
    if (known != by_lines_.end()) {
        race& before = races_[known->second];
        ++before.times;
        if (is_certain) {
            before.certainty = one.certainty;
        }
        if (options_.mode == check_mode::raise) {
            raise(before);
        }
        return;
    }
    complete(one, what, first, second, resource, of);
    if (options_.mode == check_mode::raise) {
        raise(one);
    } else if (options_.mode == check_mode::warn) {
        runtime::verdicts::tell_later(warn_, "weir check: " + text_of(one));
    }
    races_.push_back(std::move(one));
    by_lines_.emplace(std::move(key), races_.size() - 1);
}

void detector::raise(const race& one) const {
    runtime::verdicts::raise_later(std::make_exception_ptr(race_error("weir check: " + text_of(one))));
}

void detector::complete(race& one, fault what, const past_access& first, const present& second, std::uint64_t resource,
                        const memory& of) const {
    const auto touches = [](race_access& access, const order::footprint& where, order::access_mode mode) {
        access.range = where;
        access.mode = mode;
    };
    touches(one.first, first.where, first.mode);
    touches(one.second, second.where, second.mode);
    one.first.resource = first.resource;
    one.second.resource = resource;
    one.second.array =
        "memory #" + std::to_string(resource) + " of " + std::to_string(of.bytes == 0 ? of.size : of.bytes) + " bytes";
    if (of.allocated.line != 0) {
        one.second.array +=
            std::string(", allocated at ") + of.allocated.file + ":" + std::to_string(of.allocated.line);
    }
    one.first.array = first.resource == resource
                          ? one.second.array
                          : "memory #" + std::to_string(first.resource) + ", which was dropped before";
    if (what == fault::use_after_free) {
        one.kind = "use-after-free";
    } else if (what == fault::early_reuse) {
        one.kind = "early-reuse";
    } else if (const auto stale = stale_wait_before(first, second)) {
        one.kind = "stale-event";
        one.reason = reason_of(*stale);
    } else if (second.who && order_.default_of(first.when.who) != order_.default_of(*second.who)) {
        one.kind = "default-stream";
        one.reason = reason_of(one, order_.default_of(first.when.who), order_.default_of(*second.who));
    } else {
        one.kind = second.who ? kind_of(first.mode, second.mode) : "host";
    }
    one.mend = mend_of(one);
}

std::optional<stale_wait> detector::stale_wait_before(const past_access& first, const present& second) const {
    return events_.find(first.when, order_, [&](moment wait) {
        return second.who ? order_.ordered(*second.who, wait) : order_.ordered_for_actor(wait);
    });
}

race_access detector::describe(const runtime::site& from, const std::optional<agent>& who) const {
    race_access one;
    one.where = from.where;
    one.file = from.where.file;
    one.line = from.where.line;
    one.function = from.where.function;
    one.stream = who ? order_.name(*who) : "host";
    one.stream_id = who ? order_.id(*who) : 0;
    one.label = from.label == nullptr ? "" : from.label;
    return one;
}

weir::report detector::report() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> unseen;
    if (lost_ != 0) {
        unseen.push_back("memory ran out during " + std::to_string(lost_) +
                         " calls, which were checked in part or not at all");
    }
    if (unjudged_drops_ != 0) {
        unseen.push_back("memory that was allocated before the check began was dropped after " +
                         std::to_string(unjudged_drops_) +
                         " accesses that may not have been over: start the check earlier to have them judged");
    }
    if (freed_.forgotten() != 0) {
        unseen.push_back(
            std::to_string(freed_.forgotten()) +
            " accesses that memory was dropped too early for: later owners of the memory were not compared "
            "with them");
    }
    return {races_, std::move(unseen)};
}

}  // namespace weir::check
