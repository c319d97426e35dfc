// The folder check/ finds races: it observes what is enqueued, and knows nothing of how Weir orders work. It has its own clocks and
// histories; it includes the observers' interface and frontiers.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "frontier/frontier.hpp"
#include "observe/observer.hpp"
#include "observe/stream_directory.hpp"

namespace weir::check {

/// Identifies one stream. Dense, and never reused, unlike timelines: that the former stream of a timeline was complete when the next one
/// began depends on timing, and timing orders nothing.
using agent = frontiers::timeline_id;

/// A position in a stream.
struct moment {
    agent stream = 0;
    frontiers::epoch at = 0;
};

/// What a stream or an actor comes after, by the numbers of agents. Null is nothing.
using clock = std::shared_ptr<const frontiers::frontier>;

[[nodiscard]] inline bool covers(const clock& known, moment past) noexcept {
    return known && known->covers({past.stream, past.at});
}

/// The order that the program itself asks for: vector clocks of the streams and of the actor. What is joined is never dropped (rule V1:
/// results do not depend on what was complete when). Not synchronized.
///
/// The *actor* enqueues and waits. It is either the program's threads, which count as one, because the program's locks cannot be seen; or
/// the body of an operation, which comes after what the operation comes after, and after what the body itself waits for; what the body has
/// waited for comes before the end of the operation. The order between the two is not known.
class program_order {
public:
    /// The number of a stream; a new one if it was not seen before. A queue that was adopted before continues where it was. A stream of
    /// Weir's and one of another library that are the same queue of the driver are in order with each other.
    agent of(const observe::stream_info& stream);
    [[nodiscard]] const std::string& name(agent stream) const noexcept { return streams_[stream].name; }
    [[nodiscard]] observe::default_kind default_of(agent stream) const noexcept { return streams_[stream].default_of; }
    [[nodiscard]] const std::string& package(agent stream) const noexcept { return streams_[stream].package; }
    [[nodiscard]] std::uint64_t id(agent stream) const noexcept { return streams_[stream].id; }

    /// The moment that a point is. None if its stream was never seen.
    [[nodiscard]] std::optional<moment> find(frontiers::point p) const;

    /// Sets the actor: the body of the operation at `operation`, or, with epoch 0, the program's threads.
    void act_for(frontiers::point operation) { body_ = operation.at == 0 ? std::nullopt : find(operation); }
    /// The operation whose body is the actor, if it is one.
    [[nodiscard]] const std::optional<moment>& body() const noexcept { return body_; }
    /// What the actor comes after.
    [[nodiscard]] clock actor_knows() const;
    /// The actor's later actions come after `past`.
    void actor_joins(moment past);

    /// Later work of `stream` comes after what the actor comes after, and after what its queue has got by another name.
    void join_actor(agent stream);
    /// At `at`, an event was recorded, which holds what the queue has got by either name.
    void record(agent stream, frontiers::epoch at);
    /// The actor's later actions come after all that Weir's streams of this device have got.
    void actor_joins_device(std::string_view device);
    /// Later work of `stream` comes after `past` and everything that `past` comes after.
    void join(agent stream, moment past);
    /// `stream` has reached `at`: an operation or a wait, which comes after everything that was joined before.
    void reach(agent stream, frontiers::epoch at);

    /// The last moment that `stream` has reached, as far as known.
    [[nodiscard]] frontiers::epoch tail(agent stream) const noexcept { return streams_[stream].tail; }
    /// What `stream` comes after now, on other streams than its own.
    [[nodiscard]] const clock& known(agent stream) const noexcept { return streams_[stream].now; }
    /// What a moment comes after, on other streams than its own.
    [[nodiscard]] clock known_at(moment m) const;

    /// Whether work that `stream` gets now comes after `past`.
    [[nodiscard]] bool ordered(agent stream, moment past) const noexcept {
        return past.stream == stream || covers(streams_[stream].now, past);
    }
    /// Whether the actor's next action comes after `past`.
    [[nodiscard]] bool ordered_for_actor(moment past) const {
        return body_ ? covers(actor_knows(), past) : covers(host_, past);
    }
    /// Whether `later` is `past`, or comes after it.
    [[nodiscard]] bool ordered(moment past, moment later) const {
        return past.stream == later.stream ? past.at <= later.at : covers(known_at(later), past);
    }

private:
    /// The body of `operation` has waited for what `knows` covers: everything after the end of the operation comes after that, including
    /// what was ordered after the operation before its body ran.
    void body_joins(moment operation, const clock& knows);
    /// Makes the two numbers of one queue known to each other.
    void pair(agent made, const observe::stream_info& stream);
    void join_twin(agent stream);

    struct version {
        frontiers::epoch from = 0;  ///< the first moment that has this clock
        clock known;
    };
    struct stream_clock {
        std::uint64_t id = 0;
        std::string name;
        std::string package;  ///< the library whose stream it is; empty if it is Weir's
        std::string device;
        std::optional<agent> twin;       ///< the same queue, as the other side knows it
        frontiers::epoch twin_seen = 0;  ///< its last moment that was joined
        observe::default_kind default_of = observe::default_kind::none;
        frontiers::epoch tail = 0;
        clock now;                      ///< what the next operation is ordered after
        std::vector<version> versions;  ///< increasing `from`
        clock host;                     ///< the host's clock when it was last joined
        // A stream runs one body at a time. These two are of the last body that waited for something itself.
        frontiers::epoch body = 0;
        clock body_knows;
    };

    std::vector<stream_clock> streams_;
    std::unordered_map<std::uint64_t, agent> by_id_;
    std::unordered_map<std::uint64_t, agent> by_queue_;  ///< the last stream that each adopted queue was
    /// The last streams that a handle of a device was: of Weir's, and of another library.
    std::map<std::pair<std::string, std::uint64_t>, std::array<std::optional<agent>, 2>> by_handle_;
    observe::stream_directory directory_;
    clock host_;
    std::optional<moment> body_;
};

}  // namespace weir::check
