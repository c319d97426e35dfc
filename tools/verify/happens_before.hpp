#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "clock.hpp"
#include "record.hpp"

namespace weir_verify {

using clock_pointer = std::shared_ptr<const clock>;

/// What the log shows about a moment that a record names.
enum class standing : std::uint8_t {
    nothing,   ///< before everything: nothing to wait for
    unlogged,  ///< in a stream, or at a time, that the log does not show
    known,     ///< in the log
    missing,   ///< in a stream of the log, but not in the log
};

/// Everything up to a moment: the last operation at or before it, and what comes before that operation on other streams.
struct past {
    position last;        ///< epoch 0: no operation
    clock_pointer known;  ///< null: nothing
    bool is_operation = true;
    bool is_settled = false;  ///< complete for so long that nothing else is kept about it
};

/// The order that a log proves: within each stream, by waits, and by the host's waits. Computed from the records alone.
/// Completion is tracked separately: an operation is complete once its execution is in the log.
///
/// A wait is no operation: it makes the later moments of its stream come after its target, and is complete when the target is.
/// For what has been complete for a while (`settle`), only that fact is kept.
class happens_before {
public:
    /// False if the stream is in the log already.
    bool add_stream(const stream_record& one);
    /// The stream's number, if it is in the log.
    [[nodiscard]] std::optional<agent> find(std::uint64_t stream) const;

    [[nodiscard]] text name(agent who) const { return streams_[who].name; }
    /// Whether the device orders the two streams by itself: the legacy default stream and a blocking one.
    [[nodiscard]] bool ordered_by_device(agent one, agent other) const;
    [[nodiscard]] std::uint64_t id(agent who) const { return streams_[who].id; }
    [[nodiscard]] std::uint64_t tail(agent who) const { return streams_[who].tail; }
    [[nodiscard]] moment former(agent who) const { return streams_[who].former; }
    /// Whether the log shows no work of the stream yet.
    [[nodiscard]] bool is_fresh(agent who) const { return !streams_[who].is_begun; }

    /// A description of what is wrong with `epoch` as the stream's next one; empty if nothing is.
    [[nodiscard]] std::string flaw_of_next(agent who, std::uint64_t epoch) const;
    /// The stream has reached `epoch`.
    void reach(agent who, std::uint64_t epoch, bool is_operation);
    /// Later work of the stream comes after `one`.
    void join(agent who, const past& one);
    /// The host knows that `one` is complete: everything enqueued from now on comes after it.
    void host_joins(const past& one);
    /// An operation ran. Returns what is wrong with that; empty if nothing is.
    [[nodiscard]] std::string executed(agent who, std::uint64_t epoch);

    [[nodiscard]] standing standing_of(const moment& m) const;
    /// Requires a known moment.
    [[nodiscard]] past past_of(const moment& m) const;

    /// Whether the stream's next work comes after an operation: by streams, waits, and the host's waits.
    [[nodiscard]] bool ordered(agent who, position operation) const;
    /// Whether the stream's next work comes after everything up to a moment.
    [[nodiscard]] bool ordered(agent who, const past& one) const;
    /// The same, without the host's waits since the stream's last moment.
    [[nodiscard]] bool was_ordered(agent who, const past& one) const;
    [[nodiscard]] bool is_known_to_host(position one) const { return host_->covers(one) || settled_.covers(one); }
    /// Whether it is complete, according to executions or the host's waits.
    [[nodiscard]] bool is_over(position one) const { return over_.covers(one) || host_->covers(one); }
    [[nodiscard]] bool is_over(const past& one) const;
    /// Whether everything up to the moment of `later` comes after everything up to `earlier`.
    [[nodiscard]] bool implies(const past& later, const past& earlier) const;
    /// The same for the stream's next work, without the host's waits since its last moment: another thread's wait may have been recorded
    /// after the operation was planned, and before the operation was recorded.
    [[nodiscard]] bool was_implied(agent who, const past& later, const past& earlier) const;

    /// Settles everything that is complete now or, with `host_only`, what the host knows: everything that is enqueued later comes after it,
    /// and its clocks are dropped.
    void settle(bool host_only);
    [[nodiscard]] bool is_settled(position operation) const { return settled_.covers(operation); }
    /// The number of operations that have not run.
    [[nodiscard]] std::uint64_t pending() const noexcept { return operations_ - executed_; }

private:
    /// The clock of a stream from some epoch on.
    struct version {
        std::uint64_t from = 0;
        std::uint64_t last_operation = 0;  ///< for a wait: the operation before it
        bool is_wait = false;
        clock_pointer known;
    };
    struct stream_state {
        std::uint64_t id = 0;
        text name = nullptr;
        text device = nullptr;
        text order = nullptr;
        moment former;
        bool is_new = false;
        bool is_begun = false;
        std::uint64_t before = 0;  ///< the log shows nothing up to here
        std::uint64_t tail = 0;
        std::uint64_t last_operation = 0;
        std::uint64_t last_executed = 0;
        clock_pointer now;
        clock_pointer checked;                   ///< the last one that was complete when an operation had run
        std::shared_ptr<const full_clock> host;  ///< the host's knowledge at the tail
        std::deque<version> versions;            ///< of moments that are not settled
    };

    [[nodiscard]] const version* version_at(const stream_state& of, std::uint64_t epoch) const;
    /// Whether `covers(position)` holds for everything up to a moment.
    template <class Covers>
    [[nodiscard]] static bool all_of(const past& one, Covers&& covers);

    std::vector<stream_state> streams_;
    std::unordered_map<std::uint64_t, agent> by_id_;
    std::unordered_map<std::uint64_t, agent> by_queue_;  ///< the last stream that adopted the queue
    std::shared_ptr<const full_clock> host_ = std::make_shared<full_clock>();
    full_clock over_;
    full_clock settled_;
    std::uint64_t operations_ = 0;
    std::uint64_t executed_ = 0;
};

}  // namespace weir_verify
