#include "auditor.hpp"

#include <algorithm>
#include <utility>

namespace weir_verify {

void auditor::take(const record& one) {
    line_ = one.line;
    std::visit([&](const auto& what) { audit(what); }, one.what);
    if (++since_settled_ >= options_.window) {
        since_settled_ = 0;
        order_.settle(!options_.trust_completion);
        memory_.prune(order_);
    }
}

audit_summary auditor::summary() const {
    audit_summary sum = sum_;
    sum.pending = order_.pending();
    return sum;
}

void auditor::audit(const stream_record& one) {
    ++sum_.streams;
    const party here = on({one.stream, one.former.epoch}, {}, nullptr);
    if (one.stream == 0 || !order_.add_stream(one)) {
        violation("stream", here, "stream " + std::to_string(one.stream) + " cannot be announced here");
        return;
    }
    if (one.former.stream == 0 || one.former.epoch == 0) {
        return;
    }
    const std::optional<agent> former = order_.find(one.former.stream);
    if (!former) {
        violation("stream", here, "there is no stream " + std::to_string(one.former.stream) + " before it");
        return;
    }
    // Positions after the former stream's last one may have been used by a gate.
    const moment last{one.former.stream, std::min(one.former.epoch, order_.tail(*former))};
    if (order_.standing_of(last) != standing::known) {
        return;
    }
    const past end = order_.past_of(last);
    if (!order_.is_over(end)) {
        violation("stream", here,
                  "it goes on with the positions of stream " + std::to_string(one.former.stream) +
                      ", whose work was not over",
                  "evidence that " + to_string(one.former) + " was over");
    } else if (options_.trust_completion) {
        order_.join(*order_.find(one.stream), end);
    }
}

void auditor::audit(const operation_record& one) {
    ++sum_.operations;
    const party here = on(one.at, one.from, one.label);
    const std::optional<agent> who = next_moment(here, one.at);
    if (!who) {
        return;
    }
    check_waits(here, *who, one);
    for (const elision& each : one.elisions) {
        check_elision(here, *who, one, each);
    }
    for (const issued_wait& each : one.waits) {
        if (order_.standing_of(each.target) == standing::known) {
            order_.join(*who, order_.past_of(each.target));
        }
    }
    order_.reach(*who, one.at.epoch, !one.is_gate);
    for (const moment& each : one.after) {
        const std::optional<past> after = look_up(here, each, "what it has to come after");
        if (after && !order_.ordered(*who, *after) && !(options_.trust_completion && order_.is_over(*after))) {
            violation("after", here, "it was asked to come after " + to_string(each) + ", and nothing orders the two",
                      "a wait for " + to_string(each) + " before " + to_string(one.at));
        }
    }
    for (const access& each : one.accesses) {
        if (resource* const in = enter(here, each)) {
            check_access(here, *who, each, *in);
        }
    }
    for (const access& each : one.accesses) {
        if (!memory_.was_dropped(each.resource) && !each.where.empty()) {
            remember(here, *who, each, memory_.at(each.resource));
        }
    }
}

void auditor::check_waits(const party& here, agent who, const operation_record& one) {
    for (const issued_wait& each : one.waits) {
        ++sum_.waits;
        const std::optional<past> target = look_up(here, each.target, "what it waits for");
        if (!target) {
            continue;
        }
        bool implied = order_.was_ordered(who, *target);
        for (const issued_wait& other : one.waits) {
            implied = implied || (&other != &each && order_.standing_of(other.target) == standing::known &&
                                  order_.was_implied(who, order_.past_of(other.target), *target) &&
                                  (&other < &each || !order_.was_implied(who, *target, order_.past_of(other.target))));
        }
        if (implied && target->is_operation && !target->is_settled) {
            note("redundant-wait", here, "its wait for " + to_string(each.target) + " is implied by earlier order");
        }
    }
}

void auditor::check_elision(const party& here, agent who, const operation_record& by, const elision& one) {
    ++sum_.elisions;
    const std::optional<past> target = look_up(here, one.target, "a wait that was left out");
    if (!target) {
        return;
    }
    const std::string wrong = flaw_of_witness(who, by, one, *target);
    if (!wrong.empty()) {
        violation("witness", here, "the wait for " + to_string(one.target) + " was left out, " + wrong,
                  "a valid witness, or the wait");
    }
}

/// Empty if the witness proves that the target comes first.
std::string auditor::flaw_of_witness(agent who, const operation_record& by, const elision& one, const past& target) {
    switch (one.because) {
        case witness_kind::same_stream:
            if (!is_of_stream(who, one.target)) {
                return "because it is of the same stream, which it is not";
            }
            return is_own_tail(who, one.witness) ? "" : "and the witness is not the stream's last moment";
        case witness_kind::known:
            if (!order_.was_ordered(who, target)) {
                return "because its stream came after it already, which it did not";
            }
            return is_own_tail(who, one.witness) ? "" : "and the witness is not the stream's last moment";
        case witness_kind::other_wait:
            break;
        case witness_kind::complete:
            if (!order_.is_over(target)) {
                return "because it was over, and no execution before this record shows that";
            }
            return one.witness == one.target ? "" : "and the witness is another moment";
    }
    // The witness may itself be a wait that was left out because of a third wait: the chain ends at one that was issued.
    const bool is_wait_of_its =
        std::any_of(by.waits.begin(), by.waits.end(), [&](const issued_wait& w) { return w.target == one.witness; }) ||
        std::any_of(by.elisions.begin(), by.elisions.end(),
                    [&](const elision& e) { return e.target == one.witness && e.because == witness_kind::other_wait; });
    const auto implies_target = [&](const moment& m) {
        return order_.standing_of(m) == standing::known && order_.implies(order_.past_of(m), target);
    };
    if (!is_wait_of_its || !implies_target(one.witness)) {
        return "because of a wait for " + to_string(one.witness) + ", which " +
               (is_wait_of_its ? "does not imply it" : "was not needed");
    }
    const bool is_implied =
        std::any_of(by.waits.begin(), by.waits.end(), [&](const issued_wait& w) { return implies_target(w.target); });
    return is_implied ? "" : "because of another wait, and none that was issued implies it";
}

bool auditor::is_own_tail(agent who, const moment& m) const {
    if (order_.is_fresh(who)) {
        // Nothing, or the end of the former stream; what happened before the log is not known.
        return m == order_.former(who) || m.epoch == 0 || order_.standing_of(m) == standing::unlogged;
    }
    return m == moment{order_.id(who), order_.tail(who)};
}

bool auditor::is_of_stream(agent who, const moment& m) const {
    std::optional<agent> one = who;
    while (one && order_.id(*one) != m.stream && m.epoch <= order_.former(*one).epoch) {
        one = order_.find(order_.former(*one).stream);
    }
    return one && order_.id(*one) == m.stream;
}

void auditor::audit(const event_record& one) {
    const party here = on(one.at, one.from, nullptr);
    if (one.at.epoch != 0) {
        const std::optional<agent> who = order_.find(one.at.stream);
        if (who && one.at.epoch == order_.tail(*who) + 1 && order_.flaw_of_next(*who, one.at.epoch).empty()) {
            order_.reach(*who, one.at.epoch, false);  // a record that takes a position of its own
        }
        const std::optional<past> at = look_up(here, one.at, "what the event stands for");
        if (at && one.at.epoch != order_.tail(*who)) {
            violation("event", here,
                      "an event is recorded at the stream's end, which is " +
                          to_string(moment{one.at.stream, order_.tail(*who)}));
        }
    }
    std::array<moment, 2>& last = events_[one.event];
    last = {one.at.epoch == 0 ? moment() : one.at, last[0]};
}

void auditor::audit(const stream_wait_record& one) {
    const party here = on(one.at, one.from, nullptr);
    const std::optional<agent> who = next_moment(here, one.at);
    if (!who) {
        return;
    }
    if (!one.by_device) {
        ++(one.issued ? sum_.waits : sum_.elisions);
    }
    // Records of streams may be in another order than the calls of threads: the last but one record of the event may be meant.
    const auto recorded = events_.find(one.event);
    if (one.event != 0 && recorded != events_.end() && one.target != recorded->second[0] &&
        one.target != recorded->second[1]) {
        violation("event", here,
                  "it waits for " + to_string(one.target) + " through event " + std::to_string(one.event) +
                      ", which stands for " + to_string(recorded->second[0]));
    }
    const std::optional<past> target = look_up(here, one.target, "what it waits for");
    if (target) {
        const bool implied = order_.was_ordered(*who, *target);
        if (one.issued && implied && target->is_operation && !target->is_settled) {
            note("redundant-wait", here, "the wait for " + to_string(one.target) + " is implied by earlier order");
        }
        if (const std::optional<agent> other = order_.find(one.target.stream);
            one.by_device && (!other || !order_.ordered_by_device(*who, *other))) {
            violation(
                "witness", here,
                "the device is said to put it after " + to_string(one.target) +
                    " by itself, which it does with the legacy default stream and blocking streams of its own alone",
                "a wait");
        }
        if (one.issued || one.by_device || implied || order_.is_over(*target)) {
            order_.join(*who, *target);
        } else {
            violation("witness", here,
                      "the program's wait for " + to_string(one.target) +
                          " was left out, and neither order nor an execution implies it",
                      "the wait");
        }
    }
    order_.reach(*who, one.at.epoch, false);
}

void auditor::audit(const host_wait_record& one) {
    ++sum_.host_waits;
    const party here = host(one.from);
    const std::optional<past> target = look_up(here, one.target, "what the host waited for");
    if (!target) {
        return;
    }
    if (!order_.is_over(*target)) {
        violation("host-wait", here, "the host's wait for " + to_string(one.target) + " returned, and it had not run",
                  "an execution before this record");
    }
    order_.host_joins(*target);
}

void auditor::audit(const host_access_record& one) {
    const party here = host(one.from);
    resource* const in = enter(here, one.what);
    if (in == nullptr) {
        return;
    }
    const bool left_to_program = one.what.manual && !options_.as_automatic;
    const auto check = [&](const past_access& earlier, bool is_former) {
        if (!(earlier.writes || one.what.writes) || compare(earlier.where, one.what.where) == sharing::none) {
            return;
        }
        ++sum_.conflicts;
        // Weir states that it made the host wait. Accesses that the program orders itself are ordered only by the host's own waits, except
        // that Weir has the host's writes to reused memory wait in any case (rules L1, O5).
        const bool is_guarded = is_former && one.what.writes;
        const bool is_waited_for = !one.what.manual || is_guarded;
        if (order_.is_known_to_host(earlier.when) ||
            (is_waited_for ? order_.is_over(earlier.when) : counts_as_over(earlier.when))) {
            if (!one.what.manual) {
                order_.host_joins(order_.past_of(earlier.who.at));
            }
            return;
        }
        const bool is_left = left_to_program && !is_guarded;
        finding wrong{is_left ? severity::information : severity::violation,
                      is_left     ? "manual"
                      : is_former ? "reuse"
                                  : "host",
                      std::string("the host ") + (one.what.writes ? "changes " : "reads ") + to_string(one.what.where) +
                          " of memory " + std::to_string(one.what.resource) +
                          ", which an operation that may not be over " + (earlier.writes ? "writes" : "reads"),
                      "a wait of the host's for " + to_string(earlier.who.at),
                      here,
                      earlier.who};
        found_.add(std::move(wrong));
    };
    for (const past_access& each : in->own) {
        check(each, false);
    }
    for (const past_access& each : in->former) {
        check(each, true);
    }
}

void auditor::audit(const allocation_record& one) {
    ++sum_.allocations;
    const party here = host(one.from);
    if (one.stream != 0 && !order_.find(one.stream)) {
        violation("stream", here,
                  "there is no stream " + std::to_string(one.stream) + " in the log before this record");
    }
    std::uint64_t owner = 0;
    const std::string wrong = memory_.allocate(one, line_, owner);
    if (!wrong.empty()) {
        violation("memory", here, wrong, {},
                  owner == 0 ? std::nullopt : std::optional(party{owner, {}, nullptr, {}, nullptr}));
    }
}

void auditor::audit(const drop_record& one) {
    const std::string wrong = memory_.drop(one.resource, order_, options_.trust_completion);
    if (!wrong.empty()) {
        violation("memory", host({}), wrong);
    }
}

void auditor::audit(const execution_record& one) {
    const auto failed = failed_.find(one.at.stream);
    if (failed != failed_.end() && failed->second == one.at.epoch) {
        failed_.erase(failed);  // it is complete already: it ran until it failed
    } else {
        audit_end(one.at, "ran");
    }
}

void auditor::audit(const failure_record& one) {
    failed_[one.at.stream] = one.at.epoch;
    audit_end(one.at, "failed");
}

void auditor::audit_end(const moment& at, const char* how) {
    const party here = on(at, {}, nullptr);
    const std::optional<agent> who = order_.find(at.stream);
    if (!who) {
        if (at.stream != 0) {
            violation("execution", here, "there is no such stream in the log before this record");
        }
        return;
    }
    const std::string wrong = order_.executed(*who, at.epoch);
    if (!wrong.empty()) {
        violation("execution", here, to_string(at) + " " + how + ", and " + wrong);
    }
}

}  // namespace weir_verify
