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

/// What is known of a moment that a record names.
enum class standing : std::uint8_t {
    nothing,   ///< before everything: nothing to wait for
    unlogged,  ///< of a stream, or from a time, that the log does not show
    known,     ///< in the log
    missing,   ///< of a stream of the log, and not in it
};

/// Everything up to a moment: the last operation at or before it, and what comes before that on other streams.
struct past {
    position last;        ///< epoch 0: no operation
    clock_pointer known;  ///< null: nothing
    bool is_operation = true;
    bool is_settled = false;  ///< over for so long that nothing else is known of it
};

/// The order that a log proves: of each stream; by waits; by what the host waited for. Built anew from the records alone.
/// What is over is followed as well, apart: operations are over once their executions are in the log.
///
/// A wait is no operation: it makes the later moments of its stream come after its target, and is over when that is.
/// Of what was over for a while (`settle`) nothing more is kept than that it was.
class happens_before {
public:
    /// false if the stream is in the log already.
    bool add_stream(const stream_record& one);
    /// The stream's number, if it is in the log.
    [[nodiscard]] std::optional<agent> find(std::uint64_t stream) const;

    [[nodiscard]] text name(agent who) const { return streams_[who].name; }
    /// Whether the device of the two orders them by itself: the legacy default stream and a blocking one.
    [[nodiscard]] bool ordered_by_device(agent one, agent other) const;
    [[nodiscard]] std::uint64_t id(agent who) const { return streams_[who].id; }
    [[nodiscard]] std::uint64_t tail(agent who) const { return streams_[who].tail; }
    [[nodiscard]] moment former(agent who) const { return streams_[who].former; }
    /// Whether the log shows no work of the stream yet.
    [[nodiscard]] bool is_fresh(agent who) const { return !streams_[who].is_begun; }

    /// What is wrong with `epoch` as the stream's next one; empty if nothing is.
    [[nodiscard]] std::string flaw_of_next(agent who, std::uint64_t epoch) const;
    /// The stream has reached `epoch`.
    void reach(agent who, std::uint64_t epoch, bool is_operation);
    /// What the stream does from now on comes after it.
    void join(agent who, const past& one);
    /// The host knows that it is over: what anybody enqueues from now on comes after it.
    void host_joins(const past& one);
    /// An operation ran. What is wrong with that; empty if nothing is.
    [[nodiscard]] std::string executed(agent who, std::uint64_t epoch);

    [[nodiscard]] standing standing_of(const moment& m) const;
    /// Of a known moment.
    [[nodiscard]] past past_of(const moment& m) const;

    /// Whether what the stream does now comes after an operation: by streams, waits, and the host's waits.
    [[nodiscard]] bool ordered(agent who, position operation) const;
    /// Whether what the stream does now comes after everything up to a moment.
    [[nodiscard]] bool ordered(agent who, const past& one) const;
    /// The same, without the host's waits since the stream's last moment.
    [[nodiscard]] bool was_ordered(agent who, const past& one) const;
    [[nodiscard]] bool is_known_to_host(position one) const { return host_->covers(one) || settled_.covers(one); }
    /// Whether it is over, by what has run or what the host waited for.
    [[nodiscard]] bool is_over(position one) const { return over_.covers(one) || host_->covers(one); }
    [[nodiscard]] bool is_over(const past& one) const;
    /// Whether everything up to the moment of `later` comes after everything up to `earlier`.
    [[nodiscard]] bool implies(const past& later, const past& earlier) const;
    /// The same for what the stream does now, without the host's waits since its last moment: another thread's may have been
    /// told after the operation was planned, and before it was told itself.
    [[nodiscard]] bool was_implied(agent who, const past& later, const past& earlier) const;

    /// Settles what is over now, or with `host_only` what the host knows: everything that is enqueued later comes after it,
    /// and its clocks are forgotten.
    void settle(bool host_only);
    [[nodiscard]] bool is_settled(position operation) const { return settled_.covers(operation); }
    /// How many operations had not run.
    [[nodiscard]] std::uint64_t pending() const noexcept { return operations_ - executed_; }

private:
    /// The clock of a stream from some epoch on.
    struct version {
        std::uint64_t from = 0;
        std::uint64_t last_operation = 0;  ///< of a wait: the operation before it
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
        std::uint64_t before = 0;  ///< up to here the log shows nothing
        std::uint64_t tail = 0;
        std::uint64_t last_operation = 0;
        std::uint64_t last_executed = 0;
        clock_pointer now;
        clock_pointer checked;                   ///< the last one that was over when an operation had run
        std::shared_ptr<const full_clock> host;  ///< what the host knew at the tail
        std::deque<version> versions;            ///< of what is not settled
    };

    [[nodiscard]] const version* version_at(const stream_state& of, std::uint64_t epoch) const;
    /// Whether `covers(position)` holds for everything up to a moment.
    template <class Covers>
    [[nodiscard]] static bool all_of(const past& one, Covers&& covers);

    std::vector<stream_state> streams_;
    std::unordered_map<std::uint64_t, agent> by_id_;
    std::unordered_map<std::uint64_t, agent> by_queue_;  ///< the last stream that somebody else's queue was
    std::shared_ptr<const full_clock> host_ = std::make_shared<full_clock>();
    full_clock over_;
    full_clock settled_;
    std::uint64_t operations_ = 0;
    std::uint64_t executed_ = 0;
};

}  // namespace weir_verify
