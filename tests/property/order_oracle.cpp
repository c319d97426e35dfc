#include "order_oracle.hpp"

#include <algorithm>
#include <array>
#include <sstream>
#include <unordered_map>

namespace order_test {

namespace {

constexpr set bit(std::size_t node) { return set{1} << node; }
constexpr bool has(set nodes, std::size_t node) { return (nodes >> node & 1) != 0; }

using contents = std::array<std::int8_t, 32>;  // for each byte the node that wrote it last
using view = std::vector<std::int8_t>;         // the contents of the bytes that a node touches, as it saw them

// All edges go from earlier nodes to later ones, so one pass is enough.
relation closure(const relation& direct) {
    relation all = direct;
    for (std::size_t v = 0; v < all.size(); ++v) {
        for (std::size_t u = 0; u < v; ++u) {
            if (has(direct[v], u)) {
                all[v] |= all[u];
            }
        }
    }
    return all;
}

relation without(const relation& direct, set nodes) {
    relation rest = direct;
    for (std::size_t v = 0; v < rest.size(); ++v) {
        rest[v] = has(nodes, v) ? 0 : rest[v] & ~nodes;
    }
    return rest;
}

// The nodes before `v` with none in between: its edges in the transitive reduction.
set nearest(const relation& before, std::size_t v) {
    set covered = 0;
    for (std::size_t u = 0; u < v; ++u) {
        if (has(before[v], u)) {
            covered |= before[u];
        }
    }
    return before[v] & ~covered;
}

view run(const node& self, std::size_t index, contents& memory) {
    view seen;
    for (const int cell : self.cells) {
        seen.push_back(memory[static_cast<std::size_t>(cell)]);
    }
    for (const int cell : self.written) {
        memory[static_cast<std::size_t>(cell)] = static_cast<std::int8_t>(index + 1);
    }
    return seen;
}

// Runs schedules: all orders of the nodes in which each comes after those directly before it.
class search {
public:
    search(const std::vector<node>& nodes, const relation& direct, const relation& needed, set absent, bool compare)
        : nodes_(nodes), direct_(direct), needed_(needed), compare_(compare), absent_(absent) {
        contents memory{};
        for (std::size_t v = 0; v < nodes.size(); ++v) {  // the serial program
            serial_.push_back(has(absent, v) ? view{} : run(nodes[v], v, memory));
        }
        all_ = (nodes.size() == 64 ? ~set{0} : bit(nodes.size()) - 1) & ~absent;
    }

    // Returns the number of schedules. While everything has gone right so far, the contents of memory follow from the set of nodes
    // that have run: each byte's versions were written in the serial order, or a writer would have seen something else.
    // So each set has to be visited only once, and all schedules are covered.
    double visit(set done, const contents& memory) {
        const auto known = visited_.find(done);
        if (known != visited_.end()) {
            return known->second;
        }
        double schedules = done == all_ ? 1 : 0;
        step(done, memory, [&](set next, const contents& then) { schedules += visit(next, then); });
        visited_.emplace(done, schedules);
        return schedules;
    }

    // The same schedules one by one, up to `limit`.
    int enumerate(set done, const contents& memory, int limit) {
        int schedules = done == all_ ? 1 : 0;
        step(done, memory, [&](set next, const contents& then) {
            if (schedules <= limit) {
                schedules += enumerate(next, then, limit - schedules);
            }
        });
        return schedules;
    }

    std::string wrong;

private:
    template <class Then>
    void step(set done, const contents& memory, Then&& then) {
        for (std::size_t v = 0; v < nodes_.size() && wrong.empty(); ++v) {
            if (has(done | absent_, v) || (direct_[v] & ~done) != 0) {
                continue;
            }
            std::ostringstream text;
            if ((needed_[v] & ~done) != 0) {
                text << "the operation at " << nodes_[v].position << " runs before one that it must come after; ";
            }
            contents after = memory;
            if (run(nodes_[v], v, after) != serial_[v] && compare_) {
                text << "the operation at " << nodes_[v].position
                     << " sees other contents than in the serial program; ";
            }
            wrong = text.str();
            if (wrong.empty()) {
                then(done | bit(v), after);
            }
        }
    }

    const std::vector<node>& nodes_;
    const relation& direct_;
    const relation& needed_;
    bool compare_;
    set absent_;
    set all_ = 0;
    std::vector<view> serial_;
    std::unordered_map<set, double> visited_;
};

bool conflict(const node& a, const node& b) {
    const auto meet = [](const std::vector<int>& x, const std::vector<int>& y) {
        return std::any_of(x.begin(), x.end(),
                           [&](int cell) { return std::find(y.begin(), y.end(), cell) != y.end(); });
    };
    return meet(a.written, b.cells) || meet(b.written, a.cells);
}

}  // namespace

oracle::oracle(const program& p) : all_(derive(p)) {
    relation direct = all_.given;
    set hosts = 0;
    for (std::size_t v = 0; v < direct.size(); ++v) {
        direct[v] |= all_.required[v] | hosts;
        hosts |= all_.on_host & bit(v);
    }
    before_ = closure(direct);
    needed_ = before_;
    set works = 0;
    for (std::size_t v = 0; v < direct.size(); ++v) {
        works |= all_.nodes[v].works ? bit(v) : 0;
    }
    for (std::size_t v = 0; v < direct.size(); ++v) {
        needed_[v] = has(works, v) ? needed_[v] & works : 0;
        for (std::size_t u = 0; u < v; ++u) {
            races_ = races_ || (!has(before_[v], u) && conflict(all_.nodes[u], all_.nodes[v]));
        }
    }
}

// Adds the order of an edge of an outcome: from the last node it names to the first.
void oracle::apply(relation& direct, const edge& e) const {
    std::size_t before = direct.size();
    for (std::size_t u = 0; u < direct.size(); ++u) {
        if (all_.nodes[u].stream == e.stream && all_.nodes[u].position <= e.upto) {
            before = u;
        }
    }
    if (before == direct.size()) {
        return;
    }
    set served = 0;
    for (std::size_t v = before + 1; v < direct.size(); ++v) {
        const int stream = all_.nodes[v].stream;
        const bool meant = e.to == every_stream || stream == e.to;
        if (meant && all_.nodes[v].position >= e.from && !has(served, static_cast<std::size_t>(stream))) {
            direct[v] |= bit(before);
            served |= bit(static_cast<std::size_t>(stream));
        }
    }
}

// The order on the device (and, on request, on the host) once the driver has issued its waits.
relation oracle::device(const outcome& done, bool with_host) const {
    relation direct = all_.given;
    for (const edge& e : done.waits) {
        apply(direct, e);
    }
    if (!with_host) {
        return without(direct, all_.on_host);
    }
    set hosts = 0;
    for (std::size_t v = 0; v < direct.size(); ++v) {
        direct[v] |= hosts;
        hosts |= all_.on_host & bit(v);
    }
    for (const edge& e : done.host_waits) {
        apply(direct, e);
    }
    for (const edge& e : done.over) {
        apply(direct, e);
    }
    return direct;
}

verdict oracle::begin(const outcome& done) const {
    verdict result;
    result.waits = static_cast<int>(done.waits.size());
    result.compared = !races_;
    for (std::size_t v = 0; v < all_.nodes.size(); ++v) {
        for (std::size_t u = 0; u < v; ++u) {
            if (all_.nodes[u].stream != all_.nodes[v].stream && !has(all_.on_host, v)) {
                result.cross |= all_.why[v][u];
            }
        }
    }
    return result;
}

verdict oracle::sufficient(const outcome& done) const {
    verdict result = begin(done);
    const relation direct = device(done, true);
    search schedules{all_.nodes, direct, needed_, 0, result.compared};
    result.schedules = schedules.visit(0, {});
    result.wrong = schedules.wrong;
    return result;
}

verdict oracle::plain(const outcome& done, int limit) const {
    verdict result = begin(done);
    const relation direct = device(done, true);
    search schedules{all_.nodes, direct, needed_, 0, result.compared};
    const int run = schedules.enumerate(0, {}, limit);
    result.schedules = run > limit ? 0 : run;
    result.wrong = schedules.wrong;
    return result;
}

verdict oracle::exact(const outcome& done) const {
    verdict result = sufficient(done);
    if (!result.wrong.empty()) {
        return result;
    }
    relation direct = all_.given;
    for (std::size_t v = 0; v < direct.size(); ++v) {
        direct[v] |= all_.required[v];
    }
    const relation needed = closure(without(direct, all_.on_host));
    const relation got = closure(device(done, false));
    std::ostringstream text;
    for (std::size_t v = 0; v < needed.size(); ++v) {
        if ((got[v] & ~needed[v]) != 0) {
            text << "the operation at " << all_.nodes[v].position << " waits for more than it must; ";
        }
        const set edges = nearest(needed, v);
        for (std::size_t u = 0; u < v; ++u) {
            result.minimum += has(edges, u) && all_.nodes[u].stream != all_.nodes[v].stream ? 1 : 0;
        }
    }
    if (result.waits != result.minimum) {
        text << result.waits << " waits, and " << result.minimum << " are enough; ";
    }
    result.wrong = text.str() + redundant(done, needed);
    return result;
}

// Removes each wait in turn. Then a required pair must become unordered; and if the pair is a hazard, there must be a
// schedule on which an operation sees other contents.
std::string oracle::redundant(const outcome& done, const relation& needed) const {
    const relation nothing(all_.nodes.size(), 0);
    for (std::size_t i = 0; i < done.waits.size(); ++i) {
        outcome less = done;
        less.waits.erase(less.waits.begin() + static_cast<std::ptrdiff_t>(i));
        const relation direct = device(less, false);
        const relation left = closure(direct);
        bool missed = false;
        bool hazard = false;
        for (std::size_t v = 0; v < left.size(); ++v) {
            for (std::size_t u = 0; u < v; ++u) {
                if (has(needed[v], u) && !has(left[v], u)) {
                    missed = true;
                    hazard = hazard || (all_.why[v][u] & hazards) != 0;
                }
            }
        }
        std::ostringstream text;
        if (!missed) {
            text << "the wait at " << done.waits[i].from << " is redundant; ";
        } else if (hazard) {
            search schedules{all_.nodes, direct, nothing, all_.on_host, true};
            schedules.visit(0, {});
            if (schedules.wrong.empty()) {
                text << "without the wait at " << done.waits[i].from << " all schedules still see the same; ";
            }
        }
        if (!text.str().empty()) {
            return text.str();
        }
    }
    return {};
}

}  // namespace order_test
