#include "memory_map.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace weir_verify {

namespace {

/// The part of an access, given by addresses, that lies in [begin, end); with an empty range if there is none.
past_access cut(const past_access& one, std::uint64_t begin, std::uint64_t end) {
    past_access part = one;
    part.where = {std::max(one.where.begin, begin), std::min(one.where.end, end), 0, {}};
    return part;
}

void append(std::vector<past_access>& to, const std::vector<past_access>& from, std::uint64_t begin,
            std::uint64_t end) {
    for (const past_access& one : from) {
        past_access part = cut(one, begin, end);
        if (!part.where.empty()) {
            to.push_back(std::move(part));
        }
    }
}

}  // namespace

bool number_set::contains(std::uint64_t one) const {
    const auto next = ranges_.upper_bound(one);
    return next != ranges_.begin() && one <= std::prev(next)->second;
}

void number_set::insert(std::uint64_t one) {
    if (contains(one)) {
        return;
    }
    std::uint64_t last = one;
    if (const auto above = ranges_.upper_bound(one); above != ranges_.end() && above->first - 1 == one) {
        last = above->second;
        ranges_.erase(above);
    }
    const auto next = ranges_.upper_bound(one);
    if (next != ranges_.begin() && std::prev(next)->second + 1 == one) {
        std::prev(next)->second = last;
    } else {
        ranges_.emplace(one, last);
    }
}

std::string memory_map::allocate(const allocation_record& what, std::uint64_t line, std::uint64_t& other) {
    if (dropped_.contains(what.resource) || (resources_.contains(what.resource) && resources_[what.resource].device)) {
        return "the number " + std::to_string(what.resource) + " was given to another piece of memory before";
    }
    resource& made = resources_[what.resource];
    made.bytes = what.bytes;
    made.device = what.device;
    made.line = line;
    if (what.address == 0 || what.bytes == 0 || what.stream == 0) {
        return {};  // no memory, or memory of other code: Weir does not decide how other code uses it
    }
    space& all = spaces_[*what.device];
    const std::uint64_t end = what.address + what.bytes;
    const auto next = all.owners.lower_bound(end);
    if (next != all.owners.begin()) {
        const std::uint64_t owner = std::prev(next)->second;
        const resource& below = resources_[owner];
        if (below.address + below.bytes > what.address) {
            other = below.line;
            return "memory " + std::to_string(what.resource) + " is given bytes that memory " + std::to_string(owner) +
                   " still owns";
        }
    }
    made.address = what.address;
    all.owners.emplace(what.address, what.resource);
    inherit(all, made);
    return {};
}

/// Moves the accesses of former owners to this memory to `heir`.
void memory_map::inherit(space& from, resource& heir) {
    const std::uint64_t begin = heir.address;
    const std::uint64_t end = heir.address + heir.bytes;
    auto at = from.pieces.upper_bound(begin);
    if (at != from.pieces.begin()) {
        --at;
    }
    while (at != from.pieces.end() && at->first < end) {
        const std::uint64_t piece_begin = at->first;
        piece old = std::move(at->second);
        if (old.end <= begin) {
            at->second = std::move(old);
            ++at;
            continue;
        }
        at = from.pieces.erase(at);
        append(heir.former, old.accesses, begin, end);
        piece below{begin, {}};
        append(below.accesses, old.accesses, piece_begin, begin);
        if (piece_begin < begin && !below.accesses.empty()) {
            from.pieces.emplace(piece_begin, std::move(below));
        }
        piece above{old.end, {}};
        append(above.accesses, old.accesses, end, old.end);
        if (end < old.end && !above.accesses.empty()) {
            at = std::next(from.pieces.emplace(end, std::move(above)).first);
        }
    }
    for (past_access& one : heir.former) {
        one.where.begin -= begin;
        one.where.end -= begin;
    }
}

std::string memory_map::drop(std::uint64_t id, const happens_before& order, bool trust_completion) {
    if (dropped_.contains(id)) {
        return "memory " + std::to_string(id) + " was dropped before";
    }
    dropped_.insert(id);
    const auto found = resources_.find(id);
    if (found == resources_.end()) {
        return {};
    }
    resource& one = found->second;
    if (one.address != 0) {
        space& all = spaces_[*one.device];
        all.owners.erase(one.address);
        piece left{one.address + one.bytes, {}};
        for (std::vector<past_access>* const list : {&one.own, &one.former}) {
            for (past_access& each : *list) {
                if (!(trust_completion ? order.is_over(each.when) : order.is_known_to_host(each.when))) {
                    each.where = {one.address + each.where.begin, one.address + each.where.end, 0, {}};
                    left.accesses.push_back(std::move(each));
                }
            }
        }
        if (!left.accesses.empty()) {
            all.pieces.emplace(one.address, std::move(left));
        }
    }
    resources_.erase(found);
    return {};
}

void memory_map::prune(const happens_before& order) {
    const auto is_settled = [&](const past_access& one) { return order.is_settled(one.when); };
    for (auto& [id, one] : resources_) {
        std::erase_if(one.own, is_settled);
        std::erase_if(one.former, is_settled);
    }
    // If the log shows no allocation of a resource, it does not show its end either.
    std::erase_if(resources_,
                  [](const auto& each) { return each.second.device == nullptr && each.second.own.empty(); });
    for (auto& [device, all] : spaces_) {
        for (auto at = all.pieces.begin(); at != all.pieces.end();) {
            std::erase_if(at->second.accesses, is_settled);
            at = at->second.accesses.empty() ? all.pieces.erase(at) : std::next(at);
        }
    }
}

}  // namespace weir_verify
