// The rules about accesses, and helpers of the auditor.
#include <algorithm>
#include <utility>

#include "auditor.hpp"
#include "clock.hpp"
#include "region.hpp"

namespace weir_verify {

resource* auditor::enter(const party& here, const access& one) {
    const std::string name = "memory " + std::to_string(one.resource);
    if (memory_.was_dropped(one.resource)) {
        violation("memory", here, "it uses " + name + ", which nobody owns any more");
        return nullptr;
    }
    if (one.where.end > one.bytes) {
        violation("memory", here,
                  "it uses " + to_string(one.where) + " of " + name + ", which has " + std::to_string(one.bytes));
        return nullptr;
    }
    resource& in = memory_.at(one.resource);
    if (in.device == nullptr && in.bytes == 0) {
        ++sum_.trusted;  // from before the log, or not memory
        in.bytes = one.bytes;
    } else if (in.bytes != one.bytes) {
        violation(
            "memory", here,
            name + " has " + std::to_string(in.bytes) + " bytes here and " + std::to_string(one.bytes) + " there");
        return nullptr;
    }
    return &in;
}

void auditor::check_access(const party& here, agent who, const access& one, resource& in) {
    for (const past_access& each : in.own) {
        check_pair(here, who, one, each, false);
    }
    for (const past_access& each : in.former) {
        check_pair(here, who, one, each, true);
    }
}

void auditor::check_pair(const party& here, agent who, const access& one, const past_access& earlier, bool is_former) {
    if (!(earlier.writes || one.writes)) {
        return;
    }
    const sharing shared = compare(earlier.where, one.where);
    if (shared == sharing::none) {
        return;
    }
    ++sum_.conflicts;
    if (order_.ordered(who, earlier.when)) {
        return;
    }
    if (counts_as_over(earlier.when)) {
        ++sum_.by_completion;
        return;
    }
    // Weir orders the first write to reused memory in any case (rules L1, O5), and the program its reads behind such a write.
    const bool is_left = one.manual && !options_.as_automatic && !(is_former && one.writes);
    std::string what =
        std::string(one.writes ? "it writes " : "it reads ") + to_string(one.where) + " of memory " +
        std::to_string(one.resource) + ", which an earlier operation " + (earlier.writes ? "writes" : "reads") +
        (is_former ? " as a part of memory " + std::to_string(earlier.resource) + " before" : std::string()) +
        ": nothing orders the two" +
        (shared == sharing::unknown ? " (too many parts to say for certain that they overlap)" : "");
    found_.add({is_left ? severity::information : severity::violation,
                is_left     ? "manual"
                : is_former ? "reuse"
                            : "unordered",
                std::move(what), "a wait for " + to_string(earlier.who.at) + " before " + to_string(here.at), here,
                earlier.who});
}

/// Keeps an access, and drops earlier ones that it covers and comes after. An access ordered after the new one is ordered after these,
/// too; an unordered access is found with the new one. Accesses of former owners stay until they are complete: a later access that the
/// program orders itself may come after them and not after this one.
void auditor::remember(const party& here, agent who, const access& one, resource& in) {
    std::erase_if(in.own, [&](const past_access& each) {
        if (counts_as_over(each.when)) {
            return true;
        }
        return (one.writes || !each.writes) && covers(one.where, each.where) && order_.ordered(who, each.when);
    });
    std::erase_if(in.former, [&](const past_access& each) { return counts_as_over(each.when); });
    in.own.push_back({one.where, one.writes, {who, here.at.epoch}, one.resource, here});
}

std::optional<agent> auditor::next_moment(const party& here, const moment& at) {
    const std::optional<agent> who = order_.find(at.stream);
    if (!who) {
        violation("stream", here, "there is no stream " + std::to_string(at.stream) + " in the log before this record");
        return std::nullopt;
    }
    const std::string wrong = order_.flaw_of_next(*who, at.epoch);
    if (!wrong.empty()) {
        violation("epoch", here, to_string(at) + " cannot come here: " + wrong);
    }
    if (at.epoch <= order_.tail(*who)) {
        return std::nullopt;
    }
    return who;
}

std::optional<past> auditor::look_up(const party& here, const moment& named, const char* as) {
    switch (order_.standing_of(named)) {
        case standing::nothing:
            break;
        case standing::unlogged:
            ++sum_.trusted;
            break;
        case standing::known:
            return order_.past_of(named);
        case standing::missing:
            violation("moment", here, to_string(named) + ", " + as + ", is not in the log before this record");
            break;
    }
    return std::nullopt;
}

void auditor::violation(const char* kind, const party& here, std::string what, std::string missing,
                        std::optional<party> other) {
    found_.add({severity::violation, kind, std::move(what), std::move(missing), here, std::move(other)});
}

void auditor::note(const char* kind, const party& here, std::string what) {
    found_.add({severity::note, kind, std::move(what), {}, here, std::nullopt});
}

party auditor::on(const moment& at, const place& from, text label) const {
    const std::optional<agent> who = order_.find(at.stream);
    return {line_, from, label, at, who ? order_.name(*who) : nullptr};
}

}  // namespace weir_verify
