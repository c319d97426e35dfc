#include "runtime/pending.hpp"

#include "runtime/resource.hpp"
#include "weir/detail/intrusive.hpp"

namespace weir::runtime {

namespace {

/// So many entries are kept without asking how far the stream is: the answer has to come from another processor.
constexpr std::size_t always_kept = 64;
/// A ring that is larger, and turns out to be almost empty, was so for a burst that is over.
constexpr std::size_t large = 16384;

template <class T>
void make_room_in(backend::ring<T>& of, std::size_t more) {
    const std::size_t needed = of.size() + more;
    if (needed > of.capacity() / 2 || of.capacity() < always_kept) {
        of.resize(std::max(needed, 2 * of.capacity()));
    } else if (of.capacity() > large && needed < of.capacity() / 16) {
        of.resize(of.capacity() / 4);
    }
}

}  // namespace

void pending_operations::make_room(std::size_t accesses, std::size_t points, frontiers::epoch completed) {
    const std::uint64_t rest = position_of(completed + 1);
    const bool none = rest == operations_.end();
    accesses_.drop_before(none ? accesses_.end() : operations_[rest].first_access);
    points_.drop_before(none ? points_.end() : operations_[rest].first_point);
    operations_.drop_before(rest);
    // Only those that were full: a stream whose operations wait for nothing needs no room for waits.
    make_room_in(operations_, 1);
    if (accesses != 0) {
        make_room_in(accesses_, accesses);
    }
    if (points != 0) {
        make_room_in(points_, points);
    }
}

[[gnu::hot]] void pending_operations::add(frontiers::epoch at, const submission& what,
                                          std::span<const order::wait> waits) noexcept {
    // Fields one by one: what lies there is of an operation that is over, and most of it needs no destruction.
    operation& one = operations_.push();
    one.at = at;
    one.from = what.from;
    one.first_access = accesses_.end();
    one.first_point = points_.end();
    one.waits = static_cast<std::uint32_t>(waits.size());
    one.kind = what.kind == work_kind::host_task ? pending_kind::host_task : pending_kind::operation;
    backend::ring<pending_access>::pushes accesses(accesses_);
    for (const access_request& access : what.accesses) {
        if (access.target == nullptr) {
            continue;
        }
        pending_access& noted = accesses.next();
        noted.of = &access.target->lifetime();
        noted.resource = access.target->id();
        noted.where.begin = access.where.begin;
        noted.where.end = access.where.end;
        if (noted.where.shape != access.where.shape) {
            noted.where.shape = access.where.shape;
        }
        noted.mode = access.mode;
        noted.overwrites = access.overwrites;
    }
    for (const order::wait& issued : waits) {
        points_.push() = issued.target.at;
    }
    for (const completion& dependency : what.after) {
        points_.push() = {dependency.timeline(), dependency.epoch()};
    }
}

void pending_operations::add(frontiers::epoch at, const site& from, pending_kind kind,
                             const frontiers::point* target) noexcept {
    operations_.push() = {at, from, accesses_.end(), points_.end(), target == nullptr ? 0U : 1U, kind};
    if (target != nullptr) {
        points_.push() = *target;
    }
}

std::uint64_t pending_operations::position_of(frontiers::epoch at) const noexcept {
    std::uint64_t low = operations_.first();
    std::uint64_t high = operations_.end();
    while (low != high) {
        const std::uint64_t middle = low + (high - low) / 2;
        if (operations_[middle].at < at) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

std::optional<pending_operations::entry> pending_operations::find(frontiers::epoch at) const noexcept {
    const std::uint64_t position = position_of(at);
    if (position == operations_.end() || operations_[position].at != at) {
        return std::nullopt;
    }
    return entry(*this, position);
}

}  // namespace weir::runtime
