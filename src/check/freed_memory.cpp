#include "check/freed_memory.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "frontier/point.hpp"

namespace weir::check {

void owners_end::release(const program_order& order, const clock& allocating) {
    const clock knows = order.actor_knows();
    if (!order.body()) {
        program_ = knows;
        allocating_ = allocating;
        by_program_ = true;
        return;
    }
    if (knows) {
        operations_.merge(*knows);
    }
    operations_.merge(frontiers::point{order.body()->stream, order.body()->at});
}

bool owners_end::comes_after(moment past, const clock& allocating_now) const noexcept {
    // When an operation lets go depends on timing; when the program lets go does not. So what the allocating stream is given later counts
    // only if the program never owned the memory.
    const clock& allocating = by_program_ ? allocating_ : allocating_now;
    return covers(program_, past) || covers(allocating, past) || operations_.covers({past.stream, past.at});
}

freed_memory::part& freed_memory::insert(const memory_place& place, std::uint64_t age) {
    const std::pair key(place.device, place.address);
    const auto known = parts_.find(key);
    parts::iterator at = known;
    if (known == parts_.end() && !spare_.empty()) {
        parts::node_type node = std::move(spare_.back());
        spare_.pop_back();
        node.key() = key;
        node.mapped().accesses.clear();
        at = parts_.insert(std::move(node)).position;
    } else if (known == parts_.end()) {
        at = parts_.emplace(key, part{}).first;
    }
    // If it was known, it was given out again unseen: its accesses stay.
    at->second.bytes = place.bytes;
    at->second.stream = place.stream;
    at->second.age = age;
    return at->second;
}

void freed_memory::forget_older_half() {
    std::vector<std::uint64_t> ages;
    ages.reserve(parts_.size());
    for (const auto& each : parts_) {
        ages.push_back(each.second.age);
    }
    const auto middle = ages.begin() + static_cast<std::ptrdiff_t>(ages.size() / 2);
    std::nth_element(ages.begin(), middle, ages.end());
    std::erase_if(parts_, [&](const auto& each) {
        const bool is_old = each.second.age <= *middle;
        forgotten_ += is_old ? each.second.accesses.size() : 0;
        return is_old;
    });
}

void freed_memory::add(const memory_place& place, const std::vector<past_access>& accesses) {
    if (accesses.empty()) {
        return;
    }
    if (parts_.size() >= most) {
        forget_older_half();
    }
    std::vector<past_access>& all = insert(place, ++drops_).accesses;
    all.insert(all.end(), accesses.begin(), accesses.end());
}

void freed_memory::take(const memory_place& place, access_history& to) {
    const std::uint64_t end = place.address + place.bytes;
    // The last part that begins before the memory may reach into it.
    auto next = parts_.lower_bound({place.device, place.address});
    if (next != parts_.begin()) {
        --next;
    }
    while (next != parts_.end() && next->first < std::pair(place.device, end)) {
        const auto found = next++;
        const std::uint64_t former = found->first.second;
        const std::uint64_t former_end = former + found->second.bytes;
        if (found->first.first != place.device || former_end <= place.address) {
            continue;
        }
        parts::node_type node = parts_.extract(found);
        if (node.mapped().stream && place.stream && node.mapped().stream != place.stream) {
            continue;  // the allocator has waited
        }
        for (const past_access& one : node.mapped().accesses) {
            to.add(moved(one, former, place.address, place.bytes));
        }
        // What lies outside the new owner's memory stays for later owners.
        for (const auto& [from, until] : {std::pair(former, place.address), std::pair(end, former_end)}) {
            if (from >= until) {
                continue;
            }
            const memory_place rest{place.device, from, until - from, node.mapped().stream};
            for (const past_access& one : node.mapped().accesses) {
                if (past_access left = moved(one, former, rest.address, rest.bytes); !left.where.empty()) {
                    insert(rest, node.mapped().age).accesses.push_back(std::move(left));
                }
            }
        }
        if (spare_.size() < most_spare) {
            spare_.push_back(std::move(node));
        }
    }
}

}  // namespace weir::check
