#include "check/program_order.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace weir::check {

namespace {

/// `known`, and `past`, and what `past` comes after.
clock merged(const clock& known, moment past, const clock& before) {
    auto all = known ? *known : frontiers::frontier();
    all.merge(frontiers::point{past.who, past.at});
    if (before) {
        all.merge(*before);
    }
    return std::make_shared<const frontiers::frontier>(std::move(all));
}

}  // namespace

agent program_order::of(const runtime::stream_info& stream) {
    const auto found = by_id_.find(stream.id);
    if (found != by_id_.end()) {
        return found->second;
    }
    const auto made = static_cast<agent>(streams_.size());
    stream_clock one;
    one.id = stream.id;
    one.name = stream.name;
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
    return made;
}

std::optional<moment> program_order::find(frontiers::point p) const {
    const auto found = by_id_.find(directory_.stream_of(p));
    return found == by_id_.end() ? std::nullopt : std::optional(moment{found->second, p.at});
}

clock program_order::actor_knows() const {
    if (!body_) {
        return host_;
    }
    const stream_clock& stream = streams_[body_->who];
    if (stream.body == body_->at) {
        return stream.body_knows;
    }
    // What it does is done before its own operation is over, but after all that the operation waited for.
    return merged(nullptr, {body_->who, body_->at - 1}, known_at(*body_));
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
    streams_[body_->who].body = body_->at;
    streams_[body_->who].body_knows = std::move(all);
}

void program_order::join_actor(agent who) {
    stream_clock& stream = streams_[who];
    const clock knows = actor_knows();
    if (!knows || stream.host == knows) {
        return;
    }
    auto all = stream.now ? *stream.now : frontiers::frontier();
    all.merge(*knows);
    stream.now = std::make_shared<const frontiers::frontier>(std::move(all));
    if (!body_) {
        stream.host = knows;
    }
}

void program_order::join(agent who, moment past) {
    if (!ordered(who, past)) {  // whoever knows a moment knows all that it comes after
        streams_[who].now = merged(streams_[who].now, past, known_at(past));
    }
}

void program_order::reach(agent who, frontiers::epoch at) {
    stream_clock& stream = streams_[who];
    stream.tail = at;
    if (stream.now && (stream.versions.empty() || stream.versions.back().known != stream.now)) {
        stream.versions.push_back({at, stream.now});
    }
}

clock program_order::known_at(moment m) const {
    const auto& versions = streams_[m.who].versions;
    const auto next = std::upper_bound(versions.begin(), versions.end(), m.at,
                                       [](frontiers::epoch at, const version& v) { return at < v.from; });
    return next == versions.begin() ? nullptr : std::prev(next)->known;
}

}  // namespace weir::check
