#include "check/program_order.hpp"

#include <algorithm>
#include <iterator>

namespace weir::check {

agent program_order::of(const runtime::stream_info& stream) {
    const auto found = by_id_.find(stream.id);
    if (found != by_id_.end()) {
        return found->second;
    }
    const auto made = static_cast<agent>(streams_.size());
    streams_.push_back({stream.id, std::string(stream.name), nullptr, {}, 0});
    directory_.add(stream);
    by_id_.emplace(stream.id, made);
    return made;
}

std::optional<moment> program_order::find(frontiers::point p) const {
    const auto found = by_id_.find(directory_.stream_of(p));
    return found == by_id_.end() ? std::nullopt : std::optional(moment{found->second, p.at});
}

void program_order::join_host(agent who) {
    stream_clock& stream = streams_[who];
    if (stream.host_version == host_version_) {
        return;
    }
    auto merged = stream.now ? *stream.now : frontiers::frontier();
    merged.merge(host_);
    stream.now = std::make_shared<const frontiers::frontier>(std::move(merged));
    stream.host_version = host_version_;
}

void program_order::join(agent who, moment past) {
    if (ordered(who, past)) {
        return;  // whoever knows a moment knows all that it comes after
    }
    stream_clock& stream = streams_[who];
    auto merged = stream.now ? *stream.now : frontiers::frontier();
    merged.merge(frontiers::point{past.who, past.at});
    if (const clock known = clock_at(past)) {
        merged.merge(*known);
    }
    stream.now = std::make_shared<const frontiers::frontier>(std::move(merged));
}

void program_order::reach(agent who, frontiers::epoch at) {
    stream_clock& stream = streams_[who];
    if (stream.now && (stream.versions.empty() || stream.versions.back().known != stream.now)) {
        stream.versions.push_back({at, stream.now});
    }
}

void program_order::host_joins(moment past) {
    if (ordered_for_host(past)) {
        return;
    }
    host_.merge(frontiers::point{past.who, past.at});
    if (const clock known = clock_at(past)) {
        host_.merge(*known);
    }
    ++host_version_;
}

bool program_order::ordered(agent who, moment past) const noexcept {
    const stream_clock& stream = streams_[who];
    return past.who == who || (stream.now && stream.now->covers({past.who, past.at}));
}

program_order::clock program_order::clock_at(moment m) const {
    const auto& versions = streams_[m.who].versions;
    const auto next = std::upper_bound(versions.begin(), versions.end(), m.at,
                                       [](frontiers::epoch at, const version& v) { return at < v.from; });
    return next == versions.begin() ? nullptr : std::prev(next)->known;
}

}  // namespace weir::check
