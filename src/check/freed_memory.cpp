#include "check/freed_memory.hpp"

#include <algorithm>
#include <utility>

#include "frontier/point.hpp"
#include "weir/detail/intrusive.hpp"

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

void freed_memory::add(const memory_place& place, const std::vector<past_access>& accesses) {
    for (const past_access& one : accesses) {
        if (strays_.size() == most) {
            strays_.pop_front();
            ++forgotten_;
        }
        strays_.push_back({place.device, place.address, one});
    }
}

access_history freed_memory::take(const memory_place& place) {
    access_history taken;
    std::deque<stray> left;
    const std::uint64_t end = place.address + place.bytes;
    for (stray& one : strays_) {
        const std::uint64_t from = one.base + one.access.where.begin;
        const std::uint64_t to = one.base + one.access.where.end;
        if (one.device != place.device || to <= place.address || end <= from) {
            left.push_back(std::move(one));
            continue;
        }
        past_access access = one.access;
        access.where = {std::max(from, place.address) - place.address, std::min(to, end) - place.address};
        if (one.access.where.shape) {
            if (from >= place.address && to <= end) {
                access.where.shape = one.access.where.shape;
            } else {
                access.touches = observe::certainty::possible;  // if a shape is cut in two, the whole range counts
            }
        }
        taken.add(std::move(access));
        // The parts outside the new owner's memory stay for later owners.
        for (const auto& [first, last] :
             {std::pair(from, std::min(to, place.address)), std::pair(std::max(from, end), to)}) {
            if (first < last) {
                stray rest = one;
                rest.access.where = {first - one.base, last - one.base};
                rest.access.touches = one.access.where.shape ? observe::certainty::possible : one.access.touches;
                left.push_back(std::move(rest));
            }
        }
    }
    strays_ = std::move(left);
    return taken;
}

}  // namespace weir::check
