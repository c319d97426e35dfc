#include "trace/minimal_waits.hpp"

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <vector>

#include "frontier/frontier.hpp"
#include "observe/observer.hpp"
#include "weir/detail/footprint.hpp"
#include "weir/ordering.hpp"

namespace weir::trace {

namespace {

using frontiers::frontier;
/// Points whose timelines are streams, numbered in the order of their first appearance.
using frontiers::point;

class counter {
public:
    [[nodiscard]] std::uint64_t count() {
        for (std::size_t i = 0; i < streams_.size(); ++i) {
            anchor(i);
        }
        return count_;
    }

    void operator()(const operation& one) {
        const std::size_t self = stream(one.at.stream);
        for (const moment& after : one.after) {
            require(self, after);
        }
        for (const auto& access : one.accesses) {
            for (const past_access& past : accesses_[access.resource]) {
                if (conflict(past, access)) {
                    streams_[self].pending.push_back(past.when);
                }
            }
        }
        for (const issued_wait& wait : one.waits) {
            if (concerns_package(wait.why) && !wait.for_check) {
                comes_after(self, wait.target);
            }
        }
        for (const elided_wait& elided : one.elisions) {
            if (concerns_package(elided.why)) {
                comes_after(self, elided.target);
            }
        }
        anchor(self);
        streams_[self].versions.push_back({one.at.at, streams_[self].known});
        for (const auto& access : one.accesses) {
            remember(access, {index(self), one.at.at});
        }
    }

    void operator()(const stream_wait& one) {
        const std::size_t self = stream(one.at.stream);
        if (one.how == observe::wait_made::by_device) {
            comes_after(self, one.target);
            streams_[self].versions.push_back({one.at.at, streams_[self].known});
            return;
        }
        require(self, one.target);
        streams_[self].waits_from = std::min(streams_[self].waits_from, one.at.at);
    }

    void operator()(const host_wait& one) {
        if (one.target.stream != 0) {
            host_knows(resolve(one.target));
        }
    }

    void operator()(const host_access& one) {
        // In automatic mode Weir made the host wait; in manual mode the host knows only what it asked for.
        if (one.access.ordering == ordering_mode::automatic) {
            for (const past_access& past : accesses_[one.access.resource]) {
                if (conflict(past, one.access)) {
                    host_knows(past.when);
                }
            }
        }
    }

    template <class Other>
    void operator()(const Other&) {}

private:
    static constexpr frontiers::epoch none = ~frontiers::epoch{0};

    struct version {
        frontiers::epoch from = 0;
        frontier known;
    };
    struct stream_state {
        frontier known;                      ///< what the stream is ordered after
        std::vector<version> versions;       ///< increasing `from`
        std::vector<point> pending;          ///< what the next operation must come after in addition
        frontiers::epoch waits_from = none;  ///< the epoch of the first wait among `pending`
    };
    struct past_access {
        order::footprint where;
        order::access_mode mode = order::access_mode::read;
        point when;
    };

    static frontiers::timeline_id index(std::size_t stream) { return static_cast<frontiers::timeline_id>(stream); }

    std::size_t stream(std::uint64_t id) {
        const auto [found, is_new] = index_.try_emplace(id, streams_.size());
        if (is_new) {
            streams_.emplace_back();
        }
        return found->second;
    }

    /// The point of a moment. If the moment consists of waits only, they are counted now, because something depends on them.
    point resolve(const moment& m) {
        const std::size_t target = stream(m.stream);
        if (streams_[target].waits_from <= m.at) {
            const frontiers::epoch at = streams_[target].waits_from;
            anchor(target);
            streams_[target].versions.push_back({at, streams_[target].known});
        }
        return {index(target), m.at};
    }

    void require(std::size_t self, const moment& target) {
        if (target.stream != 0 && target.at != 0) {
            const point resolved = resolve(target);
            streams_[self].pending.push_back(resolved);
        }
    }

    static bool concerns_package(order::reason why) {
        return why == order::reason::entry || why == order::reason::exit;
    }

    /// Adds an order that exists at no cost.
    void comes_after(std::size_t self, const moment& target) {
        if (target.stream != 0 && target.at != 0) {
            const point resolved = resolve(target);
            streams_[self].known.merge(resolved);
            streams_[self].known.merge(known_at(resolved));
        }
    }

    [[nodiscard]] const frontier& known_at(const point& p) const {
        static const frontier nothing;
        const auto& versions = streams_[p.timeline].versions;
        const auto next = std::upper_bound(versions.begin(), versions.end(), p.at,
                                           [](frontiers::epoch at, const version& v) { return at < v.from; });
        return next == versions.begin() ? nothing : std::prev(next)->known;
    }

    void host_knows(const point& p) {
        host_.merge(p);
        host_.merge(known_at(p));
    }

    /// Reduces `pending` to what nothing else implies, counts that, and adds all of it to what the stream knows.
    void anchor(std::size_t self) {
        stream_state& of = streams_[self];
        of.known.merge(host_);
        of.waits_from = none;
        std::vector<point> needed;
        for (const point& p : of.pending) {
            if (p.timeline != index(self) && !of.known.covers(p)) {
                needed.push_back(p);
            }
        }
        of.pending.clear();
        // Keeps one point for each stream, the latest.
        std::sort(needed.begin(), needed.end(), [](const point& a, const point& b) {
            return a.timeline != b.timeline ? a.timeline < b.timeline : a.at > b.at;
        });
        const auto same_stream = [](const point& a, const point& b) { return a.timeline == b.timeline; };
        needed.erase(std::unique(needed.begin(), needed.end(), same_stream), needed.end());
        for (const point& p : needed) {
            const bool implied = std::any_of(needed.begin(), needed.end(),
                                             [&](const point& other) { return known_at(other).covers(p); });
            count_ += implied ? 0 : 1;
        }
        for (const point& p : needed) {
            of.known.merge(p);
            of.known.merge(known_at(p));
        }
    }

    static bool conflict(const past_access& past, const observe::observed_access& access) {
        const bool both_read = past.mode == order::access_mode::read && access.mode == order::access_mode::read;
        return !both_read && overlap(past.where, access.where);
    }

    /// Adds an access, and drops the parts of others that it covers. A write is ordered after everything that it covers, a read after
    /// earlier reads of its stream.
    void remember(const observe::observed_access& access, const point& when) {
        std::vector<past_access>& all = accesses_[access.resource];
        std::vector<past_access> kept;
        kept.reserve(all.size() + 2);
        for (const past_access& past : all) {
            const bool covered = access.mode == order::access_mode::write ||
                                 (past.mode == order::access_mode::read && past.when.timeline == when.timeline);
            if (!covered || !overlap(past.where, access.where)) {
                kept.push_back(past);
                continue;
            }
            if (past.where.shape || access.where.shape) {  // only plain ranges are cut
                if (!order::covers(access.where, past.where)) {
                    kept.push_back(past);
                }
                continue;
            }
            for (const order::footprint& rest : {order::footprint{past.where.begin, access.where.begin},
                                                 order::footprint{access.where.end, past.where.end}}) {
                if (!rest.empty()) {
                    kept.push_back({rest, past.mode, past.when});
                }
            }
        }
        if (!access.where.empty()) {
            kept.push_back({access.where, access.mode, when});
        }
        all = std::move(kept);
    }

    std::unordered_map<std::uint64_t, std::size_t> index_;
    std::vector<stream_state> streams_;
    std::unordered_map<std::uint64_t, std::vector<past_access>> accesses_;
    frontier host_;
    std::uint64_t count_ = 0;
};

}  // namespace

std::uint64_t minimal_waits(const log& of) {
    counter counting;
    for (const record& one : of.records) {
        std::visit(counting, one.what);
    }
    return counting.count();
}

}  // namespace weir::trace
