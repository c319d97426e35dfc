// The detector's part on memory that Weir and another library share, and both report: by the addresses, the accesses of one are compared
// with those of the other.
#include <algorithm>
#include <cstddef>
#include <utility>

#include "check/detector.hpp"

namespace weir::check {

namespace {

bool overlap(std::uint64_t a, std::uint64_t bytes_of_a, std::uint64_t b, std::uint64_t bytes_of_b) noexcept {
    return a < b + bytes_of_b && b < a + bytes_of_a;
}

}  // namespace

bool detector::link(std::uint64_t a, memory& one, std::uint64_t b, memory& two) {
    const bool is_new = std::find(one.others.begin(), one.others.end(), b) == one.others.end();
    if (!is_new || !overlap(one.address, one.extent, two.address, two.extent)) {
        return false;
    }
    one.others.push_back(b);
    two.others.push_back(a);
    return true;
}

void detector::pair(std::uint64_t weirs, memory& one, std::uint64_t theirs, memory& two) {
    if (!link(weirs, one, theirs, two)) {
        return;
    }
    // An access through one array of Weir's may replace one of the library's, with which another array's is then not compared.
    const std::vector<std::uint64_t> all = two.others;
    for (const std::uint64_t third : all) {
        if (third != weirs) {
            link(weirs, one, third, of(third));
        }
    }
}

void detector::meet(std::uint64_t resource, memory& one, observe::sharing how, std::uint64_t address,
                    std::uint64_t bytes) {
    if (how == observe::sharing::none || one.shared != observe::sharing::none) {
        return;
    }
    one.shared = how;
    one.address = address;
    one.extent = bytes;
    if (how != observe::sharing::theirs) {
        weirs_.emplace(address, resource);
        longest_ = std::max(longest_, bytes);
        if (has_libraries_) {
            for (auto& [number, other] : memory_) {
                if (other.shared == observe::sharing::theirs) {
                    pair(resource, one, number, other);
                }
            }
        }
        return;
    }
    has_libraries_ = true;
    // One that begins before may reach into it.
    auto array = weirs_.upper_bound(address - std::min(address, longest_));
    for (; array != weirs_.end() && array->first < address + bytes; ++array) {
        pair(array->second, of(array->second), resource, one);
    }
    for (const untold& each : untold_) {
        for (const past_access& past : each.history.all()) {
            one.history.add(moved(past, each.address, address, bytes));
        }
    }
    forget_untold(address, bytes);
}

void detector::add_after_those_before(access_history& to, const past_access& access) {
    to.replace(access.where, access.mode, access.touches,
               [&](const past_access& past) { return order_.ordered(past.when, access.when); });
    to.add(access);
}

void detector::forget_untold(std::uint64_t address, std::uint64_t bytes) {
    std::erase_if(untold_, [&](const untold& one) { return overlap(one.address, one.bytes, address, bytes); });
}

void detector::part(std::uint64_t resource, memory& one) {
    if (one.shared == observe::sharing::none) {
        return;
    }
    bool is_known = false;  // to the library
    const std::vector<std::uint64_t> others = std::exchange(one.others, {});
    for (const std::uint64_t number : others) {
        memory& other = of(number);
        std::erase(other.others, resource);
        if (other.shared != observe::sharing::theirs) {
            continue;
        }
        is_known = true;
        if (one.shared == observe::sharing::lent) {
            // The library knows it by its address alone, which other memory of Weir's may have next.
            for (const std::uint64_t third : other.others) {
                std::erase(of(third).others, number);
            }
            other.clear();
        } else if (one.shared == observe::sharing::imported) {
            for (const past_access& past : one.history.all()) {
                past_access its = moved(past, one.address, other.address, other.extent);
                its.resource = number;
                its.left_to_weir = true;  // Weir keeps the memory until the access is over
                add_after_those_before(other.history, its);
            }
        }
    }
    if (one.shared == observe::sharing::theirs) {
        return;
    }
    const auto [from, to] = weirs_.equal_range(one.address);
    if (const auto found = std::find_if(from, to, [&](const auto& each) { return each.second == resource; });
        found != to) {
        weirs_.erase(found);
    }
    if (one.shared == observe::sharing::imported && !is_known && !one.history.all().empty()) {
        const auto same = std::find_if(untold_.begin(), untold_.end(), [&](const untold& each) {
            return each.address == one.address && each.bytes == one.extent;
        });
        if (same == untold_.end()) {
            if (constexpr std::size_t most = 4096; untold_.size() == most) {
                forgotten_untold_ += untold_.front().history.all().size();
                untold_.erase(untold_.begin());
            }
            untold_.push_back({one.address, one.extent, one.history});
        } else {
            for (const past_access& past : one.history.all()) {
                add_after_those_before(same->history, past);
            }
        }
    }
}

}  // namespace weir::check
