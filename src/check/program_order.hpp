// The folder check/ finds races: it observes what is enqueued, and knows nothing of how Weir orders work. Its clocks and
// histories are its own; it includes the observers' interface and frontiers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "frontier/frontier.hpp"
#include "runtime/observer.hpp"
#include "runtime/stream_directory.hpp"

namespace weir::check {

/// Names one stream. Dense, and never used again, which timelines are: that the former stream of a timeline was over
/// when the next one began is luck, and luck orders nothing.
using agent = frontiers::timeline_id;

/// A position in a stream.
struct moment {
    agent who = 0;
    frontiers::epoch at = 0;
};

/// What somebody comes after, by the numbers of agents. Null is nothing.
using clock = std::shared_ptr<const frontiers::frontier>;

[[nodiscard]] inline bool covers(const clock& known, moment past) noexcept {
    return known && known->covers({past.who, past.at});
}

/// The order that the program itself asks for: vector clocks of the streams and of whoever enqueues. Whatever is joined
/// stays (rule V1: verdicts do not depend on what was over when). Not synchronised.
///
/// Who enqueues and waits is the *actor*: the program's threads, which count as one, since nobody sees its locks; or the
/// body of an operation, which comes after what the operation comes after, and after what it waits for itself. Nothing is
/// known of how the two run beside each other.
class program_order {
public:
    /// The number of a stream; a new one at first sight. A queue that was adopted before goes on where it was.
    agent of(const runtime::stream_info& stream);
    [[nodiscard]] const std::string& name(agent who) const noexcept { return streams_[who].name; }
    [[nodiscard]] runtime::default_kind default_of(agent who) const noexcept { return streams_[who].default_of; }
    [[nodiscard]] std::uint64_t id(agent who) const noexcept { return streams_[who].id; }

    /// Which stream's moment a point is. None if that stream was never seen.
    [[nodiscard]] std::optional<moment> find(frontiers::point p) const;

    /// Who acts from now on: the body of the operation at `operation`, or, with epoch 0, the program's threads.
    void act_for(frontiers::point operation) { body_ = operation.at == 0 ? std::nullopt : find(operation); }
    /// The operation whose body acts, if it is one.
    [[nodiscard]] const std::optional<moment>& body() const noexcept { return body_; }
    /// What the actor comes after.
    [[nodiscard]] clock actor_knows() const;
    /// What the actor does from now on comes after `past`.
    void actor_joins(moment past);

    /// What `who` does from now on comes after what the actor knows.
    void join_actor(agent who);
    /// What `who` does from now on comes after `past` and all that `past` comes after.
    void join(agent who, moment past);
    /// `who` has reached `at`: an operation or a wait of its, which comes after all that was joined before.
    void reach(agent who, frontiers::epoch at);

    /// What `who` has reached last, or known to have.
    [[nodiscard]] frontiers::epoch tail(agent who) const noexcept { return streams_[who].tail; }
    /// What `who` comes after now, other streams than itself.
    [[nodiscard]] const clock& known(agent who) const noexcept { return streams_[who].now; }
    /// What a moment comes after, other streams than its own.
    [[nodiscard]] clock known_at(moment m) const;

    /// Whether what `who` does now comes after `past`.
    [[nodiscard]] bool ordered(agent who, moment past) const noexcept {
        return past.who == who || covers(streams_[who].now, past);
    }
    /// Whether what the actor does now comes after `past`.
    [[nodiscard]] bool ordered_for_actor(moment past) const { return covers(actor_knows(), past); }
    /// Whether `later` is `past`, or comes after it.
    [[nodiscard]] bool ordered(moment past, moment later) const {
        return past.who == later.who ? past.at <= later.at : covers(known_at(later), past);
    }

private:
    struct version {
        frontiers::epoch from = 0;  ///< the first moment that has this clock
        clock known;
    };
    struct stream_clock {
        std::uint64_t id = 0;
        std::string name;
        runtime::default_kind default_of = runtime::default_kind::none;
        frontiers::epoch tail = 0;
        clock now;                      ///< what comes next is ordered after this
        std::vector<version> versions;  ///< increasing `from`
        clock host;                     ///< the host's clock when it was last joined
        // A stream runs one body at a time: what the last one that waited itself has learned.
        frontiers::epoch body = 0;
        clock body_knows;
    };

    std::vector<stream_clock> streams_;
    std::unordered_map<std::uint64_t, agent> by_id_;
    std::unordered_map<std::uint64_t, agent> by_queue_;  ///< the last stream that an adopted queue was
    runtime::stream_directory directory_;
    clock host_;
    std::optional<moment> body_;
};

}  // namespace weir::check
