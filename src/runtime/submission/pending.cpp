#include "runtime/submission/pending.hpp"

#include <algorithm>

namespace weir::runtime {

namespace {

/// So many entries are kept without reading how far the stream is: that value is in another processor's cache.
constexpr std::size_t always_kept = 64;
/// A larger ring that is almost empty has grown for a burst that is over, and is made smaller.
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

void pending_operations::make_room(std::size_t cells, frontiers::epoch completed) {
    const std::uint64_t rest = position_of(completed + 1);
    cells_.drop_before(rest == operations_.end() ? cells_.end() : operations_[rest].first);
    operations_.drop_before(rest);
    make_room_in(operations_, 1);
    if (cells != 0) {
        make_room_in(cells_, cells);
    }
}

void pending_operations::add(frontiers::epoch at, const site& from, pending_kind kind,
                             const frontiers::point* target) noexcept {
    operation& one = operations_.push();
    one = {at, from, cells_.end(), 0, 0, 0, kind};
    if (target != nullptr) {
        one.waits = 1;
        cells_.push().point = *target;
    }
}

void pending_operations::add_with_waits(frontiers::epoch at, const detail::operation& what,
                                        const access_request& access, std::span<const order::wait> waits) noexcept {
    addition noted = begin(at, what);
    noted.add(access);
    noted.end(waits, {});
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
