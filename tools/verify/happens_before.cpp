#include "happens_before.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace weir_verify {

bool happens_before::add_stream(const stream_record& one) {
    const auto [found, is_new] = by_id_.try_emplace(one.stream, static_cast<agent>(streams_.size()));
    if (!is_new) {
        return false;
    }
    stream_state& made = streams_.emplace_back();
    made.id = one.stream;
    made.name = one.name;
    made.device = one.device;
    made.order = one.order;
    made.former = one.former;
    made.is_new = one.is_new;
    made.before = one.former.epoch;
    made.tail = one.former.epoch;
    made.host = host_;
    if (one.queue != 0) {
        // A queue that was adopted before, by a stream that no longer exists, still runs in order.
        const auto [known, is_first] = by_queue_.try_emplace(one.queue, found->second);
        if (!is_first) {
            const stream_state& former = streams_[std::exchange(known->second, found->second)];
            made.now = former.now;
            const moment last{former.id, former.tail};
            if (standing_of(last) == standing::known) {
                join(found->second, past_of(last));
            }
        }
    }
    return true;
}

std::optional<agent> happens_before::find(std::uint64_t stream) const {
    const auto found = by_id_.find(stream);
    return found == by_id_.end() ? std::nullopt : std::optional(found->second);
}

bool happens_before::ordered_by_device(agent one, agent other) const {
    const stream_state& a = streams_[one];
    const stream_state& b = streams_[other];
    if (a.order == nullptr || b.order == nullptr || a.device == nullptr || b.device == nullptr) {
        return false;
    }
    const bool is_pair =
        (*a.order == "legacy" && *b.order == "blocking") || (*a.order == "blocking" && *b.order == "legacy");
    return is_pair && *a.device == *b.device;
}

std::string happens_before::flaw_of_next(agent who, std::uint64_t epoch) const {
    const stream_state& of = streams_[who];
    if (epoch <= of.tail) {
        return "the stream was at " + std::to_string(of.tail) + " already";
    }
    if (epoch > of.tail + 1 && (of.is_begun || of.is_new)) {
        return "the log misses what came between it and " + std::to_string(of.tail);
    }
    return {};
}

void happens_before::reach(agent who, std::uint64_t epoch, bool is_operation) {
    stream_state& of = streams_[who];
    if (!of.is_begun) {
        of.is_begun = true;
        of.before = epoch - 1;
        of.last_operation = of.before;
    }
    of.tail = epoch;
    of.host = host_;
    const bool same =
        is_operation &&
        (of.versions.empty() ? !of.now : !of.versions.back().is_wait && of.versions.back().known == of.now);
    if (!same) {
        of.versions.push_back({epoch, of.last_operation, !is_operation, of.now});
    }
    if (is_operation) {
        of.last_operation = epoch;
        ++operations_;
    }
}

void happens_before::join(agent who, const past& one) {
    const auto is_useless = [&](position p) { return p.who == who || host_->covers(p) || settled_.covers(p); };
    if (one.is_settled || ordered(who, one)) {
        return;
    }
    stream_state& of = streams_[who];
    clock merged = of.now ? *of.now : clock();
    if (one.known) {
        merged.merge(*one.known);
    }
    merged.merge(one.last);
    merged.forget(is_useless);
    of.now = std::make_shared<const clock>(std::move(merged));
}

void happens_before::host_joins(const past& one) {
    if (one.is_settled || all_of(one, [&](position p) { return host_->covers(p); })) {
        return;
    }
    auto merged = std::make_shared<full_clock>(*host_);
    merged->merge(one.last);
    if (one.known) {
        merged->merge(*one.known);
    }
    host_ = std::move(merged);
}

std::string happens_before::executed(agent who, std::uint64_t epoch) {
    stream_state& of = streams_[who];
    if (!of.is_new && (!of.is_begun || epoch <= of.before)) {
        return {};  // it was enqueued before the log began
    }
    if (!of.is_begun || epoch <= of.before || epoch > of.tail) {
        return "no such operation has been enqueued";
    }
    const version* const at = version_at(of, epoch);
    if (at != nullptr && at->is_wait) {
        return "this is no operation, but a wait";
    }
    if (epoch <= of.last_executed) {
        return "after it or a later one of its stream has run already";
    }
    if (at != nullptr && at->known && at->known != of.checked) {
        for (const position& one : at->known->entries()) {
            if (!is_over(one)) {
                return "before [" + std::to_string(streams_[one.who].id) + ", " + std::to_string(one.epoch) +
                       "] was over, which it had to wait for";
            }
        }
        of.checked = at->known;
    }
    of.last_executed = epoch;
    ++executed_;
    over_.merge(position{who, epoch});
    return {};
}

standing happens_before::standing_of(const moment& m) const {
    if (m.epoch == 0) {
        return standing::nothing;
    }
    const std::optional<agent> who = find(m.stream);
    if (!who) {
        return m.stream == 0 ? standing::unlogged : standing::missing;
    }
    const stream_state& of = streams_[*who];
    if (!of.is_begun) {
        return of.is_new ? standing::missing : standing::unlogged;
    }
    if (m.epoch <= of.before) {
        // If the stream began in the log, nothing came before.
        return of.is_new ? standing::missing : standing::unlogged;
    }
    return m.epoch <= of.tail ? standing::known : standing::missing;
}

past happens_before::past_of(const moment& m) const {
    const agent who = by_id_.at(m.stream);
    const stream_state& of = streams_[who];
    if (settled_.covers({who, m.epoch})) {
        return {{who, m.epoch}, nullptr, true, true};
    }
    const version* const at = version_at(of, m.epoch);
    if (at == nullptr) {
        return {{who, m.epoch}, nullptr, true, false};
    }
    if (!at->is_wait) {
        return {{who, m.epoch}, at->known, true, false};
    }
    // What came before the log is treated as nothing.
    const std::uint64_t last = at->last_operation > of.before ? at->last_operation : 0;
    return {{who, last}, at->known, false, false};
}

const happens_before::version* happens_before::version_at(const stream_state& of, std::uint64_t epoch) const {
    const auto next = std::upper_bound(of.versions.begin(), of.versions.end(), epoch,
                                       [](std::uint64_t wanted, const version& one) { return wanted < one.from; });
    return next == of.versions.begin() ? nullptr : &*std::prev(next);
}

template <class Covers>
bool happens_before::all_of(const past& one, Covers&& covers) {
    if (!covers(one.last)) {
        return false;
    }
    // Whatever comes after an operation comes after everything that the operation comes after.
    return one.is_operation || !one.known ||
           std::all_of(one.known->entries().begin(), one.known->entries().end(), covers);
}

bool happens_before::ordered(agent who, position operation) const {
    const stream_state& of = streams_[who];
    return operation.who == who || (of.now && operation.epoch <= of.now->at(operation.who)) ||
           is_known_to_host(operation);
}

bool happens_before::ordered(agent who, const past& one) const {
    return one.is_settled || all_of(one, [&](position p) { return ordered(who, p); });
}

bool happens_before::was_ordered(agent who, const past& one) const {
    const stream_state& of = streams_[who];
    return one.is_settled || all_of(one, [&](position p) {
               return p.who == who || (of.now && p.epoch <= of.now->at(p.who)) || of.host->covers(p) ||
                      settled_.covers(p);
           });
}

bool happens_before::is_over(const past& one) const {
    return one.is_settled || all_of(one, [&](position p) { return is_over(p); });
}

bool happens_before::implies(const past& later, const past& earlier) const {
    return earlier.is_settled || all_of(earlier, [&](position p) {
               return (p.who == later.last.who && p.epoch <= later.last.epoch) ||
                      (later.known && p.epoch <= later.known->at(p.who)) || is_known_to_host(p);
           });
}

bool happens_before::was_implied(agent who, const past& later, const past& earlier) const {
    const stream_state& of = streams_[who];
    return earlier.is_settled || all_of(earlier, [&](position p) {
               return (p.who == later.last.who && p.epoch <= later.last.epoch) ||
                      (later.known && p.epoch <= later.known->at(p.who)) || of.host->covers(p) || settled_.covers(p);
           });
}

void happens_before::settle(bool host_only) {
    for (agent who = 0; who < streams_.size(); ++who) {
        stream_state& of = streams_[who];
        const std::uint64_t known = host_only ? host_->at(who) : std::max(host_->at(who), over_.at(who));
        settled_.merge(position{who, known});
        while (of.versions.size() > 1 && of.versions[1].from - 1 <= known) {
            of.versions.pop_front();
        }
    }
}

}  // namespace weir_verify
