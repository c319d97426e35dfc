#include "runtime/diagnostics/standstill.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>

#include "backend/timeline.hpp"
#include "runtime/streams/stream_registry.hpp"
#include "runtime/streams/stream_state.hpp"
#include "weir/detail/site.hpp"
#include "weir/source_location.hpp"

namespace weir::runtime {

namespace {

/// Chains of more steps are cut off. There are no cycles, but there may be many streams.
constexpr std::size_t most_steps = 32;

std::string place_of(const site& from) {
    return std::string(" (") + from.where.file + ":" + std::to_string(from.where.line) + ")";
}

std::string name_of(const pending_operations::entry& one) {
    switch (one.kind()) {
        case pending_kind::wait:
            return "a wait of the program's" + place_of(one.from());
        case pending_kind::gate:
            return "a gate" + place_of(one.from());
        case pending_kind::moment:
            return "a timed event" + place_of(one.from());
        case pending_kind::operation:
        case pending_kind::host_task:
            break;
    }
    return '"' + std::string(one.from().label == nullptr ? "operation" : one.from().label) + '"' + place_of(one.from());
}

std::string name_of(const stream_state& stream) {
    return "the stream \"" + std::string(stream.info().name) + "\" of " + std::string(stream.info().device);
}

std::optional<frontiers::point> first_that_is_not_over(const pending_operations::entry& one) {
    for (std::size_t i = 0; i < one.waits(); ++i) {
        if (!backend::timeline_table::instance().is_complete(one.wait(i))) {
            return one.wait(i);
        }
    }
    return std::nullopt;
}

/// One step of the chain, on the stream of `at`.
class step {
public:
    step(stream_state& stream, frontiers::point at) {
        const std::unique_lock lock(stream.mutex, std::try_to_lock);
        if (!lock) {
            story = "  " + name_of(stream) + ", which another thread is giving work at this moment\n";
            return;
        }
        const std::optional<pending_operations::entry> wanted = stream.pending.find(at.at);
        story = "  " + (wanted ? name_of(*wanted) : "epoch " + std::to_string(at.at)) + " on " + name_of(stream);
        std::optional<pending_operations::entry> front;
        stream.pending.each(stream.completed(), [&](const pending_operations::entry& one) {
            front = one;
            return false;
        });
        if (!front || front->at() > at.at) {
            story += ", which is over\n";
            return;
        }
        if (front->at() != at.at) {
            story += ", behind " + name_of(*front);
        }
        next = first_that_is_not_over(*front);
        if (front->kind() == pending_kind::gate && next) {
            story += ", which is not open\n";
            next = std::nullopt;
        } else if (next) {
            story += ", which waits for\n";
        } else if (front->kind() == pending_kind::host_task) {
            story += ", a host task that has not returned\n";
        } else {
            story += ", which runs, or is about to\n";
        }
    }

    std::string story;
    std::optional<frontiers::point> next;  ///< the point that it waits for
};

}  // namespace

pending_work look_at(frontiers::point target) {
    pending_work found{"epoch " + std::to_string(target.at), "a stream that is no more", {}};
    stream_registry::with(target.timeline, [&](stream_state& stream) {
        const std::lock_guard lock(stream.mutex);
        found.stream = name_of(stream);
        if (const std::optional<pending_operations::entry> one = stream.pending.find(target.at)) {
            found.name = name_of(*one);
            for (std::size_t i = 0; i < one->waits(); ++i) {
                if (!backend::timeline_table::instance().is_complete(one->wait(i))) {
                    found.waits.push_back(one->wait(i));
                }
            }
        }
    });
    return found;
}

namespace {

/// Calls `is_found(stream, entry)` for everything pending up to `target`, in its stream and in those that this waits for, until the
/// answer is true. Returns whether it was. Locks one stream after the other.
template <class Found>
bool find_before(frontiers::point target, Found&& is_found) {
    std::map<frontiers::timeline_id, frontiers::epoch> looked;  // searched up to this epoch
    std::vector<frontiers::point> next{target};
    bool found = false;
    while (!next.empty() && !found) {
        const frontiers::point at = next.back();
        next.pop_back();
        frontiers::epoch& upto = looked[at.timeline];
        const frontiers::epoch before = upto;
        upto = std::max(upto, at.at);
        stream_registry::with(at.timeline, [&](stream_state& stream) {
            const std::lock_guard lock(stream.mutex);
            stream.pending.each(std::max(before, stream.completed()), [&](const pending_operations::entry& one) {
                if (one.at() > at.at) {
                    return false;
                }
                for (std::size_t i = 0; i < one.waits() + one.dependencies(); ++i) {
                    next.push_back(one.wait(i));  // index past the waits: the dependencies are stored behind them
                }
                found = is_found(stream, one);
                return !found;
            });
        });
    }
    return found;
}

}  // namespace

bool comes_after(frontiers::point target, frontiers::point what) {
    const auto is_after = [&](frontiers::point at) { return at.timeline == what.timeline && at.at >= what.at; };
    return is_after(target) || find_before(target, [&](const stream_state& /*stream*/, const auto& one) {
               for (std::size_t i = 0; i < one.waits() + one.dependencies(); ++i) {
                   if (is_after(one.wait(i))) {
                       return true;
                   }
               }
               return false;
           });
}

std::string closed_gate_before(frontiers::point target) {
    std::string gate;
    find_before(target, [&](const stream_state& stream, const pending_operations::entry& one) {
        if (one.kind() != pending_kind::gate || !first_that_is_not_over(one)) {
            return false;
        }
        gate = name_of(one) + " on " + name_of(stream);
        return true;
    });
    return gate;
}

standstill why_not_over(frontiers::point target) {
    standstill found;
    std::optional<frontiers::point> at = target;
    for (std::size_t steps = 0; at; ++steps) {
        if (steps == most_steps) {
            found.story += "  ... and so on\n";
            break;
        }
        const frontiers::point here = *at;
        found.reached.push_back({here.timeline, backend::timeline_table::instance().completed(here.timeline)});
        at = std::nullopt;
        const bool known = stream_registry::with(here.timeline, [&](stream_state& stream) {
            const step one(stream, here);
            found.story += one.story;
            at = one.next;
        });
        if (!known) {
            found.story += "  something that is not in a stream of Weir's\n";
        }
    }
    return found;
}

}  // namespace weir::runtime
