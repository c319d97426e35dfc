#include "check/program_order.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace weir::check {

namespace {

/// The union of `known`, `past`, and what `past` comes after.
clock merged(const clock& known, moment past, const clock& before) {
    auto all = known ? *known : frontiers::frontier();
    all.merge(frontiers::point{past.stream, past.at});
    if (before) {
        all.merge(*before);
    }
    return std::make_shared<const frontiers::frontier>(std::move(all));
}

clock merged(const clock& known, const clock& more) {
    auto all = known ? *known : frontiers::frontier();
    all.merge(*more);
    return std::make_shared<const frontiers::frontier>(std::move(all));
}

}  // namespace

agent program_order::of(const observe::stream_info& stream) {
    const auto found = by_id_.find(stream.id);
    if (found != by_id_.end()) {
        return found->second;
    }
    const auto made = static_cast<agent>(streams_.size());
    stream_clock one;
    one.id = stream.id;
    one.name = stream.name;
    one.package = stream.package;
    one.device = stream.device;
    one.default_of = stream.default_of;
    if (stream.queue != 0) {
        const auto [known, is_new] = by_queue_.try_emplace(stream.queue, made);
        if (!is_new) {
            const agent former = std::exchange(known->second, made);
            one.now = merged(streams_[former].now, {former, streams_[former].tail}, nullptr);
            one.versions.push_back({0, one.now});
        }
    }
    streams_.push_back(std::move(one));
    directory_.add(stream);
    by_id_.emplace(stream.id, made);
    if (stream.handle != 0) {
        pair(made, stream);
    }
    return made;
}

void program_order::pair(agent made, const observe::stream_info& stream) {
    auto& names = by_handle_[{std::string(stream.device), stream.handle}];
    const bool is_weirs = stream.package.empty();
    if (const std::optional<agent> other = names.at(is_weirs ? 1 : 0)) {
        join_twin(*other);  // with the former one
        streams_[*other].twin = made;
        streams_[*other].twin_seen = 0;
        streams_[made].twin = other;
    }
    names.at(is_weirs ? 0 : 1) = made;
}

void program_order::join_twin(agent stream) {
    stream_clock& its = streams_[stream];
    if (!its.twin) {
        return;
    }
    const moment end{*its.twin, streams_[*its.twin].tail};
    if (end.at > its.twin_seen) {
        join(stream, end);
        its.twin_seen = end.at;
    }
}

void program_order::record(agent stream, frontiers::epoch at) {
    if (streams_[stream].twin && at > streams_[stream].tail) {
        join_twin(stream);
        reach(stream, at);
    }
}

void program_order::actor_joins_device(std::string_view device) {
    for (agent one = 0; one < streams_.size(); ++one) {
        if (streams_[one].device == device && streams_[one].package.empty() && streams_[one].tail != 0) {
            actor_joins({one, streams_[one].tail});
        }
    }
}

std::optional<moment> program_order::find(frontiers::point p) const {
    const auto found = by_id_.find(directory_.stream_of(p));
    return found == by_id_.end() ? std::nullopt : std::optional(moment{found->second, p.at});
}

clock program_order::actor_knows() const {
    if (!body_) {
        return host_;
    }
    const stream_clock& its = streams_[body_->stream];
    if (its.body == body_->at) {
        return its.body_knows;
    }
    // The body acts before its own operation is complete, but after everything that the operation waited for.
    return merged(nullptr, {body_->stream, body_->at - 1}, known_at(*body_));
}

void program_order::actor_joins(moment past) {
    const clock knows = actor_knows();
    if (covers(knows, past)) {
        return;
    }
    clock all = merged(knows, past, known_at(past));
    if (!body_) {
        host_ = std::move(all);
        return;
    }
    streams_[body_->stream].body = body_->at;
    streams_[body_->stream].body_knows = all;
    body_joins(*body_, all);
}

void program_order::body_joins(moment operation, const clock& knows) {
    const auto join = [&](clock& one) {
        if (one && one->covers({operation.stream, operation.at})) {
            one = merged(one, knows);
        }
    };
    join(host_);
    for (stream_clock& other : streams_) {
        join(other.now);
        join(other.body_knows);
        // Each version covers what the former one covers.
        const auto first = std::find_if(other.versions.rbegin(), other.versions.rend(), [&](const version& v) {
                               return !v.known->covers({operation.stream, operation.at});
                           }).base();
        std::for_each(first, other.versions.end(), [&](version& v) { join(v.known); });
    }
    // The clocks of a stream do not cover the stream itself.
    stream_clock& its = streams_[operation.stream];
    auto from = std::lower_bound(its.versions.begin(), its.versions.end(), operation.at,
                                 [](const version& v, frontiers::epoch at) { return v.from < at; });
    if (from == its.versions.end() || from->from != operation.at) {
        from = its.versions.insert(from, {operation.at, known_at(operation)});
    }
    std::for_each(from, its.versions.end(), [&](version& v) { v.known = merged(v.known, knows); });
    its.now = merged(its.now, knows);
}

void program_order::join_actor(agent stream) {
    join_twin(stream);
    stream_clock& its = streams_[stream];
    if (!body_ && its.host == host_) {
        return;
    }
    const clock knows = actor_knows();
    if (!knows || its.host == knows) {
        return;
    }
    its.now = merged(its.now, knows);
    if (!body_) {
        its.host = knows;
    }
}

void program_order::join(agent stream, moment past) {
    if (!ordered(stream, past)) {  // what is ordered after a moment is ordered after everything before it
        streams_[stream].now = merged(streams_[stream].now, past, known_at(past));
    }
}

void program_order::reach(agent stream, frontiers::epoch at) {
    stream_clock& its = streams_[stream];
    its.tail = at;
    if (its.now && (its.versions.empty() || its.versions.back().known != its.now)) {
        its.versions.push_back({at, its.now});
    }
}

clock program_order::known_at(moment m) const {
    const auto& versions = streams_[m.stream].versions;
    const auto next = std::upper_bound(versions.begin(), versions.end(), m.at,
                                       [](frontiers::epoch at, const version& v) { return at < v.from; });
    return next == versions.begin() ? nullptr : std::prev(next)->known;
}

}  // namespace weir::check
