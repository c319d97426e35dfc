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

/// The order that the program itself asks for: vector clocks of the streams and of the host. Whatever is joined stays
/// (rule V1: verdicts do not depend on what was over when). Not synchronised.
class program_order {
public:
    /// The number of a stream; a new one at first sight.
    agent of(const runtime::stream_info& stream);
    [[nodiscard]] const std::string& name(agent who) const noexcept { return streams_[who].name; }
    [[nodiscard]] std::uint64_t id(agent who) const noexcept { return streams_[who].id; }

    /// Which stream's moment a point is. None if that stream was never seen.
    [[nodiscard]] std::optional<moment> find(frontiers::point p) const;

    /// What `who` does from now on comes after what the host knows.
    void join_host(agent who);
    /// What `who` does from now on comes after `past` and all that `past` comes after.
    void join(agent who, moment past);
    /// `who` has reached `at`: an operation or a wait of its, which comes after all that was joined before.
    void reach(agent who, frontiers::epoch at);

    /// What anybody enqueues from now on comes after `past`.
    void host_joins(moment past);

    /// Whether what `who` does now comes after `past`.
    [[nodiscard]] bool ordered(agent who, moment past) const noexcept;
    [[nodiscard]] bool ordered_for_host(moment past) const noexcept { return host_.covers({past.who, past.at}); }

private:
    using clock = std::shared_ptr<const frontiers::frontier>;

    struct version {
        frontiers::epoch from = 0;  ///< the first moment that has this clock
        clock known;
    };
    struct stream_clock {
        std::uint64_t id = 0;
        std::string name;
        clock now;                       ///< what comes next is ordered after this; null is empty
        std::vector<version> versions;   ///< increasing `from`
        std::uint64_t host_version = 0;  ///< of the host's clock when it was last joined
    };
    [[nodiscard]] clock clock_at(moment m) const;

    std::vector<stream_clock> streams_;
    std::unordered_map<std::uint64_t, agent> by_id_;
    runtime::stream_directory directory_;
    frontiers::frontier host_;
    std::uint64_t host_version_ = 0;
};

}  // namespace weir::check
