#include "check/detector.hpp"

#include <utility>

#include "check/wording.hpp"
#include "weir/error.hpp"

namespace weir::check {

namespace {

std::string key_of(const race_access& first, const race_access& second) {
    return first.file + ":" + std::to_string(first.line) + "\n" + second.file + ":" + std::to_string(second.line);
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
        act();
    } catch (const std::bad_alloc&) {
        ++lost_;
    }
}

bool detector::left_to_weir(const runtime::observed_access& access) const noexcept {
    return access.ordering == ordering_mode::automatic && !options_.assume_manual;
}

void detector::stream_made(const runtime::stream_info& stream) {
    note([&] { order_.of(stream); });
}

void detector::operation(const runtime::observed_operation& what) {
    note([&] {
        const agent self = order_.of(*what.stream);
        order_.join_host(self);
        for (const completion& one : what.after) {
            if (const auto past = order_.find({one.timeline(), one.epoch()})) {
                order_.join(self, *past);
            }
        }
        // What Weir orders comes first: its waits hold the whole operation back, so they order its other accesses, too.
        // What counts is that Weir orders the two, not which waits it found to be missing at that moment.
        for (const auto& access : what.accesses) {
            if (left_to_weir(access)) {
                memory_[access.resource].history.conflicts(
                    access.where, access.mode, [&](const past_access& past) { order_.join(self, past.when); });
            }
        }
        order_.reach(self, what.epoch);
        for (const auto& access : what.accesses) {
            memory_[access.resource].history.conflicts(access.where, access.mode, [&](const past_access& past) {
                if (!order_.ordered(self, past.when)) {
                    found(past, {&access, &self, what.from});
                }
            });
        }
        for (const auto& access : what.accesses) {
            memory_[access.resource].history.record({access.where, access.mode, {self, what.epoch}, what.from}, order_);
        }
    });
}

void detector::stream_waits(const runtime::stream_info& stream, frontiers::epoch at, frontiers::point target,
                            std::uint64_t /*event*/, bool /*issued*/, const source_location& /*where*/) {
    note([&] {
        const agent self = order_.of(stream);
        order_.join_host(self);
        if (const auto past = order_.find(target)) {
            order_.join(self, *past);
        }
        order_.reach(self, at);
    });
}

void detector::host_waited(frontiers::point target, const source_location& /*where*/) {
    note([&] {
        if (const auto past = order_.find(target)) {
            order_.host_joins(*past);
        }
    });
}

void detector::host_access(const runtime::observed_access& what, const source_location& where) {
    note([&] {
        memory_[what.resource].history.conflicts(what.where, what.mode, [&](const past_access& past) {
            if (left_to_weir(what)) {
                order_.host_joins(past.when);
            } else if (!order_.ordered_for_host(past.when)) {
                found(past, {&what, nullptr, {nullptr, where}});
            }
        });
        // Not kept: what is enqueued later comes after it, since the host does one thing after the other, and a view that
        // lives on holds back what conflicts with it (rule X7).
    });
}

void detector::allocated(std::uint64_t resource, std::uint64_t bytes, const runtime::stream_info& /*stream*/,
                         const source_location& where) {
    note([&] {
        memory& one = memory_[resource];
        one.bytes = bytes;
        one.allocated = where;
    });
}

void detector::dropped(std::uint64_t resource) {
    // Nobody can use it any more under this number.
    note([&] { memory_.erase(resource); });
}

void detector::found(const past_access& first, const present& second) {
    race one = describe(first, second);
    std::string key = key_of(one.first, one.second);
    const auto known = by_lines_.find(key);
    const bool is_new = known == by_lines_.end();
    if (!is_new) {
        ++races_[known->second].times;
    }
    if (options_.mode == check_mode::raise) {
        runtime::verdicts::raise_later(std::make_exception_ptr(race_error("weir check: " + text_of(one))));
    } else if (options_.mode == check_mode::warn && is_new) {
        runtime::verdicts::print_later("weir check: " + text_of(one));
    }
    if (is_new) {
        races_.push_back(std::move(one));
        by_lines_.emplace(std::move(key), races_.size() - 1);
    }
}

race detector::describe(const past_access& first, const present& second) const {
    const runtime::observed_access past{second.access->resource, second.access->bytes, first.where, first.mode, {}};
    race one;
    one.kind = second.who == nullptr ? "host" : kind_of(first.mode, second.access->mode);
    one.certainty = "definite";
    one.first = describe(past, &first.when.who, first.from);
    one.second = describe(*second.access, second.who, second.from);
    one.mend = mend_of(one.first, one.second);
    return one;
}

race_access detector::describe(const runtime::observed_access& access, const agent* who,
                               const runtime::site& from) const {
    race_access one;
    one.file = from.where.file;
    one.line = from.where.line;
    one.function = from.where.function;
    one.stream = who == nullptr ? "host" : order_.name(*who);
    one.stream_id = who == nullptr ? 0 : order_.id(*who);
    one.label = from.label == nullptr ? "" : from.label;
    one.mode = access.mode;
    one.resource = access.resource;
    one.range = access.where;
    one.array = "memory #" + std::to_string(access.resource) + " of " + std::to_string(access.bytes) + " bytes";
    const auto known = memory_.find(access.resource);
    if (known != memory_.end() && known->second.allocated.line != 0) {
        const source_location& where = known->second.allocated;
        one.array += std::string(", allocated at ") + where.file + ":" + std::to_string(where.line);
    }
    return one;
}

weir::report detector::report() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> unseen;
    if (lost_ != 0) {
        unseen.push_back("memory ran out during " + std::to_string(lost_) +
                         " calls, which were checked in part or not at all");
    }
    return {races_, std::move(unseen)};
}

}  // namespace weir::check
