#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "finding.hpp"
#include "happens_before.hpp"
#include "memory_map.hpp"
#include "record.hpp"

namespace weir_verify {

struct audit_options {
    /// Applies the same rules to accesses that the program orders itself.
    bool as_automatic = false;
    /// Operations that had run when a later operation was enqueued come before it. Otherwise only streams, waits and the host's own
    /// waits order anything.
    bool trust_completion = true;
    /// Complete operations are forgotten after so many records.
    std::uint64_t window = 16384;
};

/// The contents of a log, in numbers.
struct audit_summary {
    std::uint64_t operations = 0;
    std::uint64_t streams = 0;
    std::uint64_t waits = 0;     ///< device-side, issued
    std::uint64_t elisions = 0;  ///< waits that were left out, with a witness or asked for by the program
    std::uint64_t host_waits = 0;
    std::uint64_t allocations = 0;
    std::uint64_t conflicts = 0;  ///< pairs of accesses that had to be ordered
    /// Of these, pairs of which the first access had run before the second was enqueued.
    std::uint64_t by_completion = 0;
    /// Claims about the time before the log, or about things not in it, which nothing can prove.
    std::uint64_t trusted = 0;
    std::uint64_t pending = 0;  ///< operations that had not run when the log ended
};

/// Audits a log, record by record. Its memory does not grow with the log. It keeps accesses, clocks and memory of incomplete
/// operations and of the last `window` records, and some words for each stream, event and place in the program.
class auditor {
public:
    explicit auditor(audit_options options = {}) : options_(options) {}

    void take(const record& one);
    [[nodiscard]] audit_summary summary() const;
    [[nodiscard]] const findings& found() const noexcept { return found_; }

private:
    void audit(const stream_record& one);
    void audit(const operation_record& one);
    void audit(const event_record& one);
    void audit(const stream_wait_record& one);
    void audit(const host_wait_record& one);
    void audit(const host_access_record& one);
    void audit(const allocation_record& one);
    void audit(const drop_record& one);
    void audit(const execution_record& one);
    void audit(const failure_record& one);
    /// An operation ran, or failed; `how` is the word for messages.
    void audit_end(const moment& at, const char* how);

    /// The stream of a record about `at`, if `at` may be the stream's next moment.
    [[nodiscard]] std::optional<agent> next_moment(const party& here, const moment& at);
    /// The past of a moment that is in the log. Otherwise nothing, and a finding is added.
    [[nodiscard]] std::optional<past> look_up(const party& here, const moment& named, const char* as);
    void check_waits(const party& here, agent who, const operation_record& one);
    void check_elision(const party& here, agent who, const operation_record& by, const elision& one);
    [[nodiscard]] std::string flaw_of_witness(agent who, const operation_record& by, const elision& one,
                                              const past& target);
    [[nodiscard]] bool is_own_tail(agent who, const moment& m) const;
    [[nodiscard]] bool is_of_stream(agent who, const moment& m) const;
    /// The memory of an access. Null, and a finding is added, if it may not be accessed.
    [[nodiscard]] resource* enter(const party& here, const access& one);
    void check_access(const party& here, agent who, const access& one, resource& in);
    void check_pair(const party& here, agent who, const access& one, const past_access& earlier, bool is_former);
    void remember(const party& here, agent who, const access& one, resource& in);
    [[nodiscard]] bool counts_as_over(position p) const { return options_.trust_completion && order_.is_over(p); }

    void violation(const char* kind, const party& here, std::string what, std::string missing = {},
                   std::optional<party> other = std::nullopt);
    void note(const char* kind, const party& here, std::string what);
    [[nodiscard]] party host(const place& from) const { return {line_, from, nullptr, {}, nullptr}; }
    [[nodiscard]] party on(const moment& at, const place& from, text label) const;

    audit_options options_;
    happens_before order_;
    memory_map memory_;
    findings found_;
    audit_summary sum_;
    std::unordered_map<std::uint64_t, std::array<moment, 2>> events_;  ///< the last two records of each
    /// For each stream the last operation that failed. It may still be reported as run, since streams end one after the other.
    std::unordered_map<std::uint64_t, std::uint64_t> failed_;
    std::uint64_t line_ = 0;
    std::uint64_t since_settled_ = 0;
};

}  // namespace weir_verify
