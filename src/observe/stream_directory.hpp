#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "frontier/point.hpp"
#include "observe/observer.hpp"

namespace weir::observe {

/// For observers: which stream a point belongs to. One stream after the other uses a timeline; a stream's number is never reused. Not
/// synchronized.
class stream_directory {
public:
    /// Adds a stream. Returns false if it is known already.
    bool add(const stream_info& stream) {
        if (known_.contains(stream.id)) {
            return false;
        }
        owners_[stream.timeline].push_back({stream.before, stream.id});
        known_.insert(stream.id);
        return true;
    }

    /// The number of the stream that `p` belongs to; 0 if that stream was never seen, or if `p` is before everything.
    [[nodiscard]] std::uint64_t stream_of(frontiers::point p) const {
        const auto found = owners_.find(p.timeline);
        if (found == owners_.end()) {
            return 0;
        }
        const auto& list = found->second;
        const auto last = std::find_if(list.rbegin(), list.rend(), [&](const owner& one) { return one.after < p.at; });
        return last == list.rend() ? 0 : last->stream;
    }

private:
    struct owner {
        frontiers::epoch after = 0;  ///< the stream's points come after this one
        std::uint64_t stream = 0;
    };
    std::unordered_map<frontiers::timeline_id, std::vector<owner>> owners_;
    std::unordered_set<std::uint64_t> known_;
};

}  // namespace weir::observe
