#include "runtime/submission/foreign_visit.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "backend/timeline.hpp"
#include "observe/observers.hpp"
#include "order/foreign.hpp"
#include "order/wait_counts.hpp"
#include "runtime/lifetime/resource.hpp"
#include "weir/access.hpp"
#include "weir/error.hpp"

namespace weir {

package::~package() = default;

detail::package_order* package::order() noexcept { return nullptr; }

detail::package_order::~package_order() = default;

detail::package_order::operation::~operation() = default;

namespace runtime {

namespace {

[[noreturn]] void refuse_write(const package& by) {
    throw argument_error("the array is memory of " + std::string(by.name()) +
                         ", which shares it for reading only: write to a copy of it");
}

}  // namespace

void foreign_visit::expect_allowed(const access_request& access) {
    const std::lock_guard lock(access.target->mutex);
    for (const package_tie& tie : access.target->packages().all()) {
        if (tie.rights == tie_rights::reading && access.mode != order::access_mode::read) {
            refuse_write(*tie.with);
        }
    }
}

void foreign_visit::meet(const access_request& access, bool for_check) {
    const std::lock_guard lock(access.target->mutex);
    for (const package_tie& tie : access.target->packages().all()) {
        const bool both_read = tie.mode == order::access_mode::read && access.mode == order::access_mode::read;
        if (both_read || !order::overlap(tie.where, access.where)) {
            continue;
        }
        // A token has no memory, which an order of accesses is of.
        package_order* const order = tie.address != 0 ? tie.with->order() : nullptr;
        auto known = std::find_if(packages_.begin(), packages_.end(), [&](const met& one) {
            return one.with == tie.with && one.device == tie.device && one.order == order;
        });
        if (known == packages_.end()) {
            known = packages_.insert(known, {tie.with, tie.device, for_check, order, {}});
        } else {
            known->for_check = known->for_check && for_check;
        }
        if (order != nullptr) {
            known->accesses.push_back({tie.address, access.target->size(), access.where, access.mode});
        }
    }
}

std::vector<foreign_visit::peer> foreign_visit::peers_now() {
    std::vector<peer> peers;
    for (const met& one : packages_) {
        std::optional<stream> current = one.with->current_stream(weir::device(detail::key, *one.device));
        if (!current) {
            must_block_ = must_block_ || !one.for_check;
            continue;
        }
        const auto known =
            std::find_if(peers.begin(), peers.end(), [&](const peer& other) { return other.current == *current; });
        if (known == peers.end()) {
            peers.push_back({*current, one.for_check, {}, {}, {}, {}});
        } else {
            known->for_check = known->for_check && one.for_check;
        }
    }
    return peers;
}

bool foreign_visit::begin(package_order& by, std::span<const detail::shared_access> accesses, stream_state& on) {
    begun_.reserve(begun_.size() + 1);
    auto begun = by.begin(stream(detail::key, detail::owner<stream_state>(&on)), accesses);
    if (!begun) {
        return false;
    }
    begun_.push_back(std::move(begun));
    return true;
}

void foreign_visit::enter(stream_state* on, const source_location& where) {
    // What check reports is the program's own order, in which the package's current stream counts.
    const bool is_checked = observe::observers::want_safety();
    std::erase_if(packages_, [&](const met& one) {
        if (one.order == nullptr) {
            return false;
        }
        const bool is_ordered =
            on != nullptr ? begin(*one.order, one.accesses, *on) : one.order->host_waits(one.accesses);
        return is_ordered && one.order->sees_all() && !is_checked;
    });
    for (peer& one : peers_now()) {
        stream_state& theirs = one.current.state(detail::key);
        if (&theirs == on) {
            continue;  // the order of the operation's own stream is enough
        }
        theirs.expect_open();
        if (sides_ != package_sides::exit) {
            one.entry = theirs.now(where);
        }
        peers_.push_back(std::move(one));
    }
}

void foreign_visit::wait() const {
    for (const peer& one : peers_) {
        // Observers treat this as part of the access, not as a wait of the program's.
        backend::timeline_table::instance().host_wait(one.entry.at);
        if (!one.for_check) {
            observe::observers::notify([&](observe::observer& each) { each.host_met_package(one.entry.at); });
        }
    }
}

bool foreign_visit::idle(const source_location& where) {
    bool is_over = true;
    std::erase_if(packages_, [&](const met& one) {
        const std::optional<bool> over = one.order != nullptr ? one.order->is_over(one.accesses) : std::nullopt;
        is_over = is_over && over.value_or(true);
        return over.has_value() && one.order->sees_all();
    });
    const std::vector<peer> peers = peers_now();
    return is_over && std::all_of(peers.begin(), peers.end(),
                                  [&](const peer& one) { return one.current.state(detail::key).idle(where); });
}

void foreign_visit::lock(stream_state& on) {
    std::vector<stream_state*> all{&on};
    for (const peer& one : peers_) {
        all.push_back(&one.current.state(detail::key));
    }
    std::sort(all.begin(), all.end(), [](const stream_state* a, const stream_state* b) { return a->id() < b->id(); });
    locks_.reserve(all.size());
    for (stream_state* one : all) {
        locks_.emplace_back(one->mutex);
    }
}

void foreign_visit::state(order::plan& plan, bool with_check) const {
    if (sides_ == package_sides::exit) {
        return;
    }
    for (const peer& one : peers_) {
        if (with_check || !one.for_check) {
            plan.need(one.entry, order::reason::entry);
        }
    }
}

std::vector<frontiers::point> foreign_visit::entries() const {
    std::vector<frontiers::point> all;
    for (const peer& one : peers_) {
        if (!one.for_check && sides_ != package_sides::exit) {
            all.push_back(one.entry.at);
        }
    }
    return all;
}

void foreign_visit::prepare(const order::mark& done, const order::watermarks& completed) {
    if (sides_ == package_sides::entry) {
        return;
    }
    for (peer& one : peers_) {
        stream_state& theirs = one.current.state(detail::key);
        theirs.expect_open();
        order::plan exit = order::hand_back(theirs.sequence, done, completed);
        theirs.expect_handed_back_at_once(exit.waits());
        one.done = done;
        one.waits = !exit.waits().empty();
        one.after = exit.clock_after();
        theirs.queue->reserve(exit.waits().size(), {});
        theirs.reserve_pending(0, 1);
    }
}

void foreign_visit::commit(const site& from) noexcept {
    for (peer& one : peers_) {
        if (!one.waits) {
            continue;
        }
        stream_state& theirs = one.current.state(detail::key);
        theirs.queue->wait(one.done.at);
        ++theirs.needs.counts.issued;
        const order::mark end = theirs.sequence.reserve(std::move(one.after));
        const site hand_back{"hand back", from.where};
        theirs.pending.add(end.at.at, hand_back, pending_kind::wait, &one.done.at);
        one.exit = end.at;
        const observe::observed_wait wait{one.done.at, order::reason::exit, one.for_check};
        const observe::observed_operation seen{&theirs.info(), end.at.at, hand_back, work_kind::gate, {}, {},
                                               {&wait, 1},     {}};
        observe::observers::notify([&](observe::observer& each) { each.operation(seen); });
        theirs.queue->submit(end.at.at, {{}, hand_back});
    }
}

void foreign_visit::publish() noexcept {
    for (const peer& one : peers_) {
        one.current.state(detail::key).queue->flush(one.exit);
    }
}

}  // namespace runtime

}  // namespace weir
